"""Does a request fit a row, and on which cards: the questions every scorer asks first."""

from __future__ import annotations

from aliquot.core.placement.cells import I32, I64, Cells, Request
from aliquot.core.placement.kernels.jit import compiled, inlined


@inlined
def lowest(mask: int, count: int) -> int:
    """The `count` lowest bits of `mask`."""
    taken = 0
    for card in range(32):
        if count == 0:
            break
        if (mask >> card) & 1:
            taken |= 1 << card
            count -= 1
    return taken


@inlined
def fits_card(cells: Cells, request: Request, row: int, kind: int, card: int) -> bool:
    """Whether one card has room. The caller has checked that the card is usable and eligible."""
    if request.whole:
        return bool((cells.idle[row] >> card) & 1)
    for dim in range(request.ask.shape[1]):  # noqa: SIM110 - numba compiles loops, not generators
        if cells.left[row, card, dim] < request.ask[kind, dim]:
            return False
    return True


@inlined
def fit_mask(cells: Cells, request: Request, row: int) -> int:
    """Cards with room, or 0 where the row can't serve the request at all (bit 31: fits without cards)."""
    kind = cells.kind[row]
    if kind < 0 or request.eligible[kind] == 0 or cells.cpu[row] < request.cpu:
        return 0
    if request.cards == 0:
        return 1 << 31
    allowed = cells.usable[row] & request.eligible[kind]
    mask = 0
    count = 0
    for card in range(cells.effective.shape[1]):
        if (allowed >> card) & 1 and fits_card(cells, request, row, kind, card):
            mask |= 1 << card
            count += 1
    return mask if count >= request.cards else 0


@compiled
def fit_masks(cells: Cells, request: Request, rows: I32, out: I64) -> None:
    """`fit_mask` of each of `rows`."""
    for at in range(rows.shape[0]):
        out[at] = fit_mask(cells, request, rows[at])


@inlined
def after(cells: Cells, request: Request, row: int, kind: int, card: int) -> int:
    """`effective` of a card once the request is booked on it."""
    if request.whole:
        return 0
    lowered = request.step[kind]
    if lowered >= 0:
        left = cells.effective[row, card] - lowered
    else:
        left = 1 << 30
        for dim in range(request.ask.shape[1]):
            of = cells.full[kind, card, dim]
            if of > 0:
                have = cells.left[row, card, dim] - request.ask[kind, dim]
                left = min(left, (have * 1000 + of // 2) // of)
    return int(max(min(left, 999), 0))
