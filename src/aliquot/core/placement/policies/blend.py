"""Several policies at once: their losses, each brought to the range 0 to 1, added with weights.

The first policy chooses the card within a node; the others only have a say in the node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import F64, I32, U32, Request, Scores, blank_scores
from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies.protocol import Policy, Terms

TIE = 1e-9
NOT_GIVEN: U32 = np.zeros(0, np.uint32)


class Blend:
    """A weighted sum of policies, as a policy."""

    def __init__(self, parts: Sequence[tuple[Policy, float]]) -> None:
        self.parts = tuple(parts)
        self._columns: list[tuple[Scores, list[Scores]]] = []

    @property
    def name(self) -> str:
        """The parts with their weights."""
        return " + ".join(f"{weight:g} {policy.name}" for policy, weight in self.parts)

    def begin(self, board: Board, mix: DemandMix, seed: int) -> None:
        """Start an epoch in every part."""
        self._board = board
        self._columns = []
        for policy, _ in self.parts:
            policy.begin(board, mix, seed)

    def notice(self, rows: I32, count: int) -> None:
        """Tell every part."""
        for policy, _ in self.parts:
            policy.notice(rows, count)

    def score(self, request: Request, scores: Scores, rows: I32, count: int, given: U32) -> None:
        """Score in every part; the first part's scores are the shared ones."""
        for (policy, _), own in zip(self.parts, self._own(scores), strict=True):
            policy.score(request, own, rows, count, given)
            for row in rows[:count].tolist():
                policy.settle(request, own, row)

    def settle(self, request: Request, scores: Scores, row: int) -> None:
        """Every score was made exact at once."""

    def pick(self, request: Request, scores: Scores, rows: I32, count: int, host: int, barred: int) -> int:
        """The row of least weighted sum, the first of equals."""
        if count:
            self.score(request, scores, rows, count, NOT_GIVEN)
        total = self._total(request, scores)
        total[self._board.cells.host[: total.shape[0]] < host] = np.inf
        if 0 <= barred < total.shape[0]:
            total[barred] = np.inf
        least = total.min(initial=np.inf)
        return -1 if least == np.inf else int(np.flatnonzero(total <= least + TIE)[0])

    def terms(self, request: Request, scores: Scores, row: int) -> Terms:
        """One term per part: its weighted, normalised loss."""
        result = []
        for (policy, weight), own in zip(self.parts, self._own(scores), strict=True):
            normal = normalised(policy.losses(request, own)[: self._board.rows])
            result.append((policy.name, weight * float(normal[row])))
        return tuple(result)

    def losses(self, request: Request, scores: Scores) -> F64:
        """[n] the weighted sum."""
        total: F64 = np.full(self._board.cells.kind.shape[0], np.inf)
        total[: self._board.rows] = self._total(request, scores)
        return total

    def _total(self, request: Request, scores: Scores) -> F64:
        total: F64 = np.zeros(self._board.rows)
        for (policy, weight), own in zip(self.parts, self._own(scores), strict=True):
            total = total + weight * normalised(policy.losses(request, own)[: self._board.rows])
        return total

    def _own(self, scores: Scores) -> list[Scores]:
        """The scores of each part that belong to the shared `scores`."""
        for known, own in self._columns:
            if known.loss is scores.loss:
                return own
        own = [scores, *(blank_scores(scores.loss.shape[0]) for _ in self.parts[1:])]
        self._columns.append((scores, own))
        return own


def normalised(loss: F64) -> F64:
    """Losses from 0 (best) to 1 (worst that fits); infinite stays infinite."""
    finite = np.isfinite(loss)
    if not finite.any():
        return loss.copy()
    least, most = float(loss[finite].min()), float(loss[finite].max())
    span = most - least
    result: F64 = np.where(finite, (loss - least) / span if span > 0 else 0.0, np.inf)
    return result
