"""Moves: one slice out of the way of a request that does not fit, and now and then a look for better places.

Only what policy calls movable moves: a running grant on at most one card. All moves together stay within a
share of the placed jobs; a grant moves at most once in a plan. A rescue must be worth it: what it destroys of
future packing may not exceed what it lets in.
"""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.core.grants import Seat
from aliquot.core.ids import GrantId
from aliquot.core.jobs import Request
from aliquot.core.placement.placer import Choice
from aliquot.core.placement.rescue import Movable
from aliquot.core.placement.rescue import improve as find_improvement
from aliquot.core.placement.rescue import rescue as find_rescue
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk, Seated, terms_of
from aliquot.core.steps import Move, Tidy


class Mover:
    """The moves of one plan."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._moved: set[GrantId] = set()
        self._placed = 0

    @property
    def budget(self) -> int:
        """Moves that are still allowed."""
        tally = self._desk.world.tally
        allowed = int(self._desk.settings.rescue.share * (tally.granted + self._placed))
        return allowed - tally.moved - len(self._moved)

    def count_placed(self) -> None:
        """One more job was placed: the budget grows."""
        self._placed += 1

    def rescue(self, record: JobRecord) -> tuple[Move, Seated] | None:
        """The move that lets the job of `record` start, and its seat; None where none does, or may."""
        job = record.job
        if len(job.members) != 1 or job.members[0].cards > 1 or job.is_sited or self.budget < 1:
            return None
        option, shape = self._desk.memo.options(job.members[0])[0]
        found = find_rescue(self._desk.placer, shape, self._still_movable_on)
        if found is None or found.change > self._worth(shape):
            return None
        move = self._move(found.moved, found.home, record)
        seat = self._desk.seat_at(option, shape, found.seat.row, found.seat.mask)
        self._desk.book(seat)
        return move, Seated(seat, found.seat.loss, terms_of(found.seat))

    def tidy(self) -> list[Move | Tidy]:
        """Single moves that leave more room, once per share of capacity newly asked for."""
        rules, tally = self._desk.settings.rescue, self._desk.world.tally
        if rules.share <= 0:
            return []
        capacity = self._desk.capacity_milli()
        every = max(1, capacity * rules.tidy_every_milli // 1000)
        if tally.tidied // every == tally.asked_milli // every:
            return []
        if tally.asked_milli * 1000 < capacity * rules.tidy_from_milli:
            return []
        steps: list[Move | Tidy] = []
        while len(steps) < rules.tidy_moves and self.budget > 0:
            found = find_improvement(
                self._desk.placer,
                self._desk.memo.leaving,
                self._desk.world.residents.get,
                self._movable_on,
                lambda moved: _token(moved) in self._moved,
                float(rules.tidy_gain),
            )
            if found is None:
                break
            steps.append(self._move(found.moved, found.home, None))
        return [*steps, Tidy(tally.asked_milli)]

    def _worth(self, shape: Shape) -> float:
        """What a rescue may destroy, milli-cards."""
        return shape.milli * self._desk.settings.rescue.worth_milli / 1000

    def _still_movable_on(self, row: int) -> Sequence[Movable]:
        return [moved for moved in self._movable_on(row) if _token(moved) not in self._moved]

    def _movable_on(self, row: int) -> Sequence[Movable]:
        found = []
        for held, request, seat in self._desk.memo.movables.on(self._desk.world, row):
            if self._desk.draft.can_release(seat):
                shape = self._shape_of(request, seat)
                found.append(Movable(row, seat.mask.bit_length() - 1, shape, held))
        return found

    def _shape_of(self, request: Request, seat: Seat) -> Shape:
        """The shape under which `request` sits at `seat`: it matters where a node's cards differ."""
        options = self._desk.memo.options(request)
        if len(options) > 1 and not seat.whole:
            chunk, place = self._desk.draft.ledger.readable(seat.row)
            kind = int(chunk.kind[place])
            for _, shape in options:
                if shape.ask[kind] == tuple(seat.vector):
                    return shape
        return options[0][1]

    def _move(self, moved: Movable, home: Choice, beneficiary: JobRecord | None) -> Move:
        held = _token(moved)
        record, grant = self._desk.world.jobs[held.job], self._desk.world.grants[held.job][held.member]
        assert grant.seat is not None
        request = record.job.members[grant.id.member]
        self._desk.release(grant.seat)
        seat = self._desk.seat_at(request, moved.shape, home.row, home.mask)
        self._desk.book(seat)
        self._moved.add(grant.id)
        return Move(
            record.job.id,
            record.attempt,
            grant.id.member,
            self._desk.placement(seat),
            None if beneficiary is None else beneficiary.job.id,
        )


def _token(moved: Movable) -> GrantId:
    assert isinstance(moved.token, GrantId)
    return moved.token
