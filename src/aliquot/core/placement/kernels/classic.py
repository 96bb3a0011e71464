"""The classic policies, compiled. Each function scores `rows[:count]`; the twins are in `policies`.

Scores are whole points of 100 as in the published simulator: ties matter more than the policy does.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import I32, U32, Cells, Request, Scores
from aliquot.core.placement.kernels.fit import fit_mask, lowest
from aliquot.core.placement.kernels.jit import compiled, inlined

NONE = 1 << 31
TIGHTEST = 0
EMPTIEST = 1
DRAWN = 2


@inlined
def choose_cards(cells: Cells, request: Request, row: int, mask: int, given: int, how: int) -> int:
    """The cards to take of `mask`."""
    if request.cards == 0:
        return NONE
    if given != 0:
        return given
    if request.cards > 1:
        return lowest(mask, request.cards)
    if how == DRAWN:
        return drawn_card(cells, row, mask)
    best = 1 << 30
    chosen = 0
    for card in range(cells.effective.shape[1]):
        if (mask >> card) & 1:
            key = cells.effective[row, card] if how == TIGHTEST else -cells.effective[row, card]
            if key < best:
                best = key
                chosen = card
    return 1 << chosen


@inlined
def drawn_card(cells: Cells, row: int, mask: int) -> int:
    """Any of the fitting cards, drawn by what the node has left."""
    drawn = 0
    fitting = 0
    for card in range(cells.effective.shape[1]):
        drawn = (drawn * 31 + cells.effective[row, card]) % 999_983
        fitting += (mask >> card) & 1
    skip = drawn % fitting
    for card in range(cells.effective.shape[1]):
        if (mask >> card) & 1:
            if skip == 0:
                return 1 << card
            skip -= 1
    return 0


@inlined
def milli_left(cells: Cells, row: int) -> int:
    total = 0
    for card in range(cells.effective.shape[1]):
        total += cells.effective[row, card]
    return total


@inlined
def begin_row(cells: Cells, request: Request, scores: Scores, given: U32, how: int, row: int) -> bool:
    """Reset the row's scores and choose its cards; False where it does not fit."""
    scores.loss[row] = np.inf
    scores.exact[row] = True
    scores.mask[row] = 0
    mask = fit_mask(cells, request, row)
    if mask == 0:
        return False
    taken = given[row] if given.shape[0] > 0 else 0
    scores.mask[row] = choose_cards(cells, request, row, mask, taken, how)
    return True


@compiled
def random(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        if begin_row(cells, request, scores, given, DRAWN, rows[at]):
            scores.loss[rows[at]] = 0.0


@compiled
def best_fit(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        row = rows[at]
        if begin_row(cells, request, scores, given, TIGHTEST, row):
            cpu_part = 0.5 * ((cells.cpu[row] - request.cpu) / cpu)
            gpu_part = 0.5 * ((milli_left(cells, row) - request.milli) / milli)
            scores.loss[row] = -float(int(100.0 * (1.0 - (cpu_part + gpu_part))))


@compiled
def spread(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        row = rows[at]
        if begin_row(cells, request, scores, given, EMPTIEST, row):
            cpu_part = 0.5 * ((cells.cpu[row] - request.cpu) / cpu)
            gpu_part = 0.5 * ((milli_left(cells, row) - request.milli) / milli)
            scores.loss[row] = -float(int(100.0 * (cpu_part + gpu_part)))


@compiled
def dot_product(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        row = rows[at]
        if begin_row(cells, request, scores, given, TIGHTEST, row):
            dot = (cells.cpu[row] / cpu) * (request.cpu / cpu)
            dot += (milli_left(cells, row) / milli) * (request.milli / milli)
            scores.loss[row] = -float(int(100.0 * (1.0 - dot / 2.0)))


@compiled
def gpu_packing(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        row = rows[at]
        if not begin_row(cells, request, scores, given, TIGHTEST, row):
            continue
        if request.cards == 0:
            scores.loss[row] = 0.0
            continue
        idle = 0
        present = 0
        fresh = 0
        ratio = 0
        taken = scores.mask[row]
        for card in range(cells.effective.shape[1]):
            idle += (cells.idle[row] >> card) & 1
            present += (cells.usable[row] >> card) & 1
            if (taken >> card) & 1:
                fresh += (cells.idle[row] >> card) & 1
                ratio += cells.effective[row, card] * 100 // 1000
        if idle == present:
            score = max(33 - idle, idle)
        elif fresh > 0:
            score = max(50 - fresh, 33)
        else:
            score = max(100 - ratio // 10, 50)
        scores.loss[row] = -float(score)


@compiled
def gpu_clustering(
    cells: Cells, request: Request, scores: Scores, cpu: int, milli: int, given: U32, rows: I32, count: int
) -> None:
    for at in range(count):
        row = rows[at]
        if not begin_row(cells, request, scores, given, TIGHTEST, row):
            continue
        if request.cards == 0:
            scores.loss[row] = 0.0
            continue
        shared = False
        whole = False
        for card in range(cells.effective.shape[1]):
            if (cells.usable[row] >> card) & 1 and not (cells.idle[row] >> card) & 1:
                if cells.effective[row, card] == 0:
                    whole = True
                else:
                    shared = True
        wants_whole = request.milli >= 1000 * request.cards
        same = whole if wants_whole else shared
        other = shared if wants_whole else whole
        floor = 0
        if same:
            floor = 50 if other else 75
        elif not other:
            floor = 25
        used = max(milli - milli_left(cells, row), 0)
        scores.loss[row] = -float(floor + 25 * used // milli)


@compiled
def pick_row(cells: Cells, scores: Scores, rows: int, host: int, barred: int, salt: int) -> int:
    """The row of least loss that has `host` MiB; of equals the first, or with a salt one by lot."""
    least = np.inf
    for row in range(rows):
        if scores.loss[row] < least and cells.host[row] >= host and row != barred:
            least = scores.loss[row]
    chosen = -1
    if least == np.inf:
        return chosen
    lot = np.uint64(0xFFFFFFFFFFFFFFFF)
    for row in range(rows):
        if scores.loss[row] <= least + 1e-9 and cells.host[row] >= host and row != barred:
            if salt == 0:
                return row
            mixed = np.uint64(salt) * np.uint64(0xD1342543DE82EF95) + np.uint64(row + 1) * np.uint64(
                0x9E3779B97F4A7C15
            )
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
            if mixed < lot or chosen < 0:
                lot = mixed
                chosen = row
    return chosen
