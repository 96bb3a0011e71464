"""Moves: making room for a shape that does not fit by moving one slice, and tidying slices that sit badly.

Only moves of one single-card grant are looked at, to the best home it has elsewhere; what may be moved, how
often and when is policy and comes from the caller. Rows are tried in the order in which a move is likely to
help, and only the first few: a bound on time, not on correctness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import F64, I64, Cells
from aliquot.core.placement.placer import Choice, Placer
from aliquot.core.placement.shapes import Shape

ROWS: Final = 48  # rows looked at for one rescue
TIDY_ROWS: Final = 64
TIE: Final = 1e-9


class Movable(NamedTuple):
    """A grant on one card (or -1: on none) that may be moved. `token` is the caller's, to find it again."""

    row: int
    card: int
    shape: Shape
    token: object


MovableOn = Callable[[int], Sequence[Movable]]


class Rescue(NamedTuple):
    """Move `moved` to `home`, then the shape fits at `seat`. `change` is the total loss, less is better."""

    moved: Movable
    home: Choice
    seat: Choice
    change: float


class Tidying(NamedTuple):
    """Move `moved` to `home`; `gain` GPU milli of future packing come free."""

    moved: Movable
    home: Choice
    gain: float


def rescue(placer: Placer, shape: Shape, movable_on: MovableOn, rows: int = ROWS) -> Rescue | None:
    """The single move after which `shape` (of one card or none) fits, with the best total change of loss."""
    if shape.cards > 1:
        return None
    homes = _Homes(placer)
    best: Rescue | None = None
    for row in _nearly(placer, shape)[:rows]:
        for moved in movable_on(row):
            found = _try(placer, shape, moved, homes)
            if found is not None and (best is None or found.change < best.change - TIE):
                best = found
    return best


def improve(placer: Placer, movable_on: MovableOn, threshold: float, rows: int = TIDY_ROWS) -> Tidying | None:
    """The single move that gains most, if over `threshold` GPU milli; book it, refresh, and ask again."""
    homes = _Homes(placer)
    best: Tidying | None = None
    for row in _wasteful(placer)[:rows]:
        for moved in movable_on(row):
            home = homes.of(moved)
            if home is None:
                continue
            spare = placer.board.imagine(moved.row, moved.shape, _mask(moved))
            gain = placer.loss_at(moved.shape, spare, moved.card) - home.loss
            if gain > threshold and (best is None or gain > best.gain + TIE):
                best = Tidying(moved, home, gain)
    return best


class _Homes:
    """The best other place of each shape, worked out once."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self._known: dict[tuple[Shape, int], Choice | None] = {}

    def of(self, moved: Movable) -> Choice | None:
        first = self._choose(moved.shape, -1)
        if first is None or first.row != moved.row:
            return first
        return self._choose(moved.shape, moved.row)

    def _choose(self, shape: Shape, barred: int) -> Choice | None:
        key = (shape, barred)
        if key not in self._known:
            self._known[key] = self._placer.choose(shape, barred)
        return self._known[key]


def _try(placer: Placer, shape: Shape, moved: Movable, homes: _Homes) -> Rescue | None:
    cells, given_back = placer.board.cells, moved.shape
    if (
        cells.cpu[moved.row] + given_back.cpu < shape.cpu
        or cells.host[moved.row] + given_back.host < shape.host
    ):
        return None
    if shape.cards and moved.card >= 0 and not _has_room(cells, shape, moved):
        return None
    home = homes.of(moved)
    if home is None:
        return None
    spare = placer.board.imagine(moved.row, given_back, _mask(moved))
    seat = placer.choice_at(shape, spare)
    if seat is None:
        return None
    freed = placer.loss_at(given_back, spare, moved.card)
    change = seat.loss - freed + home.loss
    return Rescue(moved, home, seat._replace(row=moved.row), change)


def _has_room(cells: Cells, shape: Shape, moved: Movable) -> bool:
    """A quick look at compute: on the freed card, or on any other."""
    kind = int(cells.kind[moved.row])
    ask, back = shape.ask[kind][0], moved.shape.ask[kind][0]
    left = cells.left[moved.row, :, 0]
    return bool(left[moved.card] + back >= ask or left.max() >= ask)


def _nearly(placer: Placer, shape: Shape) -> list[int]:
    """Rows that could serve the shape if a little more were free, those that lack least first."""
    cells, rows = placer.board.cells, placer.board.rows
    kind = cells.kind[:rows]
    eligible = np.array(shape.eligible, np.int64)
    open_rows = (kind >= 0) & (eligible[np.maximum(kind, 0)] != 0)
    most: I64 = cells.effective[:rows].max(axis=1, initial=0).astype(np.int64)
    lacking: F64 = np.maximum(shape.milli - most, 0) / max(shape.milli, 1)
    lacking = lacking + np.maximum(shape.cpu - cells.cpu[:rows], 0) / max(shape.cpu, 1)
    order = np.argsort(np.where(open_rows, lacking, np.inf), kind="stable")
    return [int(row) for row in order if open_rows[row]]


def _wasteful(placer: Placer) -> list[int]:
    """Rows by what is left but can't be packed, most first."""
    rows = np.arange(placer.board.rows, dtype=np.int32)
    waste = placer.board.cells.effective[rows].sum(axis=1) - placer.values(rows)
    return [int(row) for row in np.argsort(-waste, kind="stable") if waste[row] > 0]


def _mask(moved: Movable) -> int:
    return 1 << moved.card if moved.card >= 0 else 0
