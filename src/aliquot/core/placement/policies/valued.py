"""A policy that asks what a placement destroys: the value of the row as it is, less its value afterwards.

Two measures of value share this: the future demand a node can still pack (`future_packing`), and minus the
fragment in it (`fgd`). Scarcity prices come on top, outside the cached scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.placement import scarcity, wide, worth
from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import F64, I32, U32, Request, Scores, blank_scores
from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies.classic import TIE, open_losses
from aliquot.core.placement.policies.protocol import Terms
from aliquot.core.placement.policies.rows import NO_CARDS, Row, after, bits, fit_mask, lowest, read_row
from aliquot.core.placement.scarcity import Weights
from aliquot.core.placement.shapes import Hardware
from aliquot.core.placement.streams import Tables
from aliquot.core.placement.worth import Table, Worth, blank_table

TABLE_START = 1 << 14
TABLE_LIMIT = 1 << 21
NO_WEIGHTS = Weights(0.0, 0.0, 0.0)
NO_ROWS: I32 = np.zeros(0, np.int32)
NOT_GIVEN: U32 = np.zeros(0, np.uint32)


class Measure(NamedTuple):
    """What makes a policy out of a value.

    `tables(mix, hardware, seed, cards)` are the streams or the typical requests; `scale(mix, tables)` divides
    values into GPU milli; `rounded` gives the whole points of the published FGD.
    """

    name: str
    tables: Callable[[DemandMix, Sequence[Hardware], int, int], Tables]
    scale: Callable[[DemandMix, Tables], float]
    fragments: bool
    rounded: bool
    weights: Weights


class ValuePolicy:
    """A `Measure` as a `Policy`."""

    def __init__(self, measure: Measure, *, compiled: bool) -> None:
        self.measure = measure
        self._kernels: Any = import_module("aliquot.core.placement.kernels.future") if compiled else None
        self._plain: dict[tuple[int, ...], int] = {}

    @property
    def name(self) -> str:
        """As users write it."""
        return self.measure.name

    @property
    def table(self) -> Table:
        """The values worked out so far."""
        return self._table

    def begin(self, board: Board, mix: DemandMix, seed: int) -> None:
        """Draw the streams and forget every value."""
        rows, cards = board.cells.effective.shape
        self._board = board
        self._tables = self.measure.tables(mix, board.hardware, seed, cards)
        self._scale = self.measure.scale(mix, self._tables)
        self._demands = worth.demands_of(self._tables, fragments=self.measure.fragments)
        self._table = blank_table(TABLE_START, worth.words(cards, flat=self._tables.flat))
        self._worth = Worth(np.zeros(rows, np.int64), np.full(rows, -1, np.int64))
        self._plain = {}
        self._fresh = NO_ROWS
        self._nothing = _nothing(len(board.hardware))
        self._unused = blank_scores(rows)
        self._scarce = scarcity.scarcity_of(mix, self.measure.weights, rows, len(board.hardware))

    def notice(self, rows: I32, count: int) -> None:
        """Count `rows[:count]` anew and price; compiled, together with the next scoring."""
        if self.measure.weights == NO_WEIGHTS:
            return
        if self._kernels is not None:
            self._fresh = rows[:count].copy()
        else:
            scarcity.notice(self._scarce, self._board.cells, rows[:count].tolist())

    def score(self, request: Request, scores: Scores, rows: I32, count: int, given: U32) -> None:
        """Write the scores of `rows[:count]`; compiled, some are bounds until `pick` or `settle`."""
        if self._kernels is not None:
            self._decide(request, scores, rows, count, given, True, 0, 0, -1)
            return
        for row in rows[:count].tolist():
            self._score_plain(request, scores, row, int(given[row]) if given.shape[0] else 0)

    def settle(self, request: Request, scores: Scores, row: int) -> None:
        """Make sure that the row's scores are exact."""
        if not scores.exact[row]:
            self._decide(request, scores, np.array([row], np.int32), 1, NOT_GIVEN, False, 0, 0, -1)

    def pick(self, request: Request, scores: Scores, rows: I32, count: int, host: int, barred: int) -> int:
        """The row of least loss, price and reserve included; the first of equals."""
        used = self._board.rows
        if self._kernels is not None:
            return self._decide(request, scores, rows, count, NOT_GIVEN, True, used, host, barred)
        self.score(request, scores, rows, count, NOT_GIVEN)
        total = (
            open_losses(self._board.cells, scores.loss, used, host, barred)
            + self._extra(request, scores)[:used]
        )
        least = total.min(initial=np.inf)
        return -1 if least == np.inf else int(np.flatnonzero(total <= least + TIE)[0])

    def losses(self, request: Request, scores: Scores) -> F64:
        """[n] loss, price and reserve of every row."""
        return scores.loss + self._extra(request, scores)

    def terms(self, request: Request, scores: Scores, row: int) -> Terms:
        """Destroyed value, price of the model, reserve of whole slots: milli of a card, or points for FGD."""
        price = float(self._scarce.price[self._board.cells.kind[row]] * request.milli)
        kept = 0.0
        for at, reserve in enumerate(self._scarce.reserve.tolist()):
            kept += reserve * int(scores.lost[row, at])
        return (("destroyed", float(scores.loss[row])), ("price", price), ("reserve", kept))

    def values(self, rows: I32) -> F64:
        """GPU milli of future demand that `rows` are worth as they are (for FGD: the fragment in them)."""
        if self._kernels is None:
            return np.array([self._value_plain(row) for row in rows.tolist()], np.float64)
        self.score(self._nothing, self._unused, rows, rows.shape[0], NOT_GIVEN)
        result: F64 = self._worth.value[rows] / self._scale
        result[self._board.cells.kind[rows] < 0] = 0.0
        return result

    def _decide(
        self,
        request: Request,
        scores: Scores,
        changed: I32,
        count: int,
        given: U32,
        bound: bool,
        rows: int,
        host: int,
        barred: int,
    ) -> int:
        row = self._kernels.decide(
            self._board.cells, request, scores, self._demands, self._table, self._scarce, self._worth,
            given, bound, self.measure.rounded, self._scale, self._tables.card_class, changed, count,
            self._fresh, rows, host, barred,
        )  # fmt: skip
        self._fresh = NO_ROWS
        self._make_room()
        return int(row)

    def _make_room(self) -> None:
        """Double the table when two thirds are in use; at its limit start afresh."""
        capacity = self._table.keys.shape[0]
        if int(self._table.tally[0]) * 3 < capacity * 2:
            return
        if capacity < TABLE_LIMIT:
            larger = blank_table(capacity * 4, self._table.keys.shape[1])
            self._kernels.rehash(self._table, larger)
            self._table = larger
        else:
            self._table = blank_table(capacity, self._table.keys.shape[1])

    # --- the twin ----------------------------------------------------------------------------------------

    def _extra(self, request: Request, scores: Scores) -> F64:
        """[n] price and reserve of every row, summed in the kernel's order."""
        kinds = self._board.cells.kind
        result: F64 = np.where(kinds >= 0, self._scarce.price[kinds], 0.0) * request.milli
        for at, reserve in enumerate(self._scarce.reserve.tolist()):
            result = result + reserve * scores.lost[:, at]
        return result

    def _score_plain(self, request: Request, scores: Scores, at: int, given: int) -> None:
        row = read_row(self._board.cells, at)
        scores.exact[at], scores.loss[at], scores.mask[at] = True, np.inf, 0
        mask = fit_mask(row, request)
        if mask == 0:
            return
        before = self._value(row, row.cpu, self._codes(row))
        best, chosen = math.inf, 0
        for taken in _options(request, mask, given):
            loss = self._judge(
                before - self._value(row, row.cpu - request.cpu, self._codes(row, request, taken))
            )
            if loss < best - TIE:
                best, chosen = loss, taken
        scores.loss[at], scores.mask[at] = best, chosen or NO_CARDS
        idle, left = row.idle.bit_count(), (row.idle & ~chosen).bit_count()
        had = scarcity.sets_in(self._scarce, row.kind, idle, row.cpu)
        kept = scarcity.sets_in(self._scarce, row.kind, left, row.cpu - request.cpu)
        lost = [was - now for was, now in zip(had, kept, strict=True)]
        scores.lost[at, : len(had)], scores.breaks[at] = lost, any(lost)

    def _judge(self, lost: int) -> float:
        if not self.measure.rounded:
            return lost / self._scale
        return float(-math.floor(100.0 / (1.0 + math.exp(-lost / self._scale / 1000.0))))

    def _value_plain(self, at: int) -> float:
        row = read_row(self._board.cells, at)
        return self._value(row, row.cpu, self._codes(row)) / self._scale if row.kind >= 0 else 0.0

    def _codes(self, row: Row, request: Request | None = None, taken: int = 0) -> list[int]:
        """The sorted codes of the cards, with the request booked on the cards `taken`."""
        codes = []
        for card in range(len(row.effective)):
            booked = request if request is not None and taken >> card & 1 else None
            codes.append(self._code(row, card, booked))
        return sorted(codes, reverse=True)

    def _code(self, row: Row, card: int, booked: Request | None) -> int:
        if booked is not None and booked.whole:
            return 0
        if self._tables.flat:
            return row.effective[card] if booked is None else after(row, booked, card)
        if not row.usable >> card & 1:
            return 0
        ask = booked.ask[row.kind].tolist() if booked is not None else [0, 0, 0]
        left = [have - wanted for have, wanted in zip(row.left[card], ask, strict=True)]
        idle = (row.idle >> card & 1) if booked is None else 0
        return worth.code(left, int(self._tables.card_class[row.kind, card]), idle)

    def _value(self, row: Row, cpu: int, codes: list[int]) -> int:
        profile = int(self._tables.profile[row.kind])
        cpu = cpu if self.measure.fragments else worth.coarse(cpu)
        key = (profile, cpu, *codes)
        if key not in self._plain:
            self._plain[key] = (
                worth.value_plain(self._tables, profile, cpu, codes, fragments=True)
                if self.measure.fragments
                else wide.value_wide(self._tables, profile, cpu, codes)
            )
        return self._plain[key]


def _options(request: Request, mask: int, given: int) -> list[int]:
    """Sets of cards to compare: each fitting card, or the one set that is given."""
    if request.cards == 0:
        return [0]
    if given:
        return [given]
    if request.cards > 1:
        return [lowest(mask, request.cards)]
    return [1 << card for card in bits(mask)]


def _nothing(kinds: int) -> Request:
    """A request that asks for nothing and fits everywhere: scoring it works out what rows are worth."""
    zeros = np.zeros((kinds, DIMS), np.int32)
    return Request(0, 0, 0, False, 0, zeros, np.ones(kinds, np.uint32), np.zeros(kinds, np.int32))


__all__ = ["Measure", "ValuePolicy"]
