"""Several requests of one shape at one go, where the scores of a row follow from that row alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from aliquot.core.placement.cells import F64, I32, U32, Cells, Request, Scores
from aliquot.core.placement.kernels import classic
from aliquot.core.placement.kernels.among import pick_among
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.kernels.sync import effective_of

RULES: Final = ("random", "best_fit", "spread", "dot_product", "gpu_packing", "gpu_clustering")
"""The rules of `kernels.classic`; their places here are the numbers that `score` knows them by."""

NONE = classic.NONE
random, best_fit, spread = classic.random, classic.best_fit, classic.spread
dot_product, gpu_packing, gpu_clustering = classic.dot_product, classic.gpu_packing, classic.gpu_clustering


@compiled
def score(
    rule: int,
    cells: Cells,
    request: Request,
    scores: Scores,
    cpu: int,
    milli: int,
    given: U32,
    rows: I32,
    count: int,
) -> None:
    """`rows[:count]` by the rule of this number."""
    if rule == 0:
        random(cells, request, scores, cpu, milli, given, rows, count)
    elif rule == 1:
        best_fit(cells, request, scores, cpu, milli, given, rows, count)
    elif rule == 2:
        spread(cells, request, scores, cpu, milli, given, rows, count)
    elif rule == 3:
        dot_product(cells, request, scores, cpu, milli, given, rows, count)
    elif rule == 4:
        gpu_packing(cells, request, scores, cpu, milli, given, rows, count)
    else:
        gpu_clustering(cells, request, scores, cpu, milli, given, rows, count)


@compiled
def seat_series(
    rule: int,
    cells: Cells,
    request: Request,
    scores: Scores,
    cpu: int,
    milli: int,
    changed: I32,
    count: int,
    host: int,
    rows: I32,
    taken: I32,
    masks: U32,
    losses: F64,
) -> int:
    """Score `changed[:count]`; then take up to `taken.shape[0]` places on `rows`; how many were found.

    Cells and scores are as before then, but for the scores of what had changed.
    """
    given = np.empty(0, np.uint32)
    score(rule, cells, request, scores, cpu, milli, given, changed, count)
    most = taken.shape[0]
    cards = cells.left.shape[1]
    dims = cells.left.shape[2]
    idle = np.empty(most, np.uint32)
    left = np.empty((most, dims), np.int32)
    effective = np.empty(most, np.int32)
    one = np.empty(1, np.int32)
    found = 0
    while found < most:
        row = pick_among(scores.loss, scores.exact, cells.host, host, rows)
        if row < 0:
            break
        mask = scores.mask[row]
        taken[found] = row
        masks[found] = mask
        losses[found] = scores.loss[row]
        cells.cpu[row] -= request.cpu
        cells.host[row] -= host
        for card in range(cards if mask != NONE else 0):
            if (mask >> card) & 1:
                idle[found] = cells.idle[row]
                effective[found] = cells.effective[row, card]
                for dim in range(dims):
                    left[found, dim] = cells.left[row, card, dim]
                    rest = left[found, dim] - request.ask[cells.kind[row], dim]
                    cells.left[row, card, dim] = 0 if request.whole else rest
                cells.idle[row] &= ~mask
                cells.effective[row, card] = effective_of(cells, row, card)
        one[0] = row
        score(rule, cells, request, scores, cpu, milli, given, one, 1)
        found += 1
    for at in range(found - 1, -1, -1):
        row = taken[at]
        mask = masks[at]
        cells.cpu[row] += request.cpu
        cells.host[row] += host
        for card in range(cards if mask != NONE else 0):
            if (mask >> card) & 1:
                cells.idle[row] = idle[at]
                for dim in range(dims):
                    cells.left[row, card, dim] = left[at, dim]
                cells.effective[row, card] = effective[at]
        scores.loss[row] = losses[at]
        scores.mask[row] = mask
        scores.exact[row] = True
    return found
