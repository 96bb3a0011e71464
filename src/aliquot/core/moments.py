"""When each row first has room for a shape, if what runs there ends as expected; kept from plan to plan.

A cache outside the world. What was found for a row holds as long as nobody came or went there, nothing of it
was booked, and no end that it rests on has moved: who outruns his end is expected later, but not too late for
a while (`placement.kernels.ahead`). So a plan asks those rows only that have changed.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import I64
from aliquot.core.placement.placer import Placer, request_of
from aliquot.core.placement.shapes import Shape
from aliquot.core.placement.stays import Clock, Stays

_SHAPES: Final = 64
"""Shapes that are kept; beyond that the one that was asked for longest ago is forgotten."""

_AT_ONCE: Final = -1
"""Stands for the moment that is asked for."""


class _Known(NamedTuple):
    """[rows] of one shape: the first moment, and what it was found from."""

    moment: I64
    since: I64  # from when it holds, ms
    until: I64  # till when, ms; before `since`: not at all
    cells: I64  # the row's last change on the board
    stays: I64  # the number of its list of stays


class MomentsMemo:
    """First moments of the shapes that were asked for."""

    def __init__(self) -> None:
        self._board: Board | None = None
        self._rules: tuple[int, int] | None = None
        self._known: dict[Shape, _Known] = {}

    def of(self, placer: Placer, shape: Shape, stays: Stays, number: I64, clock: Clock, rows: int) -> I64:
        """[rows] from when on each has room, as far as counting tells; `clock.far`: never. To be written.

        `number` [rows]: another one wherever `stays` was written anew.
        """
        from aliquot.core.placement.kernels.ahead import first_moments

        board, rules = placer.board, (clock.least_ms, clock.again_milli)
        if board is not self._board or rules != self._rules:
            self._board, self._rules, self._known = board, rules, {}
        request = request_of(shape, board.hardware)
        if clock.begin != clock.now:
            found: I64 = np.full(max(1, rows), clock.far, np.int64)
            every: I64 = np.arange(rows, dtype=np.int64)
            first_moments(board.cells, request, stays, clock, every, found, np.zeros_like(found))
            return found
        known = self._take(shape, rows)
        changed = board.cells.changed[:rows]
        holds = (known.since[:rows] <= clock.now) & (clock.now <= known.until[:rows])
        holds &= (known.cells[:rows] == changed) & (known.stays[:rows] == number[:rows])
        (again,) = np.nonzero(~holds)
        if len(again):
            first_moments(board.cells, request, stays, clock, again, known.moment, known.until)
            known.since[again], known.cells[again] = clock.now, changed[again]
            known.stays[again] = number[again]
            at_once = again[known.moment[again] == clock.begin]
            known.moment[at_once] = _AT_ONCE
        return np.where(known.moment == _AT_ONCE, clock.begin, known.moment)

    def _take(self, shape: Shape, rows: int) -> _Known:
        known = self._known.pop(shape, None)
        have = 0 if known is None else len(known.moment)
        if known is None or have < rows:
            blank = _Known(*(np.full(max(1, rows) - have, -1, np.int64) for _ in _Known._fields))
            blank.until[:] = -2
            if known is None:
                known = blank
            else:
                known = _Known(*(np.append(mine, more) for mine, more in zip(known, blank, strict=True)))
        self._known[shape] = known
        if len(self._known) > _SHAPES:
            del self._known[next(iter(self._known))]
        return known
