"""Finding the row of least loss without looking at every row: blocks of rows know the least loss within them.

A block whose floor, with the least that price and reserve add, is above the best so far holds no better row.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import BLOCK, I32, Cells, Request, Scores
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.scarcity import Scarcity

TIE = 1e-9


@compiled
def extra(cells: Cells, request: Request, scores: Scores, scarce: Scarcity, row: int) -> float:
    """Price and reserve of a row, in a fixed order."""
    result = scarce.price[cells.kind[row]] * request.milli
    if scores.breaks[row]:
        for at in range(scarce.reserve.shape[0]):
            result += scarce.reserve[at] * scores.lost[row, at]
    return float(result)


@compiled
def cheapest(scarce: Scarcity, request: Request) -> float:
    """The least that price and reserve add anywhere."""
    least = np.inf
    for kind in range(scarce.price.shape[0]):
        least = min(least, scarce.price[kind])
    return least * request.milli if least < np.inf else 0.0


@compiled
def lower_floor(scores: Scores, block: int) -> None:
    """The least loss or bound of a block of rows."""
    least = np.inf
    for row in range(block * BLOCK, min((block + 1) * BLOCK, scores.loss.shape[0])):
        least = min(least, scores.loss[row])
    scores.floor[block] = least


@compiled
def lower_floors(scores: Scores, rows: I32, count: int) -> None:
    """The floors of the blocks that hold `rows[:count]`."""
    if count > scores.floor.shape[0]:
        for block in range(scores.floor.shape[0]):
            lower_floor(scores, block)
        return
    for at in range(count):
        lower_floor(scores, rows[at] // BLOCK)


@compiled
def least_exact(
    cells: Cells, request: Request, scores: Scores, scarce: Scarcity, rows: int, host: int, barred: int
) -> float:
    """The least loss among exact rows; blocks whose floor is above it are not looked into."""
    least = np.inf
    added = cheapest(scarce, request)
    for block in range((rows + BLOCK - 1) // BLOCK):
        if scores.floor[block] + added > least:
            continue
        for row in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            if scores.loss[row] + added > least or not scores.exact[row]:
                continue
            if scores.loss[row] == np.inf or cells.host[row] < host or row == barred:
                continue
            least = min(least, scores.loss[row] + extra(cells, request, scores, scarce, row))
    return least


@compiled
def next_bound(
    cells: Cells,
    request: Request,
    scores: Scores,
    scarce: Scarcity,
    row: int,
    rows: int,
    host: int,
    barred: int,
    least: float,
) -> int:
    """The first row from `row` on whose bound could still be least or tie with it; `rows`: there is none."""
    added = cheapest(scarce, request)
    while row < rows:
        if row % BLOCK == 0 and scores.floor[row // BLOCK] + added > least + TIE:
            row += BLOCK
            continue
        open_bound = not scores.exact[row] and cells.host[row] >= host and row != barred
        if open_bound and scores.loss[row] + extra(cells, request, scores, scarce, row) <= least + TIE:
            return row
        row += 1
    return rows


@compiled
def first_within(
    cells: Cells,
    request: Request,
    scores: Scores,
    scarce: Scarcity,
    rows: int,
    host: int,
    barred: int,
    most: float,
) -> int:
    """The first exact row whose loss is at most `most`."""
    added = cheapest(scarce, request)
    for block in range((rows + BLOCK - 1) // BLOCK):
        if scores.floor[block] + added > most:
            continue
        for row in range(block * BLOCK, min((block + 1) * BLOCK, rows)):
            if not scores.exact[row] or scores.loss[row] + added > most:
                continue
            if cells.host[row] < host or row == barred:
                continue
            if scores.loss[row] + extra(cells, request, scores, scarce, row) <= most:
                return row
    return -1
