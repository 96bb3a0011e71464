"""What exists and who holds it: nodes, the columns of what is left, and grants with their seats.

The half of the world that speaks of machines. Who waits, and why, is the other half (`world`).
"""

from __future__ import annotations

from collections.abc import Iterable

import immutables
from msgspec.structs import replace

from aliquot.core import lifecycle
from aliquot.core.columns import MAX_CARDS
from aliquot.core.company import Companies, Held, divide
from aliquot.core.errors import BrokenInvariantError
from aliquot.core.events import CardsCrowded, CardsFaulty, Granted, NodeDrained, NodeJoined, NodeLost
from aliquot.core.grants import Grant, GrantState, Placement, Seat
from aliquot.core.ids import GrantId, JobId, NodeId
from aliquot.core.inventory import CardModel, NodeKind, kind_of
from aliquot.core.ledger import Ledger
from aliquot.core.records import JobRecord, NodeRecord, remains_of, seat_of
from aliquot.core.rows import row_state
from aliquot.core.slices import Vector
from aliquot.core.tide import Tides, asked_milli


class Holdings:
    """Nodes and grants as the fold of what was seen and granted."""

    def __init__(self) -> None:
        self.ledger = Ledger(cards=1)
        self.nodes: immutables.Map[NodeId, NodeRecord] = immutables.Map()
        self.node_at: tuple[NodeId, ...] = ()
        self.kinds: tuple[NodeKind, ...] = ()
        self.jobs: immutables.Map[JobId, JobRecord] = immutables.Map()
        self.grants: immutables.Map[JobId, tuple[Grant, ...]] = immutables.Map()
        self.strained: frozenset[int] = frozenset()
        self.residents: immutables.Map[int, tuple[GrantId, ...]] = immutables.Map()
        self.companies = Companies()
        self.tides = Tides()
        self._kind_index: dict[NodeKind, int] = {}

    def grants_on(self, row: int) -> list[Grant]:
        """Grants that name the node of `row`, orphaned ones too, in the order they came."""
        return [self.grants[held.job][held.member] for held in self.residents.get(row, ())]

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

    def _cards_crowded(self, event: CardsCrowded) -> None:
        if record := self.nodes.get(event.node):
            self._reseat(replace(record, crowd=event.taken))

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
        self._touch(new.id.job, (new,))

    def _recount(self, record: NodeRecord) -> None:
        """Write the row anew; a row that offers less than its node minus its bookings is `strained`."""
        seats = [grant.seat for grant in self.grants_on(record.row) if grant.seat is not None]
        # what nobody was granted is booked as well, so that it is not offered
        seats += [
            Seat(record.row, 1 << record.index_of[card], Vector(compute, memory, 0))
            for card, compute, memory in record.crowd
            if card in record.index_of
        ]
        chunk, place = self.ledger.writable(record.row)
        is_open = record.up and not record.drained
        bad = [at for at, card in enumerate(record.node.cards) if card.uuid in record.faulty]
        mask = (1 << len(record.node.cards)) - 1 - sum(1 << at for at in bad) if is_open else 0
        over = row_state(chunk, place, record.node, record.kind, mask, seats, open_to_work=is_open)
        strained = over or not is_open or bool(bad or record.crowd)
        self.strained = self.strained | {record.row} if strained else self.strained - {record.row}

    def _models(self, placements: tuple[Placement, ...], members: int) -> tuple[CardModel | None, ...]:
        """The model each member got; the pieces of a scattered job are alike enough to count as the first."""
        models: list[CardModel | None] = []
        for placement in placements[:members]:
            record = self.nodes[placement.node]
            first = record.index_of[placement.cards[0]] if placement.cards else None
            models.append(None if first is None else record.node.cards[first].model)
        return tuple(models)

    def _seat_members(
        self, job: JobId, attempt: int, placements: tuple[Placement, ...], state: GrantState
    ) -> None:
        grants = []
        come: dict[int, list[GrantId]] = {}
        for member, placement in enumerate(placements):
            held = GrantId(job, attempt, member)
            seat = self._seat(placement)
            grants.append(Grant(held, state, placement, seat))
            come.setdefault(seat.row, []).append(held)
            self.ledger.book(seat)
        for row, new in come.items():
            self.residents = self.residents.set(row, (*self.residents.get(row, ()), *new))
        self.grants = self.grants.set(job, tuple(grants))

    def _make_way(self, event: Granted) -> None:
        """A job comes to the cards of others, if it does: they keep their parts of what they hold there."""
        if event.beside:
            unheld = tuple(replace(place, vector=Vector(0, 0, 0)) for place in event.placements)
            self._divide({**{other: self._placements(other) for other in event.beside}, event.job: unheld})
            self.companies.join(event.job, event.beside)

    def _vacate(self, job: JobId) -> tuple[GrantId, ...]:
        """`job` gives back all it holds, to those who share its cards where there are any; what it was."""
        grants = self.grants.get(job)
        if grants is None:
            return ()
        self._leave(*grants)
        rest = self.companies.leave(job)
        if rest:
            left_behind = self._placements(job)
            self._divide({other: self._placements(other) for other in rest}, left_behind)
        self.grants = self.grants.delete(job)
        return tuple(grant.id for grant in grants)

    def _divide(self, held: Held, left_behind: tuple[Placement, ...] = ()) -> None:
        memories = {job: together.memory_mib for job in held if (together := self.jobs[job].job.together)}
        for job, placements in divide(held, memories, left_behind).items():
            for grant, placement in zip(self.grants.get(job, ()), placements, strict=False):
                if placement != grant.placement:
                    self._rebook(grant, placement)

    def _rebook(self, grant: Grant, placement: Placement) -> None:
        """Another part of the same cards."""
        seat = grant.seat
        if seat is None:
            self._replace(grant, replace(grant, placement=placement))
            return
        new = seat._replace(vector=placement.vector, whole=placement.whole)
        self._replace(grant, replace(grant, placement=placement, seat=new))
        record = self.nodes[placement.node]
        if record.row in self.strained:
            self._recount(record)
        else:
            self.ledger.release(seat)
            self.ledger.book(new)

    def _note_wants(self, job: JobId, at: int) -> None:
        """What the tide has to know once something happened to `job`."""
        record = self.jobs.get(job)
        wants = 0 if record is None or not record.is_wanted else asked_milli(record.job)
        self.tides.note(job, wants, at)

    def _placements(self, job: JobId) -> tuple[Placement, ...]:
        return tuple(grant.placement for grant in self.grants[job])

    def _mark(self, job_id: JobId, state: GrantState) -> None:
        grants = self.grants.get(job_id)
        if grants is not None:
            self.grants = self.grants.set(
                job_id,
                tuple(
                    grant
                    if grant.state is GrantState.ORPHANED
                    else Grant(grant.id, state, grant.placement, grant.seat)
                    for grant in grants
                ),
            )
            self._touch(job_id, grants)

    def _touch(self, job: JobId, grants: Iterable[Grant]) -> None:
        """Other lists of the same residents, in which those of `job` are other objects, equal to the old.

        Whoever remembers a row by its list reads it again, and of those on it such as are not the same.
        """
        nodes, residents = self.nodes, self.residents
        for row in {nodes[grant.placement.node].row for grant in grants}:
            again = tuple([GrantId(*held) if held[0] == job else held for held in residents[row]])
            residents = residents.set(row, again)
        self.residents = residents

    def _seat(self, placement: Placement) -> Seat:
        record = self.nodes.get(placement.node)
        seat = seat_of(placement, record) if record else None
        if seat is None:
            raise BrokenInvariantError(f"granted on {placement.node} {placement.cards}, which are not there")
        return seat

    def _sit(self, held: GrantId, seat: Seat) -> None:
        self.residents = self.residents.set(seat.row, (*self.residents.get(seat.row, ()), held))
        self.ledger.book(seat)

    def _leave(self, *grants: Grant) -> None:
        """What `grants` hold is free, and they stand on no row any more."""
        rows = [self.nodes[grant.placement.node].row for grant in grants]
        left: dict[int, list[GrantId]] = {row: [*self.residents[row]] for row in rows}
        for row, grant in zip(rows, grants, strict=True):
            left[row].remove(grant.id)
        for row, held in left.items():
            self.residents = self.residents.set(row, tuple(held))
        counted = set()
        for row, grant in zip(rows, grants, strict=True):
            if grant.seat is None or row in counted:
                continue
            if row in self.strained:
                counted.add(row)  # once, without any of them
                self._recount(self.nodes[grant.placement.node])
            else:
                self.ledger.release(grant.seat)
