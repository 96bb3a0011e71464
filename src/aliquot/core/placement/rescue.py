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

ROWS: Final = 16  # rows looked at for one rescue; on the tuning seeds 48 found no more that was worth it
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
    for row in _nearly(placer, shape, rows):
        for moved in movable_on(row):
            found = _try(placer, shape, moved, homes)
            if found is not None and (best is None or found.change < best.change - TIE):
                best = found
    return best


class Leaving:
    """What each row would gain if one of its movable grants left, kept until the row or its grants change.

    Only the future packing counts: prices and reserves change with every booking elsewhere.
    """

    def __init__(self) -> None:
        self._placer: Placer | None = None
        self._epoch = -1
        self._kept: dict[int, tuple[object, int, tuple[tuple[Movable, float], ...]]] = {}

    def of(
        self, placer: Placer, row: int, holders: object, movable_on: MovableOn
    ) -> tuple[tuple[Movable, float], ...]:
        """(grant, GPU milli gained) of `row`; `holders` names those who hold something there."""
        if placer is not self._placer or placer.epoch != self._epoch:
            self._placer, self._epoch, self._kept = placer, placer.epoch, {}
        changed = int(placer.board.cells.changed[row])
        known = self._kept.get(row)
        if known is not None and known[1] == changed and known[0] == holders:
            return known[2]
        gains = []
        for moved in movable_on(row):
            spare = placer.board.imagine(row, moved.shape, _mask(moved))
            choice = placer.choice_at(moved.shape, spare, moved.card)
            if choice is not None:
                gains.append((moved, _packing(choice)))
        found = tuple(gains)
        self._kept[row] = (holders, changed, found)
        return found


def improve(
    placer: Placer,
    leaving: Leaving,
    holders_of: Callable[[int], object],
    movable_on: MovableOn,
    is_barred: Callable[[Movable], bool],
    threshold: float,
) -> Tidying | None:
    """The single move that gains most, if over `threshold` GPU milli; book it, refresh, and ask again."""
    homes = _Homes(placer)
    best: Tidying | None = None
    least = threshold
    for row in range(placer.board.rows):
        for moved, freed in leaving.of(placer, row, holders_of(row), movable_on):
            if freed <= least or is_barred(moved):
                continue
            home = homes.of(moved)
            if home is not None and freed - _packing(home) > least + TIE:
                least = freed - _packing(home)
                best = Tidying(moved, home, least)
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


def _nearly(placer: Placer, shape: Shape, count: int) -> list[int]:
    """Up to `count` rows that could serve the shape with a little more free, those that lack least first."""
    cells, rows = placer.board.cells, placer.board.rows
    kind = cells.kind[:rows]
    eligible = np.array(shape.eligible, np.int64)
    open_rows = (kind >= 0) & (eligible[np.maximum(kind, 0)] != 0)
    most: I64 = cells.effective[:rows].max(axis=1, initial=0).astype(np.int64)
    lacking: F64 = np.maximum(shape.milli - most, 0) / max(shape.milli, 1)
    lacking = lacking + np.maximum(shape.cpu - cells.cpu[:rows], 0) / max(shape.cpu, 1)
    (found,) = np.nonzero(open_rows)
    if len(found) > count:  # whoever lacks as much as the last of them may still be before it
        found = found[lacking[found] <= np.partition(lacking[found], count - 1)[count - 1]]
    order = np.argsort(lacking[found], kind="stable")[:count]
    return [int(row) for row in found[order]]


def _packing(choice: Choice) -> float:
    """The first term of a score: future packing destroyed, GPU milli."""
    return choice.terms[0][1] if choice.terms else choice.loss


def _mask(moved: Movable) -> int:
    return 1 << moved.card if moved.card >= 0 else 0
