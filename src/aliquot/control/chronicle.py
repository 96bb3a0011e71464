"""The life of every job as far as people ask for it: those that are there, and the last that are over.

Built from events only, so that a restart builds the same. It decides nothing and nothing depends on it. One
thread writes; any may read, since a life is replaced and never changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from aliquot.control.arrays import array_of, body_id
from aliquot.control.endings import REFUSED, with_exits
from aliquot.control.kept import Kept
from aliquot.control.views import AttemptView, CardGrant, Exit, ResizeView
from aliquot.core.events import (
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    Moved,
    Outcome,
    Resizing,
    Started,
    StartRefused,
    Stopping,
    Unreserved,
)
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import width_of
from aliquot.core.records import JobRecord
from aliquot.core.world import World

KEPT_OVER: Final = 10_000
RESIZED: Final = "resized"  # how an attempt ended of which the job goes on at another width

KeptOf = Callable[[JobId], Kept | None]
ExitsOf = Callable[[JobId, int], tuple[Exit | None, ...]]
Forget = Callable[[Sequence[JobId]], None]
_OfJob = JobCancelled | Granted | Moved | Resizing | Started | StartRefused | Stopping | Unreserved | Ended


class Life(msgspec.Struct, frozen=True):
    """One job. `owner` is None where nothing recorded says whose it is."""

    job: Job
    phase: Phase
    owner: int | None
    name: str
    attempts: tuple[AttemptView, ...] = ()
    is_cancelled: bool = False
    over_ms: int | None = None
    key: str = ""
    resizing: ResizeView | None = None
    cancel: JobCancelled | None = None  # by whom it was given up first, or why nobody did


class Keyed(NamedTuple):
    """The job that was submitted under a key, and the digest of what that was."""

    job: JobId
    digest: str


class Chronicle:
    """Lives by id, in order of submission, and jobs by (owner, key). Sees what the loop has recorded.

    Of those that are over `kept` are remembered: the oldest go first, of the owner who has most. `forget` is
    told of them, and of an array once the last of its jobs is one of them.
    """

    def __init__(
        self,
        kept_of: KeptOf,
        exits_of: ExitsOf,
        forget: Forget = lambda jobs: None,
        *,
        kept: int = KEPT_OVER,
    ) -> None:
        self.lives: dict[JobId, Life] = {}
        self.keys: dict[tuple[int, str], Keyed] = {}
        self.arrays: dict[str, dict[JobId, None]] = {}  # the jobs of each array that are remembered
        self._kept_of, self._exits_of, self._forget, self._most = kept_of, exits_of, forget, kept
        self._last: tuple[JobId, Kept | None] | None = None
        self._over: dict[int | None, deque[JobId]] = {}  # by owner, the oldest first

    def resume(self, events: Iterable[Event], world: World) -> None:
        """After a restart: all that is still on record, and who lives without his beginning being so."""
        self._note(events, world)
        for job, record in world.jobs.items():
            if job not in self.lives:
                self.lives[job] = self._found(record, world)
        self.lives = dict(sorted(self.lives.items(), key=lambda entry: entry[1].job.seq))

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` were recorded and folded into `world`."""
        self._note(events, world)
        # in lots, since forgetting is a write of its own
        count = sum(map(len, self._over.values()))
        if count > self._most + self._most // 20:
            old = [self._take_oldest() for _ in range(count - self._most)]
            self._forget([*old, *(array for job in old if (array := self._drop(job)))])

    def in_full(self, life: Life) -> Life:
        """The same with how each of its attempts ended, in the words that people are told."""
        job = life.job.id
        told = [with_exits(one, partial(self._exits_of, job, one.number)) for one in life.attempts]
        return replace(life, attempts=tuple(told))

    def _take_oldest(self) -> JobId:
        """Of whoever has most of them, so that nobody's jobs push out those of others."""
        return max(self._over.values(), key=len).popleft()

    def _drop(self, job: JobId) -> JobId | None:
        """Remember `job` no more; its array, if that was the last of it."""
        life = self.lives.pop(job)
        array = array_of(job)
        if array:
            self.arrays[array].pop(job, None)
            if self.arrays[array]:
                return None
            del self.arrays[array]
        if life.key and life.owner is not None:
            self.keys.pop((life.owner, life.key), None)
        return JobId(array) if array else None

    def _note(self, events: Iterable[Event], world: World) -> None:
        touched: dict[JobId, int] = {}
        for event in events:
            if isinstance(event, JobSubmitted):
                self._begin(event.job)
                touched[event.job.id] = event.at
            elif isinstance(event, _OfJob) and event.job in self.lives:
                self.lives[event.job] = _after(self.lives[event.job], event)
                touched[event.job] = event.at
        for job, at in touched.items():
            record = world.jobs.get(job)
            if record is not None:
                self.lives[job] = replace(self.lives[job], phase=record.phase)
            elif self.lives[job].over_ms is None:
                self._end(job, at)

    def _begin(self, job: Job) -> None:
        if job.id not in self.lives:
            self.lives[job.id] = self._owned(Life(job, Phase.PENDING, None, ""), self._kept(job.id))

    def _kept(self, job: JobId) -> Kept | None:
        """What lies beside its submission; of an array it is read once for jobs that come in a row."""
        name = body_id(job)
        if self._last is None or self._last[0] != name:
            self._last = (name, self._kept_of(name))
        return self._last[1]

    def _owned(self, life: Life, kept: Kept | None) -> Life:
        """The same with what lies beside its submission, and found by its key."""
        array = array_of(life.job.id)
        if array:
            self.arrays.setdefault(array, {})[life.job.id] = None
        if kept is None:
            return life
        if kept.key:
            self.keys[kept.owner, kept.key] = Keyed(body_id(life.job.id), kept.digest)
        return replace(life, owner=kept.owner, name=kept.name, key=kept.key)

    def _end(self, job: JobId, at: int) -> None:
        life = self.lives[job]
        attempts = tuple(
            attempt
            if attempt.outcome is None
            else replace(attempt, exits=self._exits_of(job, attempt.number))
            for attempt in life.attempts
        )
        outcome = attempts[-1].outcome if attempts else None
        phase = Phase.CANCELLED if life.is_cancelled else Phase.FAILED
        if outcome == Outcome.SUCCEEDED.value:
            phase = Phase.SUCCEEDED
        self.lives[job] = replace(life, phase=phase, attempts=attempts, over_ms=at, resizing=None)
        self._over.setdefault(life.owner, deque()).append(job)

    def _found(self, record: JobRecord, world: World) -> Life:
        """A life whose beginning is not on record any more."""
        kept = self._kept(record.job.id)
        grants = world.grants.get(record.job.id, ())
        began = record.since_ms if record.phase is not Phase.STARTING else None
        attempts: tuple[AttemptView, ...] = ()
        if grants:
            holds = tuple(card_grant(grant.placement) for grant in grants)
            attempts = (AttemptView(record.attempt, record.since_ms, holds, started_ms=began),)
        life = Life(record.job, record.phase, None, "", attempts, record.cancelled)
        if record.resizing is not None:
            life = replace(life, resizing=_resize_view(life, record.resizing))
        return self._owned(life, kept)


