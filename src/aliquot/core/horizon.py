"""When a blocked job could start, and where, if what runs ends as expected.

Expected ends are replayed row by row on a copy of what the draft leaves: a whole card is free when all who
hold a part of it have ended, a shared one as soon as enough of it is given back; cpu and host memory count.
A row's first possible moment is found without looking at other rows, so a gang gets the rows that are ready
first. What others have reserved is not free until they are expected to be through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from aliquot.core.closing import Fence
from aliquot.core.columns import DIMS
from aliquot.core.ends import Stay, stays_on
from aliquot.core.grants import Seat, bits
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.lengths import length_by
from aliquot.core.memo import need_of
from aliquot.core.placement.cells import I64
from aliquot.core.placement.shapes import Shape
from aliquot.core.placement.stays import Clock
from aliquot.core.records import JobRecord
from aliquot.core.room.shadow import FAR, expected_end
from aliquot.core.siting import Desk
from aliquot.core.units import FULL

TRIES = 8
"""Moments looked at for a gang that windows stand in the way of."""


class Ending(NamedTuple):
    """What a row gets back, and when (ms)."""

    at: int
    seat: Seat


class Ahead(NamedTuple):
    """The earliest start of a job, and its seats, one per member."""

    at: int
    seats: tuple[Seat, ...]


class _Row:
    """What one row has left at some moment."""

    def __init__(self, desk: Desk, row: int) -> None:
        chunk, place = desk.draft.ledger.readable(row)
        self.kind = int(chunk.kind[place])
        self.usable = int(chunk.usable[place])
        self.cpu, self.host = int(chunk.cpu[place]), int(chunk.host[place])
        self.left: list[list[int]] = chunk.left[place].tolist()

    def give_back(self, seat: Seat, sign: int = 1) -> None:
        """Add what `seat` holds; or take it, with `sign` -1."""
        self.cpu += sign * seat.cpu
        self.host += sign * seat.host
        for card in bits(seat.mask):
            have = self.left[card]
            for dim in range(DIMS):
                have[dim] += sign * seat.vector[dim]


class Horizon:
    """Expected ends by row, on one desk at one moment."""

    def __init__(self, desk: Desk, now: int) -> None:
        self._desk, self._now = desk, now
        self._overrun = desk.settings.overrun
        self._length = length_by(desk.settings)
        self._ends: dict[int, list[Ending]] = {}  # of the rows that were looked at
        self._added: dict[int, list[Ending]] = {}
        self._shut: dict[int, list[tuple[int, int]]] = {}  # row: (cards, closed until ms)
        self._lent: dict[int, list[Ending]] = {}
        self._fence: Fence | None = None
        self._begin = now
        self._moments: dict[Shape, I64] = {}  # [rows] from when on there may be room
        self._asked: dict[tuple[Shape, int, int], tuple[int, Seat] | None] = {}
        self._among: frozenset[int] | None = None  # rows that may be used; None: all

    def add(self, record: JobRecord, seats: Iterable[Seat]) -> None:
        """A job starts now on `seats`, which the desk has booked."""
        estimate = self._length(record)
        end = FAR if estimate is None else self._now + max(1, estimate)
        for seat in seats:
            self._added.setdefault(seat.row, []).append(Ending(end, seat))

    def shut(self, seats: Iterable[Seat], blocked: Iterable[Seat], until_ms: int) -> None:
        """Cards of `seats` are somebody's until `until_ms`; of them `blocked` is booked on the draft."""
        for seat in seats:
            self._shut.setdefault(seat.row, []).append((seat.mask, until_ms))
        for seat in blocked:
            self._lent.setdefault(seat.row, []).append(Ending(until_ms, seat))

    def clear_shut(self) -> None:
        """Nothing is reserved."""
        self._shut.clear()
        self._lent.clear()

    def narrow(self, rows: Iterable[int] | None) -> None:
        """From now on only `rows` may be used; None: all."""
        self._among = None if rows is None else frozenset(rows)

    def earliest(self, record: JobRecord, members: tuple[Request, ...]) -> Ahead | None:
        """The earliest moment at which all `members` could start, each as early as it can; None if never."""
        world = self._desk.world
        fence = Fence(record, world, self._now, self._length) if world.closures else None
        self._fence = None if fence is None or fence.is_empty else fence
        if self._fence is None or len(members) == 1:
            return self._from(self._now, members)
        at = self._now
        for _ in range(TRIES):  # all start with the last, and whoever waits for it may meet a window then
            found = self._from(at, members)
            if found is None or found.at <= at:
                return found
            at = found.at
        return None

    def _from(self, at: int, members: tuple[Request, ...]) -> Ahead | None:
        """As `earliest`, where no member starts before `at`."""
        self._begin = at
        self._moments.clear()
        self._asked.clear()
        taken: dict[int, list[Seat]] = {}
        seats: list[Seat | None] = [None] * len(members)
        order = sorted(range(len(members)), key=lambda member: (-members[member].cards, member))
        for member in order:
            found = self._first_row(members[member], taken)
            if found is None:
                return None
            when, seat = found
            at = max(at, when)
            taken.setdefault(seat.row, []).append(seat)
            seats[member] = seat
        return Ahead(at, tuple(seat for seat in seats if seat is not None))

    def _first_row(self, request: Request, taken: dict[int, list[Seat]]) -> tuple[int, Seat] | None:
        """The row that is ready first, and the seat on it; the first row on a tie."""
        option, shape = self._desk.memo.options(request)[0]
        rows: Sequence[int] = range(self._desk.world.rows)
        if self._among is not None:
            rows = sorted(self._among)
        if not self._desk.placer.compiled:
            return self._first_of(rows, option, shape, taken)
        # where something was booked, kept or closed that the columns do not know of, each row is asked
        odd = {*taken, *self._lent, *self._shut, *self._added}
        if self._fence is not None:
            odd.update(row for row in rows if any(self._fence.ends(row)))
        if self._among is not None:
            odd &= self._among
        best: tuple[int, Seat] | None = None
        for row in sorted(odd):
            key = (shape, row, len(taken.get(row, ())))
            if key not in self._asked:
                self._asked[key] = self._ready(row, option, shape, taken.get(row, ()), FAR)
            best = _earlier(best, self._asked[key])
        moments = self._moments_of(shape).copy()
        if self._among is not None:
            moments[np.isin(np.arange(len(moments)), rows, invert=True)] = FAR
        moments[list(odd)] = FAR
        while True:
            row = int(moments.argmin())
            at = int(moments[row])
            if at >= FAR or (best is not None and (at, row) > (best[0], best[1].row)):
                return best
            moments[row] = FAR
            best = _earlier(best, self._ready(row, option, shape, (), FAR))

    def _first_of(
        self, rows: Sequence[int], request: Request, shape: Shape, taken: dict[int, list[Seat]]
    ) -> tuple[int, Seat] | None:
        """The plain twin: row after row."""
        best: tuple[int, Seat] | None = None
        for row in rows:
            found = self._ready(row, request, shape, taken.get(row, ()), FAR if best is None else best[0])
            if found is not None and (best is None or found[0] < best[0]):
                best = found
                if best[0] <= self._begin:
                    break
        return best

    def _moments_of(self, shape: Shape) -> I64:
        """[rows] when each has room for `shape` at the earliest, as far as counting tells."""
        known = self._moments.get(shape)
        if known is None:
            desk, rules, ends = self._desk, self._overrun, self._desk.memo.ends
            clock = Clock(self._now, self._begin, FAR, rules.least_ms, rules.again_milli)
            stays = ends.of(desk.world, desk.settings)
            known = desk.memo.moments.of(desk.placer, shape, stays, ends.number, clock, desk.world.rows)
            known[list(desk.world.strained)] = FAR
            self._moments[shape] = known
        return known

    def _endings(self, row: int) -> list[Ending]:
        """What `row` gets back of all that is held there, without what this plan books."""
        if row not in self._ends:
            stays = stays_on(self._desk.world, row, self._length)
            self._ends[row] = [Ending(self._end_of(stay), stay.seat) for stay in stays]
        return self._ends[row]

    def _end_of(self, stay: Stay) -> int:
        if stay.since < 0:
            return max(self._now + 1, stay.end)
        length = None if stay.end >= FAR else stay.end - stay.since
        return expected_end(stay.since, length, self._now, self._overrun)

    def _ready(
        self, row: int, request: Request, shape: Shape, taken: Iterable[Seat], before: int
    ) -> tuple[int, Seat] | None:
        """When `row` first has room for `shape`, if that is earlier than `before`."""
        if row in self._desk.world.strained:
            return None
        state = _Row(self._desk, row)
        kind = self._desk.world.kinds[state.kind]
        if not shape.eligible[state.kind] or shape.cpu > kind.cpu_milli or shape.host > kind.host_mib:
            return None
        if shape.cards > (shape.eligible[state.kind] & state.usable).bit_count():
            return None
        for booked in taken:
            state.give_back(booked, -1)
        ends = sorted([*self._endings(row), *self._added.get(row, ()), *self._lent.get(row, ())])
        shut = self._shut.get(row, ())
        fence, begin = self._fence, self._begin
        opened = () if fence is None else fence.ends(row)
        ended = (end.at for end in ends)
        moments = sorted({self._now, begin, *ended, *(until for _, until in shut), *opened})
        at = 0
        for moment in moments:
            if moment >= before:
                return None
            while at < len(ends) and ends[at].at <= moment:
                state.give_back(ends[at].seat)
                at += 1
            if moment < begin:
                continue
            closed = 0
            for mask, until in shut:
                closed |= mask if until > moment else 0
            if fence is not None:
                fenced = fence.closed(row, moment)
                if fenced.whole:
                    continue
                closed |= fenced.cards
            seat = self._fit(row, state, kind, request, shape, closed)
            if seat is not None:
                return moment, seat
        return None

    def _fit(
        self, row: int, state: _Row, kind: NodeKind, request: Request, shape: Shape, closed: int
    ) -> Seat | None:
        if state.cpu < shape.cpu or state.host < shape.host:
            return None
        if not shape.cards:
            return self._desk.seat_at(request, shape, row, 0)
        free = 0
        ask = shape.ask[state.kind]
        for card in bits(shape.eligible[state.kind] & state.usable & ~closed):
            left = state.left[card]
            if shape.whole:
                fits = left[0] >= FULL and left[1] >= kind.cards[card].usable_mib
            else:
                fits = all(have >= need for have, need in zip(left, ask, strict=True))
            free |= fits << card
        if free.bit_count() < shape.cards:
            return None
        mask = self._desk.choose_cards(state.kind, free, shape.cards, need_of(request))
        return self._desk.seat_at(request, shape, row, mask) if mask else None


def _earlier(one: tuple[int, Seat] | None, other: tuple[int, Seat] | None) -> tuple[int, Seat] | None:
    """Of two moments and seats the earlier; at one moment that of the first row."""
    if one is None or other is None:
        return one or other
    return other if (other[0], other[1].row) < (one[0], one[1].row) else one
