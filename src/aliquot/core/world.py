"""What is taken: nodes, jobs, grants and the queue, as the fold of events.

One writer calls `apply`; everyone else reads a `Frozen`. Tables are persistent maps and the columns are copy
on write, so freezing costs a few handles. Nothing here decides anything.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable

import immutables
from msgspec.structs import replace

from aliquot.core import lifecycle
from aliquot.core.columns import MAX_CARDS
from aliquot.core.errors import BrokenInvariantError
from aliquot.core.events import (
    CardsFaulty,
    Ended,
    EpochBegan,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    Moved,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Started,
    StartRefused,
    Stopping,
    Tidied,
)
from aliquot.core.grants import Grant, GrantState, Placement, Seat
from aliquot.core.ids import GrantId, JobId, NodeId
from aliquot.core.inventory import NodeKind, kind_of
from aliquot.core.jobs import Job, Request
from aliquot.core.ledger import Ledger
from aliquot.core.lifecycle import News, Phase
from aliquot.core.records import (
    Epoch,
    Frozen,
    JobRecord,
    NodeRecord,
    QueueKey,
    Tally,
    queue_key,
    remains_of,
    seat_of,
)
from aliquot.core.rows import row_state
from aliquot.core.steps import Kill, Move, Start
from aliquot.core.units import FULL

BACKOFF_MS = 1000
BACKOFF_DOUBLINGS = 6


class World:
    """The running state. Equal sequences of events make equal worlds (see `fingerprint`)."""

    def __init__(self, *, window: int = 2000) -> None:
        self.ledger = Ledger(cards=1)
        self.version = 0
        self.nodes: immutables.Map[NodeId, NodeRecord] = immutables.Map()
        self.node_at: tuple[NodeId, ...] = ()
        self.kinds: tuple[NodeKind, ...] = ()
        self.jobs: immutables.Map[JobId, JobRecord] = immutables.Map()
        self.grants: immutables.Map[JobId, tuple[Grant, ...]] = immutables.Map()
        self.epoch = Epoch()
        self.strained: frozenset[int] = frozenset()
        self.residents: immutables.Map[int, tuple[GrantId, ...]] = immutables.Map()
        self.tally = Tally()
        self._window: deque[Request] = deque(maxlen=window)
        self._pending: list[QueueKey] = []
        self._pending_frozen: tuple[QueueKey, ...] | None = ()
        self._kind_index: dict[NodeKind, int] = {}
        self._over: set[JobId] = set()
        self._owed: dict[JobId, None] = {}
        self._owed_moves: dict[GrantId, None] = {}

    def freeze(self) -> Frozen:
        """A snapshot to plan on; later events do not show in it."""
        if self._pending_frozen is None:
            self._pending_frozen = tuple(self._pending)
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
            self._pending_frozen,
            self.epoch,
            self.strained,
            self.residents,
            self.tally,
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

    def grants_on(self, row: int) -> list[Grant]:
        """Grants that name the node of `row`, orphaned ones too, in the order they came."""
        return [self.grants[held.job][held.member] for held in self.residents.get(row, ())]

    def outstanding(self) -> list[Start | Kill | Move]:
        """Steps derived from recorded intents that no event has confirmed yet, oldest first."""
        steps: list[Start | Kill | Move] = []
        for job_id in self._owed:
            record = self.jobs[job_id]
            if record.phase is Phase.STARTING:
                placements = tuple(grant.placement for grant in self.grants[job_id])
                steps.append(Start(job_id, record.attempt, placements))
            else:
                steps.append(Kill(job_id, record.attempt))
        for held in self._owed_moves:
            grant = self.grants[held.job][held.member]
            steps.append(Move(held.job, held.attempt, held.member, grant.placement))
        return steps

    # --- nodes -----------------------------------------------------------------------------------------

    def _node_joined(self, event: NodeJoined) -> None:
        node = event.node
        if len(node.cards) > MAX_CARDS:
            raise BrokenInvariantError(f"node {node.id} has {len(node.cards)} cards; at most {MAX_CARDS}")
        known = self.nodes.get(node.id)
        row = known.row if known else self.ledger.add_row()
        if known is None:
            self.node_at = (*self.node_at, node.id)
        self.ledger.widen(len(node.cards))
        record = NodeRecord(
            node=node,
            row=row,
            kind=self._kind(kind_of(node)),
            drained=known.drained if known else False,
            index_of={card.uuid: at for at, card in enumerate(node.cards)},
        )
        self._reseat(record)

    def _node_lost(self, event: NodeLost) -> None:
        if record := self.nodes.get(event.node):
            self._reseat(replace(record, up=False))

    def _node_drained(self, event: NodeDrained) -> None:
        if record := self.nodes.get(event.node):
            self._reseat(replace(record, drained=event.drained))

    def _cards_faulty(self, event: CardsFaulty) -> None:
        if record := self.nodes.get(event.node):
            self._reseat(replace(record, faulty=frozenset(event.cards)))

    def _kind(self, kind: NodeKind) -> int:
        if kind not in self._kind_index:
            self._kind_index[kind] = len(self.kinds)
            self.kinds = (*self.kinds, kind)
        return self._kind_index[kind]

    def _reseat(self, record: NodeRecord) -> None:
        """Put `record` in force: find every grant on it its cards again, then recount its row."""
        self.nodes = self.nodes.set(record.node.id, record)
        for grant in self.grants_on(record.row):
            self._replace(grant, self._found(grant, record))
        self._recount(record)

    def _found(self, grant: Grant, record: NodeRecord) -> Grant:
        """`grant` with its seat on `record`'s cards as they are now, orphaned where one is missing."""
        seat = seat_of(grant.placement, record) if record.up else None
        if seat is None:
            rest = remains_of(grant.placement, record) if record.up else None
            return replace(grant, state=GrantState.ORPHANED, seat=rest)
        state = grant.state
        if state is GrantState.ORPHANED:
            state = lifecycle.STATE_OF_PHASE[self.jobs[grant.id.job].phase]
        return replace(grant, state=state, seat=seat)

    def _replace(self, old: Grant, new: Grant) -> None:
        held = self.grants[old.id.job]
        self.grants = self.grants.set(old.id.job, tuple(new if grant is old else grant for grant in held))

    def _recount(self, record: NodeRecord) -> None:
        """Write the row anew; a row that offers less than its node minus its bookings is `strained`."""
        seats = [grant.seat for grant in self.grants_on(record.row) if grant.seat is not None]
        chunk, place = self.ledger.writable(record.row)
        is_open = record.up and not record.drained
        bad = [at for at, card in enumerate(record.node.cards) if card.uuid in record.faulty]
        mask = (1 << len(record.node.cards)) - 1 - sum(1 << at for at in bad) if is_open else 0
        over = row_state(chunk, place, record.node, record.kind, mask, seats, open_to_work=is_open)
        strained = over or not is_open or bool(bad)
        self.strained = self.strained | {record.row} if strained else self.strained - {record.row}

    # --- jobs ------------------------------------------------------------------------------------------

    def _submitted(self, event: JobSubmitted) -> None:
        job = event.job
        if job.id in self.jobs or job.id in self._over:
            return
        self.jobs = self.jobs.set(job.id, JobRecord(job, since_ms=event.at))
        asked = sum(request.cards * (request.ask.compute_milli or FULL) for request in job.members)
        self.tally = replace(
            self.tally, submitted=self.tally.submitted + 1, asked_milli=self.tally.asked_milli + asked
        )
        self._window.extend(job.members)
        self._enqueue(job)

    def _cancelled(self, event: JobCancelled) -> None:
        record = self.jobs.get(event.job)
        if record is not None:
            self.jobs = self.jobs.set(event.job, replace(record, cancelled=True))
            self._turn(event.job, record.attempt, News.CANCELLED, event.at)

    def _granted(self, event: Granted) -> None:
        if not self._turn(event.job, event.attempt, News.GRANTED, event.at):
            return
        grants = []
        for member, placement in enumerate(event.placements):
            held = GrantId(event.job, event.attempt, member)
            seat = self._seat(placement)
            grants.append(Grant(held, GrantState.ASSUMED, placement, seat))
            self._sit(held, seat)
        self.tally = replace(self.tally, granted=self.tally.granted + 1)
        self.grants = self.grants.set(event.job, tuple(grants))

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
        self.tally = replace(self.tally, moved=self.tally.moved + 1)
        self._replace(old, replace(old, placement=event.placement, seat=seat))
        self._owed_moves[old.id] = None

    def _started(self, event: Started) -> None:
        for grant in self.grants.get(event.job, ()):
            if grant.id.attempt == event.attempt:
                self._owed_moves.pop(grant.id, None)
        self._turn(event.job, event.attempt, News.STARTED, event.at)

    def _refused(self, event: StartRefused) -> None:
        self._turn(event.job, event.attempt, News.REFUSED, event.at)

    def _stopping(self, event: Stopping) -> None:
        self._turn(event.job, event.attempt, News.STOPPING, event.at)

    def _ended(self, event: Ended) -> None:
        self._turn(event.job, event.attempt, lifecycle.NEWS_OF_OUTCOME[event.outcome], event.at)

    def _epoch(self, event: EpochBegan) -> None:
        self.epoch = Epoch(event.number, event.seed, event.mix)

    def _tidied(self, event: Tidied) -> None:
        self.tally = replace(self.tally, tidied=event.asked_milli)

    def _turn(self, job_id: JobId, attempt: int, news: News, at: int) -> bool:
        """Move a job to its next phase and its grants with it; False where the table has no such move."""
        record = self.jobs.get(job_id)
        if record is None or record.attempt != attempt:
            return False
        after = lifecycle.next_phase(record.phase, news)
        if after is None:
            return False
        if record.cancelled and after is Phase.PENDING:
            after = Phase.CANCELLED
        if record.phase is Phase.PENDING:
            self._dequeue(record.job)
        self._owe(job_id, after, record)
        if after in lifecycle.HOLDING:
            self._mark(job_id, lifecycle.STATE_OF_PHASE[after])
            self.jobs = self.jobs.set(job_id, replace(record, phase=after, since_ms=at))
            return True
        self._free(job_id)
        if after is Phase.PENDING:
            self._requeue(record, news, at)
        else:
            self.jobs = self.jobs.delete(job_id)
            self._over.add(job_id)
        return True

    def _owe(self, job_id: JobId, after: Phase, record: JobRecord) -> None:
        """Note whether the engine still has to start or kill this attempt."""
        self._owed.pop(job_id, None)
        if after is Phase.STARTING or (after is Phase.STOPPING and record.cancelled):
            self._owed[job_id] = None

    def _requeue(self, record: JobRecord, news: News, at: int) -> None:
        """Back to the queue as a new attempt, with its first submit time."""
        refusals = record.refusals + 1 if news is News.REFUSED else 0
        wait = BACKOFF_MS * 2 ** min(refusals - 1, BACKOFF_DOUBLINGS) if refusals else 0
        self.jobs = self.jobs.set(
            record.job.id,
            JobRecord(
                record.job,
                attempt=record.attempt + 1,
                since_ms=at,
                not_before_ms=at + wait,
                refusals=refusals,
            ),
        )
        self._enqueue(record.job)

    def _mark(self, job_id: JobId, state: GrantState) -> None:
        grants = self.grants.get(job_id)
        if grants is not None:
            self.grants = self.grants.set(
                job_id,
                tuple(
                    grant if grant.state is GrantState.ORPHANED else replace(grant, state=state)
                    for grant in grants
                ),
            )

    def _free(self, job_id: JobId) -> None:
        grants = self.grants.get(job_id)
        if grants is None:
            return
        for grant in grants:
            self._leave(grant)
            self._owed_moves.pop(grant.id, None)
        self.grants = self.grants.delete(job_id)

    # --- seats and queue -------------------------------------------------------------------------------

    def _seat(self, placement: Placement) -> Seat:
        record = self.nodes.get(placement.node)
        seat = seat_of(placement, record) if record else None
        if seat is None:
            raise BrokenInvariantError(f"granted on {placement.node} {placement.cards}, which are not there")
        return seat

    def _sit(self, held: GrantId, seat: Seat) -> None:
        self.residents = self.residents.set(seat.row, (*self.residents.get(seat.row, ()), held))
        self.ledger.book(seat)

    def _leave(self, grant: Grant) -> None:
        record = self.nodes[grant.placement.node]
        others = tuple(held for held in self.residents[record.row] if held != grant.id)
        self.residents = self.residents.set(record.row, others)
        if grant.seat is None:
            return
        if record.row in self.strained:
            self._recount(record)
        else:
            self.ledger.release(grant.seat)

    def _enqueue(self, job: Job) -> None:
        insort(self._pending, queue_key(job))
        self._pending_frozen = None

    def _dequeue(self, job: Job) -> None:
        key = queue_key(job)
        at = bisect_left(self._pending, key)
        if at < len(self._pending) and self._pending[at] == key:
            del self._pending[at]
            self._pending_frozen = None


_APPLY: dict[type, Callable[..., None]] = {
    NodeJoined: World._node_joined,
    NodeLost: World._node_lost,
    NodeDrained: World._node_drained,
    CardsFaulty: World._cards_faulty,
    JobSubmitted: World._submitted,
    JobCancelled: World._cancelled,
    Granted: World._granted,
    Moved: World._moved,
    Started: World._started,
    StartRefused: World._refused,
    Stopping: World._stopping,
    Ended: World._ended,
    EpochBegan: World._epoch,
    Tidied: World._tidied,
}
