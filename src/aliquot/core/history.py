"""How long jobs like one ran, for those whose owner says nothing: a small memory that is a fold of events.

A group of alike jobs keeps its latest run times, each as one byte: seconds on a scale of eight steps per
doubling, so a step is 9 to 12 %. That is a few hundred bytes per group, whatever its jobs do, and at most
GROUPS groups; who was not heard of for longest is forgotten first. Nothing here is a float.

"Alike" is tried from near to far: same user, queue and cards; same queue and cards; same queue; anybody. The
nearest group with enough jobs speaks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from aliquot.core.events import Ended, Outcome
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import HOLDING
from aliquot.core.records import JobRecord

ENOUGH: Final = 5
"""Jobs a group must have seen before it speaks."""

KEPT: Final = 200
"""Run times a group remembers, the latest: habits change."""

GROUPS: Final = 4096
_STEPS: Final = 8
_MOST: Final = 255
_SECOND_MS: Final = 1000


class Alike(NamedTuple):
    """A group of jobs. `level` 0 is the nearest, 3 anybody; what does not count there is empty."""

    level: int
    user: str
    queue: str
    cards: int


class History:
    """Run times by group. Of `quantile_milli` 900 a guess is what nine of ten did not exceed; 0: off."""

    def __init__(self, quantile_milli: int = 0, known: Iterable[tuple[Alike, bytes]] = ()) -> None:
        self.quantile_milli = quantile_milli
        self._runs: dict[Alike, bytes] = {Alike(*key): runs for key, runs in known}

    @property
    def groups(self) -> tuple[tuple[Alike, bytes], ...]:
        """All that is known, longest unheard of first: what an image keeps."""
        return tuple(self._runs.items())

    def learn(self, job: Job, ran_ms: int) -> None:
        """`job` ran `ran_ms` to its end, without having been stopped in between."""
        if not self.quantile_milli:
            return
        code = bytes((step_of(ran_ms),))
        for key in _groups_of(job):
            self._runs[key] = (self._runs.pop(key, b"") + code)[-KEPT:]
        while len(self._runs) > GROUPS:
            del self._runs[next(iter(self._runs))]

    def hear(self, event: Ended, record: JobRecord | None) -> None:
        """An attempt is over: what ran through without a stop, at one width, tells how long such jobs run."""
        if not self.quantile_milli or record is None or record.attempt != event.attempt:
            return
        through = event.outcome is Outcome.SUCCEEDED and not record.evictions and record.phase in HOLDING
        if through and record.job.elastic is None:
            self.learn(record.job, event.at - record.granted_ms)

    def guess(self, job: Job) -> int | None:
        """How long `job` will run, in ms; None where too little is known, or nothing is to be guessed."""
        if not self.quantile_milli:
            return None
        for key in _groups_of(job):
            runs = self._runs.get(key, b"")
            if len(runs) >= ENOUGH:
                at = min(len(runs) - 1, len(runs) * self.quantile_milli // 1000)
                return longest_of(sorted(runs)[at])
        return None


def step_of(ran_ms: int) -> int:
    """The step of a run time, 0 to 255, never lower for a longer one. 7 s: 7; 16 s: 16; 1 h: 78."""
    seconds = max(0, ran_ms) // _SECOND_MS
    if seconds < _STEPS:
        return seconds
    doublings = seconds.bit_length() - 1 - 3
    return min(_MOST, doublings * _STEPS + (seconds >> doublings))


def longest_of(step: int) -> int:
    """The longest run time of a step, in ms. Step 78 is 3,584 to 3,839.999 s."""
    if step < 2 * _STEPS:
        return (step + 1) * _SECOND_MS - 1
    doublings, part = divmod(step - _STEPS, _STEPS)
    return ((part + _STEPS + 1) << doublings) * _SECOND_MS - 1


def _groups_of(job: Job) -> tuple[Alike, ...]:
    cards = sum(request.cards for request in job.members)
    near = (Alike(0, job.user, job.queue, cards),) if job.user else ()
    return (*near, Alike(1, "", job.queue, cards), Alike(2, "", job.queue, 0), Alike(3, "", "", 0))
