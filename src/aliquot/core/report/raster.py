"""Integrals of many quantities over a bounded number of equal stretches of time.

Stretches begin short; when they run out, neighbours are joined two by two and become twice as long. So a run
of a minute and one of a year both end with between half and all of the columns, and nothing is sampled: each
cell is an exact integral.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

COLUMNS = 400
FIRST_WIDTH_MS = 1000


class Raster:
    """`rows` piecewise constant numbers from `start_ms` on. Times never go back."""

    def __init__(
        self, rows: int, start_ms: int = 0, columns: int = COLUMNS, width_ms: int = FIRST_WIDTH_MS
    ) -> None:
        if columns < 2 or columns % 2:
            raise ValueError(f"columns are joined in pairs: {columns} is not an even number of 2 or more")
        self.start_ms = start_ms
        self.width_ms = width_ms
        self.full = 0  # columns that are complete
        self.values = [0] * rows
        self._since = [start_ms] * rows
        self._open = [0] * rows  # integrals in the column under way
        self._edge = start_ms + width_ms
        self._cells: I64 = np.zeros((columns, rows), np.int64)

    def add(self, row: int, delta: int, at: int) -> None:
        """From `at` on, the number of `row` is `delta` more."""
        if at >= self._edge:
            self._roll(at)
        value = self.values[row]
        self._open[row] += value * (at - self._since[row])
        self._since[row] = at
        self.values[row] = value + delta

    def put(self, row: int, value: int, at: int) -> None:
        """From `at` on, the number of `row` is `value`."""
        if value != self.values[row]:
            self.add(row, value - self.values[row], at)

    def read(self, until_ms: int) -> I64:
        """[columns, rows] integrals (unit x ms) up to `until_ms`; the last column may be part full."""
        if until_ms >= self._edge:
            self._roll(until_ms)
        begun = self._edge - self.width_ms
        if until_ms <= begun:
            return self._cells[: -(-(until_ms - self.start_ms) // self.width_ms)].copy()
        whole = self._cells[: self.full]
        last = [
            part + value * max(0, until_ms - since)
            for part, value, since in zip(self._open, self.values, self._since, strict=True)
        ]
        return np.vstack([whole, np.array([last], np.int64)])

    def _roll(self, at: int) -> None:
        """Complete every column that ends at or before `at`."""
        while at >= self._edge:
            if self.full == len(self._cells):
                self._join()
                continue
            self._complete()

    def _complete(self) -> None:
        edge = self._edge
        opened = [
            part + value * (edge - since)
            for part, value, since in zip(self._open, self.values, self._since, strict=True)
        ]
        self._cells[self.full] = opened
        self.full += 1
        rows = len(self.values)
        self._open = [0] * rows
        self._since = [edge] * rows
        self._edge = edge + self.width_ms

    def _join(self) -> None:
        """Half as many columns, twice as long. Called only at an edge, so the column under way is empty."""
        pairs = self._cells[: self.full].reshape(self.full // 2, 2, -1).sum(axis=1)
        self.full //= 2
        self._cells[: self.full] = pairs
        self._edge += self.width_ms
        self.width_ms *= 2
