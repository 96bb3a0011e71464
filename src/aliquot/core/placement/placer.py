"""The placer: keeps the board and every cached score up to date, and says where a shape should go.

It lives outside the world, between plans. Everything it keeps follows from the rows it was shown and the
epoch, so a placer that has seen much and a new one choose the same; it can be thrown away at any time.

It does not decide who goes next, books nothing, and does not choose among linked cards: for several cards it
asks a `SetChooser`, which knows the wiring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.placement.board import Board, View
from aliquot.core.placement.cells import BLOCK, F64, I32, I64, U32, Cells, Request, Scores, blank_scores
from aliquot.core.placement.fills import Among, Fill, among
from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies import DEFAULT, Policy, build
from aliquot.core.placement.policies.blend import Blend
from aliquot.core.placement.policies.classic import Rule, RulePolicy
from aliquot.core.placement.policies.protocol import Terms
from aliquot.core.placement.policies.rows import NO_CARDS, fit_masks
from aliquot.core.placement.policies.valued import Measure, ValuePolicy
from aliquot.core.placement.shapes import Hardware, Shape, step, without_host

MOST_SCORES: Final = 16_000_000  # cached scores in all, about 22 bytes each
NOT_GIVEN: U32 = np.zeros(0, np.uint32)


class SetChooser(Protocol):
    """Which cards of a node a request for several takes: the business of topology."""

    def __call__(
        self, kind: int, free: int, count: int, traffic: Sequence[int], need: object
    ) -> tuple[int, float]:
        """The mask of `count` cards out of `free`, and a loss for bad wiring; mask 0: refused.

        `need` is the shape's, as its maker left it there.
        """


class Choice(NamedTuple):
    """Where a shape should go. `card` is the single card, -1 for none or several; `mask` names them all."""

    row: int
    card: int
    mask: int
    loss: float
    terms: Terms


class Placer:
    """Scores and choices for one policy, or a weighted blend of several."""

    def __init__(
        self,
        hardware: Sequence[Hardware],
        policy: str | Rule | Measure | Mapping[str, float] = DEFAULT,
        *,
        chooser: SetChooser | None = None,
        engine: str = "numba",
    ) -> None:
        self.compiled = engine == "numba"
        self.board = Board(hardware, compiled=self.compiled)
        self.policy = _policy_of(policy, compiled=self.compiled)
        self._chooser = chooser
        self._fit_masks = _fit_masks(compiled=self.compiled)
        self._among: Among = among(compiled=self.compiled)
        self._mix = DemandMix()
        self._epoch = -1
        self._seed = 0
        self._generation = -1
        self._noticed = 0
        self._columns: dict[Shape, _Column] = {}
        self._column_of: dict[Shape, _Column] = {}
        self._fills: dict[Shape, Fill] = {}
        self._scratch: I32 = np.zeros(0, np.int32)

    @property
    def epoch(self) -> int:
        """The epoch that scores belong to; -1 before the first."""
        return self._epoch

    def set_epoch(self, mix: DemandMix, epoch: int, seed: int) -> None:
        """Score by `mix` from now on. The same epoch again changes nothing."""
        if epoch == self._epoch and seed == self._seed and mix is self._mix:
            return
        self._mix, self._epoch, self._seed = mix, epoch, seed
        self._generation = -1

    def sync(self, view: View) -> None:
        """Bring the board up to date with every row of `view`."""
        self.board.sync(view)

    def refresh(self, view: View, rows: Iterable[int]) -> None:
        """Bring `rows` up to date, after each booking in a draft and after a rollback."""
        self.board.refresh(view, rows)

    def choose(self, shape: Shape, barred: int = -1) -> Choice | None:
        """The best place for `shape`, never row `barred`; None where none fits."""
        self._begin()
        column = self._column(shape)
        count = self.board.changed_since(column.seen, self._scratch)
        column.seen = self.board.length
        if count and self._has_chooser_for(shape):
            self.score_rows(column, self._scratch, count)
            count = 0
        row = self.policy.pick(column.request, column.scores, self._scratch, count, shape.host, barred)
        return None if row < 0 else self._choice(column, row)

    def explain(self, shape: Shape, n: int = 2) -> tuple[Choice, ...]:
        """The best `n` places, the chosen one first. Slower than `choose`: every row is worked out."""
        column = self.scored(shape)
        kept = column.scores.loss.copy()
        found: list[Choice] = []
        for _ in range(n):
            row = self.policy.pick(column.request, column.scores, self._scratch, 0, shape.host, -1)
            if row < 0:
                break
            found.append(self._choice(column, row))
            kept[row] = column.scores.loss[row]
            column.scores.loss[row] = np.inf
        for choice in found:
            column.scores.loss[choice.row] = kept[choice.row]
            block = choice.row // BLOCK
            column.scores.floor[block] = min(column.scores.floor[block], kept[choice.row])
        return tuple(found)

    def choose_among(self, shape: Shape, rows: I32) -> Choice | None:
        """The best place for `shape` on one of `rows`, the first of equals; None where none fits."""
        column = self.scored(shape)
        scores, left = column.scores, self.board.cells.host
        while True:
            loss = self.policy.losses(column.request, scores)
            row = int(self._among.pick_among(loss, scores.exact, left, shape.host, rows))
            if row >= 0:
                return self._choice(column, row)
            if -1 - row >= loss.shape[0]:
                return None
            self.policy.settle(column.request, scores, -1 - row)

    def choose_series(self, shape: Shape, rows: I32, most: int) -> list[Choice] | None:
        """The first `most` places for `shape` on `rows`, as `choose_among` would choose each after the last.

        Fewer where no more fit. None: they have to be chosen one by one, since a place depends on other rows,
        or on what the chooser says of each set of cards.
        """
        policy = self.policy
        if not isinstance(policy, RulePolicy) or shape.cards > 1 or self._has_chooser_for(shape):
            return None
        self._begin()
        column = self._column(shape)
        count = self.board.changed_since(column.seen, self._scratch)
        column.seen = self.board.length
        found = policy.series(column.request, column.scores, self._scratch, count, shape.host, rows, most)
        name, with_card = policy.name, shape.cards == 1
        return [_simple_choice(name, with_card, *taken) for taken in found]

    def fills(self, shape: Shape) -> I64:
        """[n] how often `shape` could be put on each row, see `fills`. Not to be written."""
        self._begin()
        fill = self._fills.get(shape)
        if fill is None:
            rows = self.board.cells.kind.shape[0]
            if len(self._fills) * rows > MOST_SCORES:
                self._fills.clear()
            fill = self._fills[shape] = Fill(rows, request_of(shape, self.board.hardware))
        count = self.board.changed_since(fill.seen, self._scratch)
        if count:
            changed = self._scratch[:count]
            self._among.count_fills(self.board.cells, fill.request, shape.host, changed, fill.counts)
        fill.seen = self.board.length
        return fill.counts

    def feasible_rows(self, shape: Shape) -> list[int]:
        """The rows where `shape` fits now, in order."""
        column = self.scored(shape)
        used = self.board.rows
        fits = np.isfinite(column.scores.loss[:used]) & (self.board.cells.host[:used] >= shape.host)
        return [int(row) for row in np.flatnonzero(fits)]

    def values(self, rows: I32) -> F64:
        """[rows] GPU milli of future demand each can still pack; 0 for policies without such a value."""
        self._begin()
        if isinstance(self.policy, ValuePolicy):
            return self.policy.values(rows)
        return np.zeros(rows.shape[0])

    def loss_at(self, shape: Shape, row: int, card: int = -1) -> float:
        """What placing `shape` on the row costs, on `card` where given; infinite where it does not fit."""
        choice = self.choice_at(shape, row, card)
        return np.inf if choice is None else choice.loss

    def choice_at(self, shape: Shape, row: int, card: int = -1) -> Choice | None:
        """How `shape` would sit on the row, on `card` where given; None where it does not fit."""
        self._begin()
        column = self._column(shape)
        if self.board.cells.host[row] < shape.host:
            return None
        given = NOT_GIVEN
        if card >= 0:
            given = np.zeros(self.board.cells.kind.shape[0], np.uint32)
            given[row] = 1 << card
        self.policy.score(column.request, column.what_if, np.array([row], np.int32), 1, given)
        if not np.isfinite(column.what_if.loss[row]):
            return None
        return self._choice(column, row, column.what_if)

    def scored(self, shape: Shape) -> _Column:
        """The shape's column, brought up to date."""
        self._begin()
        column = self._column(shape)
        count = self.board.changed_since(column.seen, self._scratch)
        if count:
            self.score_rows(column, self._scratch, count)
        column.seen = self.board.length
        return column

    def score_rows(self, column: _Column, rows: I32, count: int) -> None:
        """Score `rows[:count]` anew, cards chosen by the chooser where several are asked for."""
        if not self._has_chooser_for(column.shape):
            self.policy.score(column.request, column.scores, rows, count, NOT_GIVEN)
            return
        given, penalty = self._choose_sets(column, rows[:count].tolist())
        self.policy.score(column.request, column.scores, rows, count, given)
        for row, loss in penalty.items():
            column.scores.loss[row] += loss  # never negative, so that floors stay floors

    def _has_chooser_for(self, shape: Shape) -> bool:
        return self._chooser is not None and (shape.cards > 1 or (shape.sought and shape.cards == 1))

    def _choose_sets(self, column: _Column, rows: list[int]) -> tuple[U32, dict[int, float]]:
        """Cards for each row where the shape fits, and what their wiring costs; each case is asked once."""
        assert self._chooser is not None
        cells, request, shape = self.board.cells, column.request, column.shape
        given = np.zeros(cells.kind.shape[0], np.uint32)
        penalty: dict[int, float] = {}
        chosen: dict[tuple[int, int, bytes], tuple[int, float]] = {}
        for at, free in zip(rows, self._fit_masks(cells, request, rows), strict=True):
            if not free:
                continue
            kind, traffic = int(cells.kind[at]), cells.traffic[at]
            key = (kind, free, traffic.tobytes())
            if key not in chosen:
                chosen[key] = self._chooser(kind, free, shape.cards, traffic.tolist(), shape.need)
            mask, loss = chosen[key]
            given[at], penalty[at] = mask, loss if mask else np.inf
        return given, penalty

    def _choice(self, column: _Column, row: int, scores: Scores | None = None) -> Choice:
        scores = column.scores if scores is None else scores
        self.policy.settle(column.request, scores, row)
        mask = int(scores.mask[row])
        mask = 0 if mask == NO_CARDS else mask
        terms = self.policy.terms(column.request, scores, row)
        loss = sum(term for _, term in terms)
        return Choice(row, mask.bit_length() - 1 if column.shape.cards == 1 else -1, mask, loss, terms)

    def _begin(self) -> None:
        """Start the epoch where it, or the arrays, are new; then count the rows that changed."""
        if self._generation != self.board.generation:
            self._generation = self.board.generation
            self._scratch = np.zeros(max(self.board.cells.kind.shape[0], 1), np.int32)
            self._columns, self._column_of, self._fills = {}, {}, {}
            self._noticed = -1
            self.policy.begin(self.board, self._mix, self._seed)
        if self._noticed != self.board.length:
            if not isinstance(self.policy, RulePolicy):  # rules keep nothing of other rows
                count = self.board.changed_since(self._noticed, self._scratch)
                self.policy.notice(self._scratch, count)
            self._noticed = self.board.length

    def _column(self, shape: Shape) -> _Column:
        """Shapes that differ in host memory only share a column. All are dropped when they grow too large."""
        known = self._column_of.get(shape)
        if known is not None:
            return known
        bare = without_host(shape)
        column = self._columns.get(bare)
        if column is None:
            if len(self._columns) * self.board.cells.kind.shape[0] > MOST_SCORES:
                self._columns, self._column_of = {}, {}
            column = _Column(bare, self.board)
            self._columns[bare] = column
        self._column_of[shape] = column
        return column


