"""When a blocked job could start, and where, if what runs ends as expected.

Expected ends are replayed row by row on a copy of what the draft leaves: a whole card is free when all who
hold a part of it have ended, a shared one as soon as enough of it is given back; cpu and host memory count.
A row's first possible moment is found without looking at other rows, so a gang gets the rows that are ready
first. What others have reserved is not free until they are expected to be through.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aliquot.core.columns import DIMS
from aliquot.core.grants import Seat, bits
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.shadow import FAR, expected_end
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.units import FULL


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
        self._settings: Settings = desk.settings
        self._ends: dict[int, list[Ending]] = {}
        self._shut: dict[int, list[tuple[int, int]]] = {}  # row: (cards, closed until ms)
        self._lent: dict[int, list[Ending]] = {}
        self._read(desk.world)

    def end_of(self, record: JobRecord) -> int:
        """When what runs of `record` is expected to be over."""
        if record.phase is Phase.STOPPING:
            grace = 0 if record.evicting is None else record.evicting.grace_ms
            return max(self._now + 1, record.since_ms + grace)
        return expected_end(record.granted_ms, record.job.estimate_ms, self._now, self._settings.overrun)

    def add(self, record: JobRecord, seats: Iterable[Seat]) -> None:
        """A job starts now on `seats`, which the desk has booked."""
        estimate = record.job.estimate_ms
        end = FAR if estimate is None else self._now + max(1, estimate)
        for seat in seats:
            self._ends.setdefault(seat.row, []).append(Ending(end, seat))

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

    def earliest(self, record: JobRecord, members: tuple[Request, ...]) -> Ahead | None:
        """The earliest moment at which all `members` could start, each as early as it can; None if never."""
        taken: dict[int, list[Seat]] = {}
        seats: list[Seat | None] = [None] * len(members)
        at = self._now
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

    def _read(self, world: Frozen) -> None:
        for job, grants in world.grants.items():
            end = self.end_of(world.jobs[job])
            for grant in grants:
                if grant.seat is not None:
                    self._ends.setdefault(grant.seat.row, []).append(Ending(end, grant.seat))
        for endings in self._ends.values():
            endings.sort()

    def _first_row(self, request: Request, taken: dict[int, list[Seat]]) -> tuple[int, Seat] | None:
        """The row that is ready first, and the seat on it; the first row on a tie."""
        best: tuple[int, Seat] | None = None
        option, shape = self._desk.memo.options(request)[0]
        for row in range(self._desk.world.rows):
            found = self._ready(row, option, shape, taken.get(row, ()), FAR if best is None else best[0])
            if found is not None and (best is None or found[0] < best[0]):
                best = found
                if best[0] <= self._now:
                    break
        return best

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
        ends = sorted([*self._ends.get(row, ()), *self._lent.get(row, ())])
        shut = self._shut.get(row, ())
        moments = sorted({self._now, *(end.at for end in ends), *(until for _, until in shut)})
        at = 0
        for moment in moments:
            if moment >= before:
                return None
            while at < len(ends) and ends[at].at <= moment:
                state.give_back(ends[at].seat)
                at += 1
            closed = 0
            for mask, until in shut:
                closed |= mask if until > moment else 0
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
