"""Starts that this host refuses time after time: whose fault it is, and what follows.

A start is refused where a member could not be begun at all: no control group, no room for its files, a folder
for its output that is not there. It is tried again, later each time. After so many in a row it is settled by
what else happened meanwhile. If others began here, it is the job that can't, and it fails. If nobody did, it
is the host, and its queue must not fail for that: the node is drained until a person has looked, as Slurm
does where jobs cannot be launched. A service that comes back begins to count anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from aliquot.core.events import Ended, Event, NodeDrained, Started, StartRefused
from aliquot.core.ids import JobId, NodeId

REFUSALS: Final = 8
"""In a row, which takes about two minutes with the pauses between them."""

_REMEMBERED: Final = 10_000  # jobs; who was given up while it waited is forgotten in the end


class _Refused(NamedTuple):
    """How often in a row, and since when, in attempts that any job had begun by then."""

    times: int
    begun: int


class Refusals:
    """Hears what attempts tell."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, _Refused] = {}
        self._begun = 0

    def is_last(self, job: JobId) -> bool:
        """Whether `job` has failed if it is refused once more."""
        known = self._jobs.get(job)
        return known is not None and known.times >= REFUSALS - 1 and self._begun > known.begun

    def hear(
        self, told: Sequence[Event], node: NodeId | None, say: Callable[[str], object]
    ) -> Sequence[Event]:
        """What an attempt on `node` has told; what follows from it, which a person is told of."""
        for event in told:
            if isinstance(event, Started):
                self._begun += 1
            if isinstance(event, (Started, Ended)):
                self._jobs.pop(event.job, None)
            elif isinstance(event, StartRefused) and self._count(event.job) >= REFUSALS and node is not None:
                self._jobs.clear()
                say(
                    f"nothing could be started here {REFUSALS} times in a row, at last since {event.reason}:"
                    f" {node} starts no more jobs until 'aliquot undrain'; those that wait go on waiting"
                )
                return [NodeDrained(event.at, node, True)]
        return []

    def _count(self, job: JobId) -> int:
        """How often in a row it was refused by now."""
        known = self._jobs.pop(job, _Refused(0, self._begun))
        self._jobs[job] = known._replace(times=known.times + 1)
        if len(self._jobs) > _REMEMBERED:
            del self._jobs[next(iter(self._jobs))]
        return known.times + 1