class _Column:
    """The cached scores of one shape, and the log position they are good for."""

    def __init__(self, shape: Shape, board: Board) -> None:
        self.shape = shape
        self.request = request_of(shape, board.hardware)
        self.seen = -1
        self.scores = blank_scores(board.cells.kind.shape[0])
        self._what_if: Scores | None = None
        self._rows = board.cells.kind.shape[0]

    @property
    def what_if(self) -> Scores:
        """Scores to scribble on."""
        if self._what_if is None:
            self._what_if = blank_scores(self._rows)
        return self._what_if


def _simple_choice(name: str, with_card: bool, row: int, mask: int, loss: float) -> Choice:
    """As `Placer._choice`, where the rule `name` has said all there is to say."""
    mask = 0 if mask == NO_CARDS else mask
    return Choice(row, mask.bit_length() - 1 if with_card else -1, mask, 0 + loss, ((name, loss),))


def request_of(shape: Shape, hardware: Sequence[Hardware]) -> Request:
    """A shape as arrays."""
    kinds = len(hardware)
    ask: I32 = np.zeros((kinds, DIMS), np.int32)
    lowered: I32 = np.zeros(kinds, np.int32)
    for kind, facts in enumerate(hardware):
        if shape.cards:
            ask[kind] = shape.ask[kind]
            steps = {step(shape, kind, full) for full in facts.full}
            lowered[kind] = steps.pop() if len(steps) == 1 else -1
    eligible = np.array(shape.eligible, np.uint32).reshape(kinds)
    return Request(shape.cpu, shape.host, shape.cards, shape.whole, shape.milli, ask, eligible, lowered)


def _fit_masks(*, compiled: bool) -> Callable[[Cells, Request, list[int]], list[int]]:
    if not compiled:
        return fit_masks
    from aliquot.core.placement.kernels import fit

    def run(cells: Cells, request: Request, rows: list[int]) -> list[int]:
        wanted = np.array(rows, np.int32)
        out = np.zeros(wanted.shape[0], np.int64)
        fit.fit_masks(cells, request, wanted, out)
        return [int(mask) for mask in out]

    return run


def _policy_of(policy: str | Rule | Measure | Mapping[str, float], *, compiled: bool) -> Policy:
    if not isinstance(policy, Mapping):
        return build(policy, compiled=compiled)
    parts = [(name, weight) for name, weight in policy.items() if weight > 0]
    if len(parts) == 1:
        return build(parts[0][0], compiled=compiled)
    return Blend([(build(name, compiled=compiled), weight) for name, weight in parts])


__all__ = ["Choice", "Placer", "SetChooser", "request_of"]
