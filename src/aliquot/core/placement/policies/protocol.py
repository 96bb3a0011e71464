"""What a policy is: something that scores rows for a request and picks one.

A score must follow from the row's content and the epoch alone; it is cached until either changes. Smaller
loss is better, infinity does not fit.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import F64, I32, U32, Request, Scores
from aliquot.core.placement.mix import DemandMix

Terms = tuple[tuple[str, float], ...]


class Limits(NamedTuple):
    """The largest node of the site, to normalise by: milli-cores and GPU milli."""

    cpu: int
    milli: int


class Policy(Protocol):
    """A way to choose a node and a card."""

    @property
    def name(self) -> str:
        """As users write it."""

    def begin(self, board: Board, mix: DemandMix, seed: int) -> None:
        """Start an epoch: whatever follows from the mix and the seed is worked out here."""

    def notice(self, rows: I32, count: int) -> None:
        """`rows[:count]` of the board changed since the last call."""

    def score(self, request: Request, scores: Scores, rows: I32, count: int, given: U32) -> None:
        """Write the scores of `rows[:count]`; `given` [n] names the cards to take, empty or 0: own choice."""

    def settle(self, request: Request, scores: Scores, row: int) -> None:
        """Make sure that the row's scores are exact."""

    def pick(self, request: Request, scores: Scores, rows: I32, count: int, host: int, barred: int) -> int:
        """Score `rows[:count]`; then the row to take of those with `host` MiB, never `barred`; -1: none."""

    def losses(self, request: Request, scores: Scores) -> F64:
        """[n] the loss of every row as `pick` compares them; exact where the scores are."""

    def terms(self, request: Request, scores: Scores, row: int) -> Terms:
        """What the loss of an exact row is made of, by name."""
