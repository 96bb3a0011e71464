"""Seats for gangs whose members care where the others are: groups, and wishes for racks, blocks and the like.

Counting comes first: how many members each row could take, summed by domain, says which domains can hold a
group at all. Of those the tightest is tried first (the least room beyond what is asked, then the first by
id), and members take the best rows in it by the pool's own policy. If that fails after all, since a count is
only a bound from above where wiring or NUMA nodes matter, the next is tried. Groups are seated one after the
other, the narrowest and largest first; where a later one finds no domain, an earlier one takes its next.

The search is bounded: `MOST_TRIES` arrangements are tried for one gang. Where a gang's members all ask for
the same it misses nothing within that bound; where they differ, a domain may be called full that a cleverer
order would still fill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.balance import spread_slices
from aliquot.core.grants import Seat
from aliquot.core.jobs import Job, Request
from aliquot.core.placement.cells import I32, I64
from aliquot.core.siting import Desk, Seated
from aliquot.core.spreading import Kin
from aliquot.core.wishes import LEVELS, Level, Wish, levels_from

MOST_TRIES: Final = 256
MOST_CLEARED: Final = 16
"""Domains that are looked at, the roomiest first, to stop others for a gang that has to be inside one."""

TRIES_BESIDE: Final = 4
"""Domains tried at one level of a wish that is only preferred, before a wider level is."""


class Part(NamedTuple):
    """Members that are seated together, and their wish."""

    members: tuple[int, ...]
    wish: Wish | None


class _Block(NamedTuple):
    """Members to be seated on `rows` (None: anywhere), in as few domains of `packed` as will do."""

    members: tuple[int, ...]
    rows: I32 | None
    packed: Level | None = None


def seat_gang(desk: Desk, job: Job) -> list[Seated] | None:
    """Seats in the order of members: of all, or of the first so many where its minima allow that.

    None where no wish can be kept now; the draft is then as before.
    """
    asked = (job.members, job.minimum, job.groups, job.wish)
    if desk.is_refused(asked):
        return None
    for count in range(len(job.members), job.least - 1, -1):
        seats = _Search(desk, job, count).run()
        if seats is not None:
            return seats
    desk.refuse(asked)
    return None


def count_seated(desk: Desk, job: Job, members: tuple[int, ...], rows: I32) -> int:
    """How many of `members` find room on `rows` at once; the draft is as before."""
    mark = desk.mark()
    left = _Search(desk, job, len(job.members)).seat_each(members, rows)
    desk.rollback(mark)
    return len(members) - len(left)


def domains_to_clear(desk: Desk, job: Job) -> list[I32 | None]:
    """The rows of the domains that might be cleared for a job that has to be inside one; None: anywhere."""
    wish = job.wish
    if wish is None or wish.required is None:
        return [None]
    return [*roomiest(desk, job, tuple(range(len(job.members))), wish.required, None, MOST_CLEARED)]


def roomiest(
    desk: Desk, job: Job, members: tuple[int, ...], level: Level, rows: I32 | None, most: int
) -> Iterator[I32]:
    """The rows of up to `most` domains of `level`, as far as among `rows`; those with most room now first."""
    split = desk.split(level)
    largest = max((job.members[member] for member in members), key=_size)
    room = split.sums(desk.fills(largest), rows)
    for at in (-room).argsort(kind="stable")[:most].tolist():
        yield _both(split.rows[at], rows)


def seat_next(desk: Desk, job: Job, seats: Sequence[Seat]) -> Seated | None:
    """A seat for the next member of a job without groups, of which the first have `seats`.

    By its wish; else apart from the others, and from its copies, where it is to be spread.
    """
    request, wish, rows = job.members[len(seats)], job.wish, [seat.row for seat in seats]
    if wish is None:
        return desk.seat_apart(request, kin_of(desk, job, seats)) if job.spread else desk.seat(request)
    among: I32 | None = None
    if wish.required is not None:
        among = _around(desk, wish.required, rows[0])
    if wish.balanced is not None and len(rows) % wish.slice:
        among = _both(_around(desk, wish.balanced, rows[-1]), among)
    return desk.seat(request) if among is None else desk.seat_within(request, among)


def kin_of(desk: Desk, job: Job, seats: Sequence[Seat]) -> Kin:
    """What more members of `job`, which has `seats`, are kept apart from."""
    return Kin(tuple(seats), desk.copies_of(job.replica_of) if job.replica_of else ())


def largest_first(members: tuple[Request, ...]) -> list[int]:
    """Members by size; members of one size keep their order."""
    return sorted(range(len(members)), key=lambda at: _size(members[at]), reverse=True)


def parts_of(job: Job, count: int) -> list[Part]:
    """The first `count` members by group, the narrowest wish and the largest group first."""
    if not job.groups:
        return [Part(tuple(range(count)), job.wish)]
    parts = [Part(group.among(count), group.wish) for group in job.groups]
    return sorted((part for part in parts if part.members), key=lambda part: _urgency(job, part))


class _Search:
    """One gang of so many members on one desk."""

    def __init__(self, desk: Desk, job: Job, count: int) -> None:
        self._desk, self._job = desk, job
        self._count = count
        self._parts = parts_of(job, count)
        self._are_alike = job.members.count(job.members[0]) == len(job.members)
        self._seats: dict[int, Seated] = {}
        self._tries = MOST_TRIES

    def run(self) -> list[Seated] | None:
        """Seats for all members, booked on the draft; None where there are none."""
        for rows in self._outer():
            if self._seat_from(0, rows):
                return [self._seats[member] for member in range(self._count)]
        return None

    def _outer(self) -> Iterator[I32 | None]:
        """Where the whole gang may be, if its groups have wishes of their own."""
        wish = self._job.wish if self._job.groups else None
        members = tuple(range(self._count))
        if wish is not None and wish.preferred is not None:
            for level in levels_from(wish.preferred, wish.required):
                yield from self._holding(level, None, members)
        if wish is not None and wish.required is not None:
            yield from self._holding(wish.required, None, members)
        else:
            yield None

    def _seat_from(self, at: int, rows: I32 | None) -> bool:
        """Whether parts `at` and on find seats on `rows`; the draft is as before where not."""
        if at == len(self._parts):
            return True
        for blocks in self._arrangements(self._parts[at], rows):
            if not self._tries:
                return False
            self._tries -= 1
            if at == len(self._parts) - 1 and (seated := self._seat_at_once(blocks)) is not None:
                if seated:
                    return True
                continue
            mark = self._desk.mark()
            if all(self._seat_block(block) for block in blocks) and self._seat_from(at + 1, rows):
                return True
            self._desk.rollback(mark)
        return False

    def _arrangements(self, part: Part, rows: I32 | None) -> Iterator[list[_Block]]:
        """Ways to seat `part` on `rows`, the best first."""
        wish = part.wish
        if wish is None:
            yield [_Block(part.members, rows)]
        elif wish.required is None:
            yield from self._loose(part, wish, rows)
        else:
            for inner in self._holding(wish.required, rows, part.members):
                yield from self._loose(part, wish, inner)

    def _loose(self, part: Part, wish: Wish, rows: I32 | None) -> Iterator[list[_Block]]:
        """What is left of a wish inside what it requires."""
        if wish.balanced is not None:
            yield from self._balanced(part, wish, wish.balanced, rows)
            return
        if wish.preferred is None:
            yield [_Block(part.members, rows)]
            return
        for level in levels_from(wish.preferred, wish.required):
            packed = None if level is wish.preferred else wish.preferred
            for tried, inner in enumerate(self._holding(level, rows, part.members)):
                if tried == TRIES_BESIDE:
                    break
                yield [_Block(part.members, inner, packed)]
        yield [_Block(part.members, rows, wish.preferred)]

    def _balanced(self, part: Part, wish: Wish, level: Level, rows: I32 | None) -> Iterator[list[_Block]]:
        """Slices spread evenly; where a domain turns out to hold fewer, the rest is spread anew."""
        members, split = part.members, self._desk.split(level)
        slices = [members[at : at + wish.slice] for at in range(0, len(members), wish.slice)]
        asked = self._asked(members)
        if len(asked) == 1:
            room = split.sums(self._desk.fills(next(iter(asked))), rows) // wish.slice
        else:  # as many slices as there is room for the scarcest of what they ask
            room = np.array(
                [
                    split.sums(self._desk.fills(request), rows) * len(slices) // many
                    for request, many in asked.items()
                ]
            ).min(axis=0)
        while (shares := spread_slices(room.tolist(), len(slices), wish.over)) is not None:
            left = iter(slices)
            blocks = [
                _Block(
                    tuple(member for _ in range(share) for member in next(left)), _both(split.rows[at], rows)
                )
                for at, share in shares
            ]
            yield blocks
            full = next((at for at, block in zip(shares, blocks, strict=True) if not self._fits(block)), None)
            if full is None:
                return  # one after the other they fit: it was others that did not
            room[full[0]] = full[1] - 1

    def _fits(self, block: _Block) -> bool:
        mark = self._desk.mark()
        fits = self._seat_block(block)
        self._desk.rollback(mark)
        return fits

    def _holding(self, level: Level, rows: I32 | None, members: tuple[int, ...]) -> Iterator[I32]:
        """The rows of each domain of `level` that has room for all `members` by count, tightest first."""
        split = self._desk.split(level)
        asked = self._asked(members)
        largest = max(asked, key=_size)
        room = split.sums(self._desk.fills(largest), rows)
        holds = room >= asked[largest]
        for request, many in asked.items():
            if request is not largest:
                holds &= split.sums(self._desk.fills(request), rows) >= many
        found = np.flatnonzero(holds)
        for at in found[room[found].argsort(kind="stable")].tolist():
            yield _both(split.rows[at], rows)

    def _asked(self, members: tuple[int, ...]) -> dict[Request, int]:
        """What `members` ask for, and how many of them ask for it."""
        if self._are_alike:
            return {self._job.members[0]: len(members)}
        return Counter(self._job.members[member] for member in members)

    def _seat_at_once(self, blocks: list[_Block]) -> bool | None:
        """Whether the members of all blocks, which share no row, are seated; None: it has to be tried.

        All of them or none: the draft is as before then.
        """
        series = []
        for members, rows, packed in blocks:
            if rows is None or packed is not None or len(self._asked(members)) > 1:
                return None
            series.append((self._job.members[members[0]], rows, len(members)))
        found = self._desk.seat_all_series(series)
        if found is None:
            return None
        for block, seats in zip(blocks, found, strict=False):
            self._seats.update(zip(block.members, seats, strict=True))
        return bool(found)

    def _seat_block(self, block: _Block) -> bool:
        """Whether its members are seated; what was seated before one failed is the caller's to take back."""
        if block.packed is not None:
            return self._pack(block, block.packed)
        return not self.seat_each(block.members, block.rows)

    def _pack(self, block: _Block, level: Level) -> bool:
        """In the tightest domain that holds all that are left, else as many as go into the roomiest."""
        split, left = self._desk.split(level), block.members
        closed: set[int] = set()
        while left:
            best = self._roomiest(split.sums(self._most(left), block.rows), len(left), closed)
            if best is None:
                return not self.seat_each(left, block.rows)
            closed.add(best)
            left = self.seat_each(left, _both(split.rows[best], block.rows))
        return True

    def _most(self, members: tuple[int, ...]) -> I64:
        """[rows] room for the largest of `members`."""
        return self._desk.fills(max((self._job.members[member] for member in members), key=_size))

    @staticmethod
    def _roomiest(room: I64, need: int, closed: set[int]) -> int | None:
        room = room.copy()
        room[list(closed)] = 0
        enough = np.flatnonzero(room >= need)
        if enough.shape[0]:
            return int(enough[room[enough].argmin()])
        return int(room.argmax()) if room.any() else None

    def seat_each(self, members: tuple[int, ...], rows: I32 | None) -> tuple[int, ...]:
        """Seat `members` on `rows`, the largest first; those for whom there is no room, in order."""
        asked = self._job.members
        left = []
        refused: set[Request] = set()
        alike = len(self._asked(members)) == 1
        if rows is not None and alike and len(members) > 1:
            seats = self._desk.seat_series(asked[members[0]], rows, len(members))
            if seats is not None:
                self._seats.update(zip(members, seats, strict=False))
                return members[len(seats) :]
        if not alike:
            members = tuple(sorted(members, key=lambda member: _size(asked[member]), reverse=True))
        for member in members:
            request = asked[member]
            seat = None
            if request not in refused:
                seat = self._desk.seat(request) if rows is None else self._desk.seat_within(request, rows)
            if seat is None:
                refused.add(request)
                left.append(member)
            else:
                self._seats[member] = seat
        return tuple(sorted(left))


def _around(desk: Desk, level: Level, row: int) -> I32:
    """The rows of the domain that `row` is in; itself alone where that is unknown."""
    split = desk.split(level)
    number = int(split.number[row])
    return split.rows[number] if number < len(split.rows) else np.array([row], np.int32)


def _both(rows: I32, others: I32 | None) -> I32:
    return rows if others is None else np.intersect1d(rows, others, assume_unique=True)


def _urgency(job: Job, part: Part) -> tuple[int, int, int]:
    wish = part.wish
    level = len(LEVELS) if wish is None or wish.required is None else LEVELS.index(wish.required)
    cards = sum(job.members[member].cards for member in part.members)
    return (level, -cards, -len(part.members))


def _size(request: Request) -> tuple[int, int, int]:
    return (request.cards, request.cpu_milli, request.host_mib)
