"""In which order rows are worth a look: by what clearing them costs at the least.

For each row a lower bound on worst rank, cost and number of victims, worked out for all rows at once: the
cards that are lacking, at the least price per card of those who hold some. Where everybody is stopped for
whole cards the bound is exact, so a search can stop at the first row that cannot do better.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from aliquot.core.placement.cells import I64, Cells
from aliquot.core.placement.fills import among, counted
from aliquot.core.placement.shapes import Shape
from aliquot.core.room.ground import Ground, Place
from aliquot.core.room.plot import ALIKE_MS
from aliquot.core.room.vacancy import Wish

NEVER: Final = 1 << 30
"""More cards than any row has."""

LEAST, TENANTS, JOBS, WORST = range(4)
"""Columns of what clearing a row takes at the least: cost; tenants there; how many of them; worst rank."""

_FIRST_ROWS = 64  # counted in one go, and of those after them four times as many each time


def find_prospects(ground: Ground, rows: int, wish: Wish, most: int) -> list[Place]:
    """The least place of each row where clearing might let one member of `wish` in, the best `most` first."""
    lack = lacking_cards(ground.cells, rows, wish)
    weighed: I64 = np.zeros((rows, 4), np.int64)
    (weigh_compiled if ground.compiled else weigh_plain)(ground, lack, weighed)
    found = np.flatnonzero(weighed[:, TENANTS])
    least, tenants_there, jobs, worst = (weighed[found, at] for at in (LEAST, TENANTS, JOBS, WORST))
    keys = (found, least, tenants_there, jobs, least // ALIKE_MS, worst)
    order = np.lexsort(keys)[:most]
    columns = [column[order].tolist() for column in (worst, least, jobs, tenants_there, found)]
    return [
        (worst, least // ALIKE_MS, jobs, 0, tenants, least, at)
        for worst, least, jobs, tenants, at in zip(*columns, strict=True)
    ]


def weigh_compiled(ground: Ground, lack: I64, out: I64) -> None:
    """As `weigh_plain`."""
    from aliquot.core.room.kernels.weigh import weigh

    tenants, roll = ground.tenants, ground.tenants.roll
    costs = (tenants.cost, ground.ranks(slice(None)))
    weigh(roll.held, roll.start, roll.count, ground.open, *costs, lack, tenants.has_parts, out)


def weigh_plain(ground: Ground, lack: I64, out: I64) -> None:
    """Fill `out` [rows, columns], 0 where not enough can be cleared. `weigh_compiled` does the same."""
    rows = len(lack)
    row, at, cards = ground.entries()
    keep = lack[row] < NEVER
    row, at, cards = row[keep], at[keep], cards[keep]
    if not len(row):
        return
    cost = ground.tenants.cost[at]
    rank = ground.ranks(at)

    order = np.lexsort((cost / cards, row))
    used = _used(row[order], cards[order], lack)
    np.add.at(out[:, LEAST], row[order], cost[order] * used // cards[order])

    if not ground.tenants.has_parts:  # the job of a part may be counted already
        order = _ordered(row, cards.max(initial=0) - cards)
        out[:, JOBS] = np.bincount(row[order], _used(row[order], cards[order], lack) > 0, rows)

    order = _ordered(row, rank)
    worst = np.where(_used(row[order], cards[order], lack) > 0, rank[order], 0)
    np.maximum.at(out[:, WORST], row[order], worst)

    out[:, TENANTS] = np.bincount(row, minlength=rows)
    given = np.bincount(row, cards, rows).astype(np.int64)
    out[given < lack] = 0


def lacking_cards(cells: Cells, rows: int, wish: Wish) -> I64:
    """[rows] cards to clear before one member fits, at least 1; very many where it never will."""
    lack: I64 = np.full(rows, NEVER, np.int64)
    for shape in wish.shapes:
        np.minimum(lack, _lacking(cells, rows, shape), out=lack)
    return lack


def count_places(
    cells: Cells, rows: int, wish: Wish, most: int, enough: int, *, compiled: bool
) -> I64 | None:
    """[rows] members of `wish` that fit on each row as it is, at most `most`; as `vacancy.count_members`.

    Counted from the first row on until there are `enough`, the others have 0 then.
    None where that takes a look at each row: where links matter, and for slices on several cards.
    """
    if wish.linked or any(shape.cards > 1 and not shape.whole for shape in wish.shapes):
        return None
    found: I64 = np.zeros(rows, np.int64)
    counts: I64 = np.zeros(rows, np.int64)
    total, first, many = 0, 0, _FIRST_ROWS
    while first < rows and total < enough:
        some = slice(first, min(rows, first + many))
        wanted = np.arange(some.start, some.stop, dtype=np.int32)
        for shape in wish.shapes:
            among(compiled=compiled).count_fills(cells, counted(shape), shape.host, wanted, counts)
            np.maximum(found[some], np.minimum(counts[some], most), out=found[some])
        total += int(found[some].sum())
        first, many = some.stop, 4 * many
    return found


def open_rows(cells: Cells, rows: int, wish: Wish) -> list[int]:
    """Rows with as many fitting cards as one member asks; links and what the host has are not looked at."""
    found = np.zeros(rows, np.bool_)
    for shape in wish.shapes:
        eligible, fitting = _fitting(cells, rows, shape)
        found |= (eligible != 0) & (fitting >= shape.cards)
    return [int(row) for row in np.flatnonzero(found)]


def _lacking(cells: Cells, rows: int, shape: Shape) -> I64:
    eligible, fitting = _fitting(cells, rows, shape)
    short = np.maximum(shape.cards - fitting, 1)
    most = shape.cards if not shape.cards else np.bitwise_count(eligible).astype(np.int64)
    return np.where((eligible != 0) & (most >= shape.cards), short, NEVER)


def _fitting(cells: Cells, rows: int, shape: Shape) -> tuple[I64, I64]:
    """[rows] eligible cards, as bits, and how many of them fit."""
    kind = cells.kind[:rows]
    accepted: I64 = np.array([*shape.eligible, 0], np.int64)[kind]
    eligible: I64 = np.where(kind >= 0, accepted, np.int64(0))
    if not shape.cards:
        return eligible, np.zeros(rows, np.int64)
    usable: I64 = cells.usable[:rows].astype(np.int64)
    free: I64 = np.bitwise_and(eligible, usable)
    if shape.whole:
        return free, _count_bits(np.bitwise_and(free, cells.idle[:rows].astype(np.int64)))
    ask = np.array([*shape.ask, (0, 0, 0)], np.int64)[kind]
    room = (cells.left[:rows] >= ask[:, None, :]).all(axis=2)
    bits = (free[:, None] >> np.arange(room.shape[1])) & 1
    return free, (room & (bits == 1)).sum(axis=1).astype(np.int64)


def _ordered(row: I64, less: I64) -> I64:
    """As `lexsort((less, row))`, for small numbers from 0: of one key each, so that none is equal."""
    count = len(row)
    key = (row * (less.max(initial=0) + 1) + less) * count + np.arange(count)
    found: I64 = np.argsort(key)
    return found


def _count_bits(masks: I64) -> I64:
    counts: I64 = np.bitwise_count(masks).astype(np.int64)
    return counts


def _used(row: I64, cards: I64, lack: I64) -> I64:
    """Of each entry's cards those that its row's lack uses, taken in order; entries are sorted by row."""
    total = np.cumsum(cards)
    first = np.searchsorted(row, row)
    before = total - cards - (total[first] - cards[first])
    return np.clip(lack[row] - before, 0, cards)
