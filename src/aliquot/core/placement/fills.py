"""Questions about some rows: how many requests of one shape each could still take, were it to take nothing
else, and which of them loses least.

The count is exact for whole cards, for cpu and host memory alone, and for single slices. Where wiring or NUMA
nodes narrow the choice, or slices have to be on distinct cards, it is a bound from above: no row takes more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Protocol, cast

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.placement.cells import F64, I32, I64, Bool, Cells, Request
from aliquot.core.placement.shapes import Shape

NO_LIMIT: Final = 1 << 30


NOWHERE: Final = -(1 << 62)
TIE: Final = 1e-9


class Fill:
    """The counts of one shape, and the log position they are good for."""

    def __init__(self, rows: int, request: Request) -> None:
        self.seen, self.request = -1, request
        self.counts: I64 = np.zeros(rows, np.int64)


class Among(Protocol):
    """The two answers, compiled or plain."""

    def count_fills(self, cells: Cells, request: Request, host: int, rows: I32, out: I64) -> None:
        """How often `request`, with `host` MiB beside it, fits on each of `rows`, into its place of `out`."""

    def pick_among(self, loss: F64, exact: Bool, left: I64, host: int, rows: I32) -> int:
        """The first of `rows` with `host` MiB `left` and the least `loss`, -1 - row where that is a bound.

        NOWHERE where none fits.
        """


def among(*, compiled: bool) -> Among:
    """The answers by the kernels or by their twins."""
    if not compiled:
        return Plain()
    from aliquot.core.placement.kernels import among as kernels

    return cast("Among", kernels)


class Plain:
    """The twins of `kernels.among`."""

    def count_fills(self, cells: Cells, request: Request, host: int, rows: I32, out: I64) -> None:
        """As `Among` says."""
        out[rows] = _count(cells, request, host, rows)

    def pick_among(self, loss: F64, exact: Bool, left: I64, host: int, rows: I32) -> int:
        """As `Among` says."""
        open_to = np.where(left[rows] >= host, loss[rows], np.inf)
        least = open_to.min(initial=np.inf)
        if least == np.inf:
            return NOWHERE
        row = int(rows[int((open_to <= least + TIE).argmax())])
        return row if exact[row] else -1 - row


@lru_cache(maxsize=1 << 10)
def counted(shape: Shape) -> Request:
    """A shape as arrays, as far as counting needs it. Not to be written."""
    kinds = len(shape.eligible)
    ask: I32 = np.array(shape.ask if shape.cards else [(0,) * DIMS] * kinds, np.int32).reshape(kinds, DIMS)
    eligible = np.array(shape.eligible, np.uint32)
    no_step: I32 = np.zeros(kinds, np.int32)
    return Request(shape.cpu, shape.host, shape.cards, shape.whole, shape.milli, ask, eligible, no_step)


def _count(cells: Cells, request: Request, host: int, rows: I32) -> I64:
    kind = cells.kind[rows]
    may: I64 = np.where(kind >= 0, request.eligible[kind], 0).astype(np.int64)
    counts: I64 = np.where(may != 0, np.int64(NO_LIMIT), 0)
    if request.cpu:
        counts = np.minimum(counts, cells.cpu[rows] // request.cpu)
    if host:
        counts = np.minimum(counts, cells.host[rows] // host)
    if not request.cards:
        return counts
    may &= cells.usable[rows]
    if request.whole:
        sets: I64 = np.bitwise_count(may & cells.idle[rows]).astype(np.int64) // request.cards
    else:
        sets = _slices(cells, request, rows, kind, may)
    return np.minimum(counts, sets)


def _slices(cells: Cells, request: Request, rows: I32, kind: I32, may: I64) -> I64:
    """[rows] sets of `request.cards` distinct cards that give a slice each."""
    left, ask = cells.left[rows], request.ask[kind][:, None, :]
    times = np.where(ask > 0, left // np.maximum(ask, 1), NO_LIMIT).min(axis=2).astype(np.int64)
    times = np.where(may[:, None] >> np.arange(left.shape[1]) & 1, times, 0)
    found: I64 = times.sum(axis=1) // request.cards
    if request.cards == 1:
        return found
    while True:  # a set takes one slice of a card, so a card gives no more than there are sets
        fewer = np.minimum(times, found[:, None]).sum(axis=1) // request.cards
        if (fewer >= found).all():
            return found
        found = fewer
