"""A policy that is a rule about one row: everything the classic policies have in common.

The rule itself lives in a module of its own, as plain Python; its compiled form is named there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import F64, I32, U32, Cells, Request, Scores
from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies.protocol import Limits, Terms
from aliquot.core.placement.policies.rows import NO_CARDS, Row, fit_mask, lowest, read_row
from aliquot.core.placement.series import seat_series_plain
from aliquot.core.placement.streams import uniform

TIE = 1e-9
NOT_GIVEN: U32 = np.zeros(0, np.uint32)


class Rule(NamedTuple):
    """One classic policy. `loss(row, request, taken, limits)`; `card(row, mask)` chooses a single card."""

    name: str
    loss: Callable[[Row, Request, int, Limits], float]
    card: Callable[[Row, int], int]
    kernel: str  # its function in `kernels.classic`
    by_lot: bool = False  # equals are drawn by lot instead of taken in order


class RulePolicy:
    """A `Rule` as a `Policy`."""

    def __init__(self, rule: Rule, *, compiled: bool) -> None:
        self.rule = rule
        self._kernels: Any = import_module("aliquot.core.placement.kernels.classic") if compiled else None
        self._series: Any = import_module("aliquot.core.placement.kernels.series") if compiled else None
        self._number = 0 if self._series is None else self._series.RULES.index(rule.kernel)
        self._limits = Limits(1, 1)
        self._seed = 0
        self._board: Board | None = None

    @property
    def name(self) -> str:
        """As users write it."""
        return self.rule.name

    def begin(self, board: Board, mix: DemandMix, seed: int) -> None:
        """Start an epoch."""
        self._board = board
        self._seed = seed
        self._limits = limits_of(board)

    def notice(self, rows: I32, count: int) -> None:
        """Rules keep nothing about other rows."""

    def score(self, request: Request, scores: Scores, rows: I32, count: int, given: U32) -> None:
        """Write the scores of `rows[:count]`."""
        cells = self._cells()
        if self._kernels is not None:
            kernel = getattr(self._kernels, self.rule.kernel)
            kernel(cells, request, scores, self._limits.cpu, self._limits.milli, given, rows, count)
            return
        for row in rows[:count].tolist():
            self._score_row(cells, request, scores, row, int(given[row]) if given.shape[0] else 0)

    def settle(self, request: Request, scores: Scores, row: int) -> None:
        """Rules are exact at once."""

    def pick(self, request: Request, scores: Scores, rows: I32, count: int, host: int, barred: int) -> int:
        """The row of least loss, the first of equals or one of them by lot."""
        if count:
            self.score(request, scores, rows, count, NOT_GIVEN)
        cells, used = self._cells(), self._rows()
        salt = self._salt() if self.rule.by_lot else 0
        if self._kernels is not None:
            return int(self._kernels.pick_row(cells, scores, used, host, barred, salt))
        loss = open_losses(cells, scores.loss, used, host, barred)
        least = loss.min(initial=np.inf)
        if least == np.inf:
            return -1
        equals = np.flatnonzero(loss <= least + TIE).tolist()
        return min(equals, key=lambda row: uniform(salt, row)) if salt else int(equals[0])

    def series(
        self, request: Request, scores: Scores, changed: I32, count: int, host: int, rows: I32, most: int
    ) -> Iterable[tuple[int, int, float]]:
        """Score `changed[:count]`; then the first `most` places on `rows`, one after the other.

        As `series.Taken`, for no card, or for one that nobody else chooses.
        """
        cells = self._cells()
        if self._series is None:
            self.score(request, scores, changed, count, NOT_GIVEN)

            def score(some: list[int]) -> None:
                self.score(request, scores, np.array(some, np.int32), len(some), NOT_GIVEN)

            return seat_series_plain(score, cells, request, scores, host, rows, most)
        taken: I32 = np.empty(most, np.int32)
        masks: U32 = np.empty(most, np.uint32)
        losses: F64 = np.empty(most)
        rule, limits = self._number, self._limits
        found = self._series.seat_series(
            rule, cells, request, scores, limits.cpu, limits.milli, changed, count, host, rows,
            taken, masks, losses,
        )  # fmt: skip  # arrays in the order of the kernel
        return zip(taken[:found].tolist(), masks[:found].tolist(), losses[:found].tolist(), strict=True)

    def losses(self, request: Request, scores: Scores) -> F64:
        """[n] the loss of every row."""
        return scores.loss

    def terms(self, request: Request, scores: Scores, row: int) -> Terms:
        """The loss itself."""
        return ((self.rule.name, float(scores.loss[row])),)

    def _score_row(self, cells: Cells, request: Request, scores: Scores, at: int, given: int) -> None:
        row = read_row(cells, at)
        mask = fit_mask(row, request)
        scores.exact[at] = True
        if mask == 0:
            scores.loss[at], scores.mask[at] = np.inf, 0
            return
        taken = self._taken(row, request, mask, given)
        scores.loss[at], scores.mask[at] = self.rule.loss(row, request, taken, self._limits), taken

    def _taken(self, row: Row, request: Request, mask: int, given: int) -> int:
        if request.cards == 0:
            return NO_CARDS
        if given:
            return given
        return lowest(mask, request.cards) if request.cards > 1 else 1 << self.rule.card(row, mask)

    def _salt(self) -> int:
        """Drawn anew whenever what is free changes: the same state gives the same lot."""
        cells = self._cells()
        free = int(cells.effective.sum()) * 1_000_003 + int(cells.cpu.sum())
        return uniform(self._seed, free) >> 1 | 1

    def _cells(self) -> Cells:
        assert self._board is not None
        return self._board.cells

    def _rows(self) -> int:
        assert self._board is not None
        return self._board.rows


def open_losses(cells: Cells, loss: F64, rows: int, host: int, barred: int) -> F64:
    """[rows] losses, infinite where host memory is short and on the barred row."""
    result = np.where(cells.host[:rows] >= host, loss[:rows], np.inf)
    if 0 <= barred < rows:
        result[barred] = np.inf
    return result


def limits_of(board: Board) -> Limits:
    """The largest node of the site."""
    cpu = max((facts.cpu for facts in board.hardware), default=0)
    cards = max((len(facts.full) for facts in board.hardware), default=0)
    return Limits(max(cpu, 1), max(cards * 1000, 1))
