"""What is taken: nodes, jobs, grants and the queue, as the fold of events.

One writer calls `apply`; everyone else reads a `Frozen`. Tables are persistent maps and the columns are copy
on write, so freezing costs a few handles. Nothing here decides anything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from aliquot.core import lifecycle
from aliquot.core.accounts import Accounts, ask_of
from aliquot.core.afresh import next_attempt
from aliquot.core.closures import Closures
from aliquot.core.edges import Edges, Freed
from aliquot.core.events import (
    CardsCrowded,
    CardsFaulty,
    Ended,
    EpochBegan,
    Event,
    Evicting,
    Granted,
    Idle,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Reserved,
    Resized,
    Resizing,
    Searched,
    Started,
    StartRefused,
    Stopping,
    Tidied,
    Unreserved,
    Warned,
    WindowCancelled,
    WindowMade,
)
from aliquot.core.grants import GrantState, Placement
from aliquot.core.history import History
from aliquot.core.holdings import Holdings
from aliquot.core.ids import GrantId, JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import News, Phase
from aliquot.core.lines import Lines
from aliquot.core.pace import as_granted
from aliquot.core.records import Asked, Epoch, Frozen, JobRecord, Kept, Tally
from aliquot.core.settings import HOUR_MS
from aliquot.core.spending import Spending
from aliquot.core.steps import Kill, Move, Resize, Start, Work
from aliquot.core.units import FULL


class World(Holdings):
    """The running state. Equal sequences of events make equal worlds (see `fingerprint`)."""

    def __init__(self, *, window: int = 2000, half_life_ms: int = 0, quantile_milli: int = 0) -> None:
        super().__init__()
        self.version = 0
        self.epoch = Epoch()
        self.tally = Tally()
        self.kept: tuple[Kept, ...] = ()
        self.lines = Lines()
        self.accounts = Accounts(half_life_ms)
        self.edges = Edges()
        self.history = History(quantile_milli)
        self.closures = Closures()
        self.spending = Spending()
        self._window: deque[Request] = deque(maxlen=window)
        self._elastic: dict[JobId, None] = {}
        self._idle: dict[JobId, None] = {}
        self._owed_sizes: dict[JobId, None] = {}
        self._owed: dict[JobId, None] = {}
        self._owed_moves: dict[GrantId, None] = {}

    def freeze(self) -> Frozen:
        """A snapshot to plan on; later events do not show in it."""
        return Frozen(
            self.version,
            self.ledger.snapshot(),
            self.ledger.rows,
            self.ledger.cards,
            self.nodes,
            self.node_at,
            self.kinds,
            self.jobs,
            self.grants,
            self.lines.pending,
            self.epoch,
            self.strained,
            self.residents,
            self.tally,
            self.lines.waiting,
            self.kept,
            self.accounts.usage,
            self.accounts.past,
            self.accounts.arrays,
            tuple(self._elastic),
            tuple(self._idle),
            self.closures.all,
            self.spending.book,
            company=self.companies.groups,
            tide=self.tides.tide,
        )

    def apply(self, event: Event) -> None:
        """Fold one event. News about jobs, attempts or nodes that are not there changes nothing."""
        self.version += 1
        _APPLY[type(event)](self, event)

    def apply_all(self, events: Iterable[Event]) -> None:
        """Fold events in order."""
        for event in events:
            self.apply(event)

    def recent_demand(self) -> tuple[tuple[Request, int], ...]:
        """The requests of the sliding window with their counts, most frequent first, then first seen."""
        return tuple(Counter(self._window).most_common())

    def outstanding(self) -> list[Work]:
        """Steps derived from recorded intents that no event has confirmed yet, oldest first."""
        steps: list[Work] = []
        for job_id in self._owed:
            record = self.jobs[job_id]
            if record.phase is Phase.STARTING:
                placements = tuple(grant.placement for grant in self.grants[job_id])
                steps.append(Start(job_id, record.attempt, placements, record.spared, record.losses))
            else:
                how = record.evicting is not None, record.resizing is not None, record.at_once
                steps.append(Kill(job_id, record.attempt, record.grace_ms, *how))
        for job_id in self._owed_sizes:
            placements = tuple(grant.placement for grant in self.grants[job_id])
            steps.append(Resize(job_id, self.jobs[job_id].attempt, placements))
        for held in self._owed_moves:
            grant = self.grants[held.job][held.member]
            steps.append(Move(held.job, held.attempt, held.member, grant.placement))
        return steps

    def _submitted(self, event: JobSubmitted) -> None:
        job = event.job
        if job.id in self.jobs or job.id in self.edges.over:
            return
        held, doomed = self.edges.add(job) if job.after else ((), None)
        guess = self.history.guess(job)
        record = JobRecord(job, since_ms=event.at, waits_for=held, doomed=doomed, guess_ms=guess)
        self.jobs = self.jobs.set(job.id, record)
        asked = sum(request.cards * (request.ask.compute_milli or FULL) for request in job.members)
        self.tally = replace(
            self.tally, submitted=self.tally.submitted + 1, asked_milli=self.tally.asked_milli + asked
        )
        self._window.extend(job.members)
        self.lines.enter(job)
        self._note_wants(job.id, event.at)

    def _cancelled(self, event: JobCancelled) -> None:
        if (record := self.jobs.get(event.job)) is not None:
            at_once = record.at_once or event.at_once
            self.jobs = self.jobs.set(event.job, replace(record, cancelled=True, at_once=at_once))
            self._turn(event.job, record.attempt, News.CANCELLED, event.at)
            if event.at_once and record.phase is Phase.STOPPING:
                self._owed[event.job] = None  # its end is under way, and not quick enough any more

    def _granted(self, event: Granted) -> None:
        record = self.jobs.get(event.job)
        if record is None or record.phase is not Phase.PENDING or record.attempt != event.attempt:
            return
        asked = self._asked(record.job, event.placements)
        at = event.at
        fields = {"asked": asked, "granted_ms": at, "resized_ms": at, "resizing": None}
        self._turn(event.job, event.attempt, News.GRANTED, at, **fields)
        self._make_way(event)
        self._seat_members(event.job, event.attempt, event.placements, GrantState.ASSUMED)
        self.tally = replace(self.tally, granted=self.tally.granted + 1)
        self.accounts.open(record.job, asked, at)
        self.spending.open(record, asked, at)
        if record.job.elastic is not None:
            self._elastic[event.job] = None

    def _asked(self, job: Job, placements: tuple[Placement, ...]) -> tuple[Asked, ...]:
        """What `job` is charged for at the width it was granted."""
        models = self._models(placements, len(job.members))
        return ask_of(as_granted(job, placements).members, models)

    def _moved(self, event: Moved) -> None:
        record, grants = self.jobs.get(event.job), self.grants.get(event.job)
        if record is None or grants is None or record.attempt != event.attempt:
            return
        old = grants[event.member]
        if old.placement == event.placement:
            return
        seat = self._seat(event.placement)
        self._leave(old)
        self._sit(old.id, seat)
        lately = (*(at for at in self.tally.moves_ms if at > event.at - HOUR_MS), event.at)
        self.tally = replace(self.tally, moved=self.tally.moved + 1, moves_ms=lately)
        self._replace(old, replace(old, placement=event.placement, seat=seat))
        self._owed_moves[old.id] = None

    def _resized(self, event: Resized) -> None:
        record, grants = self.jobs.get(event.job), self.grants.get(event.job)
        if record is None or grants is None or record.attempt != event.attempt:
            return
        unchanged = event.placements == tuple(grant.placement for grant in grants)
        if record.phase is not Phase.RUNNING or unchanged:
            return
        for grant in grants:
            self._leave(grant)
            self._owed_moves.pop(grant.id, None)
        self._seat_members(event.job, event.attempt, event.placements, GrantState.RUNNING)
        self.accounts.close(record.job, record.asked, event.at)
        self.spending.close(record, record.asked, record.resized_ms, event.at)
        asked = self._asked(record.job, event.placements)
        self.accounts.open(record.job, asked, event.at)
        self.spending.open(record, asked, event.at)
        self.jobs = self.jobs.set(event.job, replace(record, asked=asked, resized_ms=event.at))
        self._owed_sizes[event.job] = None

    def _resizing(self, event: Resizing) -> None:
        record = self.jobs.get(event.job)
        if record is None or record.phase is not Phase.RUNNING:
            return
        if self._turn(event.job, event.attempt, News.EVICTED, event.at, resizing=event):
            self._owed[event.job] = None
            self._keep(Kept(event.job, event.placements, event.at, event.at, firm=True))

    def _started(self, event: Started) -> None:
        if event.job in self._owed_sizes and self.jobs[event.job].attempt == event.attempt:
            del self._owed_sizes[event.job]
        for grant in self.grants.get(event.job, ()):
            if grant.id.attempt == event.attempt:
                self._owed_moves.pop(grant.id, None)
        self._turn(event.job, event.attempt, News.STARTED, event.at)

    def _refused(self, event: StartRefused) -> None:
        self._turn(event.job, event.attempt, News.REFUSED, event.at)

    def _stopping(self, event: Stopping) -> None:
        self._turn(event.job, event.attempt, News.STOPPING, event.at)

    def _evicting(self, event: Evicting) -> None:
        if self._turn(event.job, event.attempt, News.EVICTED, event.at):
            record = replace(self.jobs[event.job], evicting=event)
            self.jobs = self.jobs.set(event.job, record)
            self._owed[event.job] = None

    def _became_idle(self, event: Idle) -> None:
        record = self.jobs.get(event.job)
        if record is None or record.attempt != event.attempt or record.phase is not Phase.RUNNING:
            return
        warned = None if event.since_ms is None else record.warned_ms
        self.jobs = self.jobs.set(event.job, replace(record, idle_ms=event.since_ms, warned_ms=warned))
        if event.since_ms is None:
            self._idle.pop(event.job, None)
        else:
            self._idle[event.job] = None

    def _warned(self, event: Warned) -> None:
        record = self.jobs.get(event.job)
        if record is not None and record.attempt == event.attempt and event.job in self._idle:
            self.jobs = self.jobs.set(event.job, replace(record, warned_ms=event.at))

    def _reserved(self, event: Reserved) -> None:
        record = self.jobs.get(event.job)
        if record is None or record.phase is not Phase.PENDING:
            return
        self._keep(Kept(event.job, event.placements, event.from_ms, event.at, event.until_ms, event.firm))

    def _keep(self, kept: Kept) -> None:
        at = next((at for at, old in enumerate(self.kept) if old.job == kept.job), len(self.kept))
        self.kept = (*self.kept[:at], kept, *self.kept[at + 1 :])

    def _unreserved(self, event: Unreserved) -> None:
        record = self.jobs.get(event.job)
        if record is not None and record.resizing is not None and record.phase is Phase.PENDING:
            self.jobs = self.jobs.set(event.job, replace(record, resizing=None))
        self._open_up(event.job)

    def _open_up(self, job: JobId) -> None:
        """What was kept for `job` is open to others."""
        if any(kept.job == job for kept in self.kept):
            self.kept = tuple(kept for kept in self.kept if kept.job != job)

    def _ended(self, event: Ended) -> None:
        self.history.hear(event, self.jobs.get(event.job))
        self._turn(event.job, event.attempt, lifecycle.news_of(event), event.at)

    def _epoch(self, event: EpochBegan) -> None:
        self.epoch = Epoch(event.number, event.seed, event.mix)

    def _looked_over(self, event: Tidied | Searched) -> None:
        self.tally = self.tally.after(event, self.version)

    def _turn(self, job_id: JobId, attempt: int, news: News, at: int, **more: Any) -> bool:
        """Move a job to its next phase and its grants with it; False where the table has no such move.

        `more` are further fields of its record where it holds something afterwards.
        """
        record = self.jobs.get(job_id)
        if record is None or record.attempt != attempt:
            return False
        after = lifecycle.next_phase(record.phase, news)
        if after is None:
            return False
        if record.goes_on and after is Phase.FAILED:
            after = Phase.PENDING  # it was stopped for others, or to go on at another width: it did not fail
        if record.cancelled and after is Phase.PENDING:
            after = Phase.CANCELLED
        if record.phase is Phase.PENDING:
            self.lines.leave(record.job)
            if self.kept:
                self._open_up(job_id)
        self._owe(job_id, after, record)
        if after in lifecycle.HOLDING:
            self._mark(job_id, lifecycle.STATE_OF_PHASE[after])
            self.jobs = self.jobs.set(job_id, replace(record, phase=after, since_ms=at, **more))
            self._note_wants(job_id, at)
            return True
        self._free(job_id)
        if record.phase is not Phase.PENDING:
            self.accounts.close(record.job, record.asked, at)
            self.spending.close(record, record.asked, record.resized_ms, at)
        if after is Phase.PENDING:
            self._requeue(record, news, at)
        else:
            if record.resizing is not None:
                self._open_up(job_id)
            self.jobs = self.jobs.delete(job_id)
            for freed in self.edges.end(job_id, succeeded=after is Phase.SUCCEEDED):
                self._let_go(freed)
                self._note_wants(freed.job, at)
        self._note_wants(job_id, at)
        return True

    def _let_go(self, freed: Freed) -> None:
        """One edge less for a waiting job, or one that never comes true."""
        if (record := self.jobs.get(freed.job)) is None:
            return
        if freed.doomed:
            record = replace(record, doomed=freed.edge.on)
        else:
            rest = tuple(edge for edge in record.waits_for if edge != freed.edge)
            record = replace(record, waits_for=rest)
        self.jobs = self.jobs.set(freed.job, record)

    def _owe(self, job_id: JobId, after: Phase, record: JobRecord) -> None:
        """Note whether the engine still has to start or kill this attempt."""
        self._owed.pop(job_id, None)
        if after is Phase.STARTING or (after is Phase.STOPPING and record.cancelled):
            self._owed[job_id] = None

    def _requeue(self, record: JobRecord, news: News, at: int) -> None:
        """Back to the queue as a new attempt, with its first submit time."""
        is_kept = record.resizing is not None and any(kept.job == record.job.id for kept in self.kept)
        self.jobs = self.jobs.set(record.job.id, next_attempt(record, news, at, is_kept=is_kept))
        self.lines.enter(record.job)

    def _free(self, job_id: JobId) -> None:
        for held in self._vacate(job_id):
            self._owed_moves.pop(held, None)
        self._elastic.pop(job_id, None)
        self._idle.pop(job_id, None)
        self._owed_sizes.pop(job_id, None)


_APPLY: dict[type, Callable[..., None]] = {
    NodeJoined: Holdings._node_joined,
    NodeLost: Holdings._node_lost,
    NodeDrained: Holdings._node_drained,
    CardsFaulty: Holdings._cards_faulty,
    CardsCrowded: Holdings._cards_crowded,
    JobSubmitted: World._submitted,
    JobCancelled: World._cancelled,
    Granted: World._granted,
    Moved: World._moved,
    Resized: World._resized,
    Resizing: World._resizing,
    Started: World._started,
    StartRefused: World._refused,
    Stopping: World._stopping,
    Evicting: World._evicting,
    Idle: World._became_idle,
    Warned: World._warned,
    Reserved: World._reserved,
    Unreserved: World._unreserved,
    Ended: World._ended,
    EpochBegan: World._epoch,
    Tidied: World._looked_over,
    Searched: World._looked_over,
    WindowMade: lambda world, event: world.closures.make(event, world, world.version),
    WindowCancelled: lambda world, event: world.closures.cancel(event),
}
