"""Questions about some rows only: how often a shape fits on each, and which of them loses least."""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import F64, I32, I64, Bool, Cells, Request
from aliquot.core.placement.fills import NO_LIMIT
from aliquot.core.placement.kernels.jit import compiled, inlined

TIE = 1e-9


@inlined
def slices_of(cells: Cells, request: Request, row: int, kind: int, card: int) -> int:
    """How many slices one card still gives."""
    most = NO_LIMIT
    for dim in range(request.ask.shape[1]):
        ask = request.ask[kind, dim]
        left = cells.left[row, card, dim]
        if ask > left:
            return 0  # as most cards of a full site, so without a division
        if ask > 0:
            most = min(most, left // ask)
    return most


@inlined
def sets_of(cells: Cells, request: Request, row: int, kind: int) -> int:
    """Sets of distinct cards that give a slice each, or of idle cards."""
    allowed = cells.usable[row] & request.eligible[kind]
    total = 0
    for card in range(cells.effective.shape[1]):
        if (allowed >> card) & 1:
            if request.whole:
                total += (cells.idle[row] >> card) & 1
            else:
                total += slices_of(cells, request, row, kind, card)
    found = total // request.cards
    if request.whole or request.cards == 1:
        return int(found)
    while True:
        total = 0
        for card in range(cells.effective.shape[1]):
            if (allowed >> card) & 1:
                total += min(found, slices_of(cells, request, row, kind, card))
        if total // request.cards >= found:
            return int(found)
        found = total // request.cards


@compiled
def count_fills(cells: Cells, request: Request, host: int, rows: I32, out: I64) -> None:
    """`fills.count_fills` of `rows`, each into its place of `out` [n]."""
    for at in range(rows.shape[0]):
        row = rows[at]
        kind = cells.kind[row]
        out[row] = 0
        if kind < 0 or request.eligible[kind] == 0:
            continue
        most = NO_LIMIT
        if request.cpu > 0:
            most = min(most, cells.cpu[row] // request.cpu)
        if host > 0:
            most = min(most, cells.host[row] // host)
        if request.cards > 0 and most > 0:
            most = min(most, sets_of(cells, request, row, kind))
        out[row] = most


@compiled
def pick_among(loss: F64, exact: Bool, left: I64, host: int, rows: I32) -> int:
    """The first of `rows` with `host` MiB whose loss is least, or -1 - row where that is only a bound.

    Where none fits, the smallest number there is.
    """
    least = np.inf
    for at in range(rows.shape[0]):
        row = rows[at]
        if left[row] >= host and loss[row] < least:
            least = loss[row]
    if least == np.inf:
        return -(1 << 62)
    for at in range(rows.shape[0]):
        row = rows[at]
        if left[row] >= host and loss[row] <= least + TIE:
            return int(row if exact[row] else -1 - row)
    return -(1 << 62)
