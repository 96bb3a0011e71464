"""One row in plain Python, and whether a request fits it: the twin of `kernels.fit`."""

from __future__ import annotations

from typing import Final, NamedTuple

from aliquot.core.placement.cells import Cells, Request

NO_CARDS: Final = 1 << 31


class Row(NamedTuple):
    """One row of `Cells` as Python integers."""

    kind: int
    usable: int
    idle: int
    cpu: int
    left: list[list[int]]
    effective: list[int]
    full: list[list[int]]


def read_row(cells: Cells, row: int) -> Row:
    """Row `row`, copied."""
    kind = int(cells.kind[row])
    return Row(
        kind,
        int(cells.usable[row]),
        int(cells.idle[row]),
        int(cells.cpu[row]),
        cells.left[row].tolist(),
        cells.effective[row].tolist(),
        cells.full[kind].tolist() if kind >= 0 else [],
    )


def bits(mask: int) -> list[int]:
    """The cards of a mask, lowest first."""
    return [card for card in range(mask.bit_length()) if mask >> card & 1]


def lowest(mask: int, count: int) -> int:
    """The `count` lowest bits of `mask`."""
    return sum(1 << card for card in bits(mask)[:count])


def fit_mask(row: Row, request: Request) -> int:
    """Cards with room, 0 where the row can't serve the request, NO_CARDS where it asks for none and fits."""
    if row.kind < 0 or request.eligible[row.kind] == 0 or row.cpu < request.cpu:
        return 0
    if request.cards == 0:
        return NO_CARDS
    cards = bits(row.usable & int(request.eligible[row.kind]))
    mask = sum(1 << card for card in cards if fits_card(row, request, card))
    return mask if mask.bit_count() >= request.cards else 0


def fit_masks(cells: Cells, request: Request, rows: list[int]) -> list[int]:
    """`fit_mask` of each of `rows`."""
    return [fit_mask(read_row(cells, row), request) for row in rows]


def fits_card(row: Row, request: Request, card: int) -> bool:
    """Whether a usable, eligible card has room."""
    if request.whole:
        return bool(row.idle >> card & 1)
    ask = request.ask[row.kind].tolist()
    return all(have >= wanted for have, wanted in zip(row.left[card], ask, strict=True))


def after(row: Row, request: Request, card: int) -> int:
    """`effective` of a card once the request is booked on it."""
    if request.whole:
        return 0
    lowered = int(request.step[row.kind])
    if lowered >= 0:
        left = row.effective[card] - lowered
    else:
        ask = request.ask[row.kind].tolist()
        left = min(
            ((have - wanted) * 1000 + of // 2) // of
            for have, wanted, of in zip(row.left[card], ask, row.full[card], strict=True)
            if of > 0
        )
    return max(min(left, 999), 0)


def tightest(row: Row, mask: int) -> int:
    """The card of `mask` with least left, lowest index first."""
    return min(bits(mask), key=lambda card: (row.effective[card], card))


def emptiest(row: Row, mask: int) -> int:
    """The card of `mask` with most left, lowest index first."""
    return min(bits(mask), key=lambda card: (-row.effective[card], card))
