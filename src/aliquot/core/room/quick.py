"""The kernel that clears one row, fed from a `Ground`. Answers as `Ground.clear_one` does, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aliquot.core.placement.cells import I64
from aliquot.core.room.kernels.clear import People, clear_row
from aliquot.core.room.kernels.law import UNSURE
from aliquot.core.room.law import no_law, no_side, side_of
from aliquot.core.room.vacancy import Wish

if TYPE_CHECKING:
    from aliquot.core.room.ground import Ground


class Quick:
    """One ground's. It does not hold the ground: the two would live on until garbage is looked for."""

    def __init__(self, ground: Ground, rank: I64, right_of: I64) -> None:
        tenants = ground.tenants
        self._lines = tenants.roll
        self._open = rank >= 0
        claim = ground.claim
        self._law, self._side = no_law(), no_side()
        charge: I64 = np.zeros((max(1, len(tenants.groups)), 1), np.int64)
        if claim is not None:
            self._law, charge = tenants.law(claim.book.tree)
            self._side = side_of(claim, charge.shape[1])
        self._people = People(
            tenants.roll.columns,
            tenants.cost,
            rank,
            self._open,
            tenants.kind,
            right_of,
            tenants.group_of,
            charge,
            tenants.leaf_of,
        )
        self._usage: I64 = np.zeros((2, 1, 1), np.int64)
        self._version = -1
        self._asked: dict[tuple[object, int], I64] = {}
        self._out: I64 = np.zeros(64, np.int64)

    def shut(self, at: int, *, is_open: bool = False) -> None:
        """A tenant is not to be had any more, or is again."""
        self._open[at] = is_open

    def clear(
        self, ground: Ground, row: int, wish: Wish, members: int
    ) -> tuple[tuple[int, ...], bool] | None:
        """(victims, none where no set will do; whether a bound was reached); None: nothing is known.

        `ground` is the one it was made for, as it is now.
        """
        claim = ground.claim
        if claim is not None and claim.book.version != self._version:
            self._usage, self._version = claim.book.columns(), claim.book.version
        room, left = ground.bare(row)
        start = int(self._lines.start[row])
        lines = self._lines.held[start : start + int(self._lines.count[row])]
        if len(lines) > len(self._out):
            self._out = np.zeros(2 * len(lines), np.int64)
        count, allowed = clear_row(
            room,
            left,
            self._shapes(wish, int(ground.cells.kind[row])),
            lines,
            self._people,
            members,
            claim is not None,
            self._law,
            self._side,
            self._usage,
            self._out,
        )
        if count == UNSURE:
            return None
        return tuple(self._out[: max(0, count)].tolist()), allowed == 0

    def _shapes(self, wish: Wish, kind: int) -> I64:
        key = (wish.shapes, kind)
        found = self._asked.get(key)
        if found is None:
            rows = [
                (shape.cpu, shape.host, shape.cards, shape.whole, shape.eligible[kind], *shape.ask[kind])
                if kind >= 0
                else (shape.cpu, shape.host, shape.cards, shape.whole, 0, 0, 0, 0)
                for shape in wish.shapes
            ]
            found = self._asked[key] = np.array(rows, np.int64)
        return found