def card_grant(placement: Placement) -> CardGrant:
    """`placement` as people see it."""
    return CardGrant(
        str(placement.node),
        tuple(placement.cards),
        placement.whole,
        placement.vector.compute,
        placement.vector.memory,
        placement.cpu,
        placement.host,
    )


def held_width(life: Life) -> int | None:
    """The cards, or members of a gang, that the job runs with now; None where it holds nothing."""
    if not life.attempts or life.attempts[-1].ended_ms is not None:
        return None
    holds = life.attempts[-1].holds
    return len(holds) if len(life.job.members) > 1 else sum(len(hold.cards) for hold in holds)


def _resize_view(life: Life, event: Resizing) -> ResizeView:
    """Of an attempt that is not known any more, no change is shown."""
    width = width_of(life.job, event.placements)
    return ResizeView(held_width(life) or width, width, event.at, event.for_job or "")


def _after(life: Life, event: _OfJob) -> Life:
    match event:
        case JobCancelled():
            return replace(life, is_cancelled=True, cancel=life.cancel or event)
        case Granted():
            holds = tuple(card_grant(placement) for placement in event.placements)
            attempts = (*life.attempts, AttemptView(event.attempt, event.at, holds))
            return replace(life, attempts=attempts, resizing=None)
        case Moved():
            return _with_last(life, event.attempt, holds=_moved(life, event))
        case Resizing():
            return replace(life, resizing=_resize_view(life, event))
        case Unreserved():
            return replace(life, resizing=None)
        case Started():
            return _with_last(life, event.attempt, started_ms=event.at)
        case StartRefused():
            return _with_last(life, event.attempt, ended_ms=event.at, outcome=REFUSED, text=event.reason)
        case Ended():
            goes_on = life.resizing is not None and not life.is_cancelled
            how = RESIZED if goes_on and event.outcome is not Outcome.SUCCEEDED else event.outcome.value
            return _with_last(life, event.attempt, ended_ms=event.at, outcome=how)
        case Stopping():
            return life


def _with_last(life: Life, number: int, **changes: object) -> Life:
    """The newest attempt with `changes`, where it is the one spoken of."""
    if not life.attempts or life.attempts[-1].number != number:
        return life
    return replace(life, attempts=(*life.attempts[:-1], replace(life.attempts[-1], **changes)))


def _moved(life: Life, event: Moved) -> tuple[CardGrant, ...]:
    holds = list(life.attempts[-1].holds) if life.attempts else []
    if event.member < len(holds):
        holds[event.member] = card_grant(event.placement)
    return tuple(holds)
