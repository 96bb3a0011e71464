"""Why a gang whose members would all find room waits for nearness, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from aliquot.core.domains import Split
from aliquot.core.gangs import count_seated, parts_of
from aliquot.core.jobs import Job
from aliquot.core.placement.cells import I32, I64, Cells
from aliquot.core.placement.fills import among
from aliquot.core.placement.placer import request_of
from aliquot.core.room.packing import Load, count_packed
from aliquot.core.seating import seat_all
from aliquot.core.siting import Desk
from aliquot.core.steps import Gate, Near, Wait
from aliquot.core.wishes import Level, Wish

TRIED: Final = 8
"""Domains in which members that ask for different things are seated to see how many there is room for."""


def wait_for_nearness(desk: Desk, job: Job, until_ms: int | None) -> Wait | None:
    """The wait of a job whose members would find room, were it not for its wishes; None where it isn't so.

    NEVER where no domain could hold them with nothing else on it.
    """
    if not job.is_sited:
        return None
    mark = desk.mark()
    seated = seat_all(desk, job)
    desk.rollback(mark)
    if seated is not None:
        return None
    if (never := find_never_near(desk, job)) is not None:
        return Wait(job.id, Gate.NEVER, near=never)
    near = find_near(desk, job)
    return None if near is None else Wait(job.id, Gate.TOPOLOGY, until_ms=until_ms, near=near)


def find_never_near(desk: Desk, job: Job) -> Near | None:
    """The first wish of `job`, or of all its groups at once, that could not be kept with nothing else there.

    None: there is none, or it is not sure.
    """
    for near in _nears(desk, job):
        if near.most is not None and near.most < near.need:
            return near
    return None


def find_near(desk: Desk, job: Job) -> Near | None:
    """Which wish of `job` can't be kept now, with the fewest members it may start with; None: it has none.

    `best` is None where each wish could be kept alone, and not all at once.
    """
    first: Near | None = None
    for near in _nears(desk, job):
        if near.best is not None and near.best < near.need:
            return near
        first = first or near
    return None if first is None else Near(first.level, first.need, None, first.domains, None, first.group)


def _nears(desk: Desk, job: Job) -> Iterator[Near]:
    """What there is for each wish that has to be kept, then for those of all groups at once."""
    for name, members, wish in _scopes(job):
        near = _near(desk, job, name, members, wish)
        if near is not None:
            yield near
    yield from _at_once(desk, job)


def _at_once(desk: Desk, job: Job) -> Iterator[Near]:
    """Groups that have to be inside one domain each: how many of a level find room side by side.

    Then where all of the job has to be inside one domain as well: whether any could hold all that when empty.
    """
    inside = _inside(job)
    for level, parts in inside.items():
        if len(parts) > 1:
            best, most = (_packed(desk, job, level, parts, None, empty=empty) for empty in (False, True))
            yield Near(level, len(parts), best, len(desk.split(level).names), max(best, most), groups=True)
    outer = None if job.wish is None else job.wish.required
    if outer is None or not inside:
        return
    domains = desk.split(outer).rows
    if not any(_holds(desk, job, inside, rows) for rows in domains):
        yield Near(outer, job.least, None, len(domains), 0)


def _inside(job: Job) -> dict[Level, list[tuple[int, ...]]]:
    """The members of each group that has to be inside one domain, by its level."""
    found: dict[Level, list[tuple[int, ...]]] = {}
    for part in parts_of(job, job.least) if job.groups else ():
        if part.wish is not None and part.wish.required is not None:
            found.setdefault(part.wish.required, []).append(part.members)
    return found


def _holds(desk: Desk, job: Job, inside: dict[Level, list[tuple[int, ...]]], rows: I32) -> bool:
    """Whether `rows` could hold all of the job, each group inside one domain, with nothing else there."""
    (whole,), (room,) = _loads(desk, job, [tuple(range(job.least))], None, rows, empty=True)
    if any(need > have for need, have in zip(whole, room, strict=True)):
        return False
    return all(
        _packed(desk, job, level, parts, rows, empty=True) == len(parts) for level, parts in inside.items()
    )


def _packed(
    desk: Desk, job: Job, level: Level, parts: list[tuple[int, ...]], rows: I32 | None, *, empty: bool
) -> int:
    """How many of `parts` find room at once in domains of `level`, of `rows` only where given.

    Counted, so a bound from above: what asks alike shares the room there is for it, and all share the cards.
    """
    return count_packed(*_loads(desk, job, parts, desk.split(level), rows, empty=empty))


def _loads(
    desk: Desk, job: Job, parts: list[tuple[int, ...]], split: Split | None, rows: I32 | None, *, empty: bool
) -> tuple[list[Load], list[Load]]:
    """What each of `parts` takes, and each domain has: members by what they ask, then whole cards.

    Without a `split`, `rows` are one domain.
    """
    every = tuple(member for members in parts for member in members)
    asked = list(Counter(job.members[member] for member in every))
    needs = []
    for members in parts:
        count = Counter(job.members[member] for member in members)
        cards = sum(request.cards * many for request, many in count.items() if request.whole)
        needs.append((*(count[request] for request in asked), cards))
    cells = _emptied(desk) if empty else desk.placer.board.cells
    free = np.bitwise_count(cells.usable & cells.idle).astype(np.int64)
    counts = [*(room for room, _ in _rooms(desk, job, every, empty=empty)), free]
    if split is None:
        return needs, [tuple(int(each[rows].sum()) for each in counts)]
    return needs, list(zip(*(split.sums(each, rows).tolist() for each in counts), strict=True))


def _near(desk: Desk, job: Job, name: str, members: tuple[int, ...], wish: Wish) -> Near | None:
    """What there is for a wish that has to be kept; None for one that does not."""
    if wish.required is not None:
        return _required(desk, job, name, members, wish)
    if wish.balanced is not None:
        return _balanced(desk, job, name, members, wish)
    return None


def _scopes(job: Job) -> Iterator[tuple[str, tuple[int, ...], Wish]]:
    """(group, or nothing for all; its members; its wish), as far as there are wishes."""
    count = job.least
    if job.wish is not None:
        yield "", tuple(range(count)), job.wish
    names = {group.members[0]: group.name for group in job.groups if group.members}
    for part in parts_of(job, count) if job.groups else ():
        if part.wish is not None:
            yield names[part.members[0]], part.members, part.wish


def _required(desk: Desk, job: Job, name: str, members: tuple[int, ...], wish: Wish) -> Near:
    assert wish.required is not None
    split = desk.split(wish.required)
    room, most = _rooms(desk, job, members), _rooms(desk, job, members, empty=True)
    held = _held(split, room)
    best = int(held.max(initial=0))
    if len(room) > 1:  # they may each find room and not together
        order = (-held).argsort(kind="stable")[:TRIED].tolist()
        best = max((count_seated(desk, job, members, split.rows[at]) for at in order), default=0)
    empty = int(_held(split, most).max(initial=0))
    return Near(wish.required, len(members), best, len(split.names), max(best, empty), name)


def _balanced(desk: Desk, job: Job, name: str, members: tuple[int, ...], wish: Wish) -> Near:
    assert wish.balanced is not None
    split = desk.split(wish.balanced)
    need = -(-len(members) // wish.slice)
    counts = []
    for empty in (False, True):
        rooms = _rooms(desk, job, members, empty=empty)
        counts.append(
            int((np.min([split.sums(room, None) for room, _ in rooms], axis=0) // wish.slice).sum())
        )
    return Near(wish.balanced, need, counts[0], len(split.names), max(counts), name, wish.slice)


def _held(split: Split, rooms: list[tuple[I64, int]]) -> I64:
    """[domains] members that find room in each, as if those who ask for something else were not there."""
    held: I64 = np.sum([np.minimum(split.sums(room, None), many) for room, many in rooms], axis=0)
    return held


def _rooms(desk: Desk, job: Job, members: tuple[int, ...], *, empty: bool = False) -> list[tuple[I64, int]]:
    """([rows] room for, number of) members that ask alike; with nothing on any row where `empty`."""
    asked = Counter(job.members[member] for member in members)
    if not empty:
        return [(desk.fills(request), many) for request, many in asked.items()]
    cells, plain = _emptied(desk), among(compiled=False)
    found = []
    for request, many in asked.items():
        total = np.zeros(cells.kind.shape[0], np.int64)
        for _, shape in desk.memo.options(request):
            out = np.zeros_like(total)
            rows = np.arange(desk.world.rows, dtype=np.int32)
            plain.count_fills(cells, request_of(shape, desk.placer.board.hardware), shape.host, rows, out)
            total += out
        found.append((total, many))
    return found


def _emptied(desk: Desk) -> Cells:
    """The cells as they were if nobody held anything, and no node or card was out for a while."""
    cells = desk.placer.board.cells
    cpu = np.array([*(kind.cpu_milli for kind in desk.world.kinds), 0], np.int64)[cells.kind]
    host = np.array([*(kind.host_mib for kind in desk.world.kinds), 0], np.int64)[cells.kind]
    left = cells.full[cells.kind]
    every = [*((1 << len(kind.cards)) - 1 for kind in desk.world.kinds), 0]
    usable = np.array(every, cells.usable.dtype)[cells.kind]
    return cells._replace(usable=usable, idle=usable, cpu=cpu, host=host, left=left)
