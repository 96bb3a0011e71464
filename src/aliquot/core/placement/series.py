"""Several requests of one shape, one after the other, on some rows: as many as find room, each where it loses
least once those before it are booked.

For scores that follow from one row alone, and shapes of no card or of one, so that nobody else has to be
asked which cards of a row are taken. The cells are lowered on the way and put back: what is booked in the end
is told to the board by whoever books it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from aliquot.core.placement.board import effective_row
from aliquot.core.placement.cells import I32, Cells, Request, Scores
from aliquot.core.placement.fills import Plain
from aliquot.core.placement.policies.rows import NO_CARDS, bits


class Taken(NamedTuple):
    """A row, its cards that are taken, and what that loses."""

    row: int
    mask: int
    loss: float


class _Was(NamedTuple):
    """A row before it was lowered."""

    row: int
    cpu: int
    host: int
    idle: int
    left: I32


def seat_series_plain(
    score: Callable[[list[int]], None],
    cells: Cells,
    request: Request,
    scores: Scores,
    host: int,
    rows: I32,
    most: int,
) -> list[Taken]:
    """The twin of `kernels.series.seat_series`; `score` scores rows as the cells are then."""
    found: list[Taken] = []
    before: list[_Was] = []
    while len(found) < most:
        row = Plain().pick_among(scores.loss, scores.exact, cells.host, host, rows)
        if row < 0:
            break
        found.append(Taken(row, int(scores.mask[row]), float(scores.loss[row])))
        idle, left = int(cells.idle[row]), cells.left[row].copy()
        before.append(_Was(row, int(cells.cpu[row]), int(cells.host[row]), idle, left))
        _lower(cells, request, host, found[-1])
        score([row])
    for was in reversed(before):
        cells.cpu[was.row], cells.host[was.row] = was.cpu, was.host
        cells.idle[was.row], cells.left[was.row] = was.idle, was.left
        cells.effective[was.row] = effective_row(cells, was.row)
    score([was.row for was in before])
    return found


def _lower(cells: Cells, request: Request, host: int, taken: Taken) -> None:
    row = taken.row
    cells.cpu[row] -= request.cpu
    cells.host[row] -= host
    if taken.mask == NO_CARDS:
        return
    (card,) = bits(taken.mask)
    rest = 0 if request.whole else cells.left[row, card] - request.ask[int(cells.kind[row])]
    cells.left[row, card] = rest
    cells.idle[row] &= ~np.uint32(taken.mask)
    cells.effective[row] = effective_row(cells, row)
