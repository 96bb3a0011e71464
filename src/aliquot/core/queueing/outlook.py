"""When a waiting job will start, as an interval that is right as often as it says.

Playing the plan forward without newcomers gives a first guess; newcomers, wrong estimates and luck make the
wait longer or shorter by a factor. An outlook remembers that factor for past jobs and multiplies the guess by
its quantiles among the jobs with the nearest guesses. Jobs that still wait count as well, as "at least so
much": in a rush the long waits are those not yet over, and leaving them out would promise too much.

It knows what it was told and nothing else, so an interval uses only what had happened by then.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from aliquot.core.ids import JobId

ENOUGH: Final = 50
NEAREST: Final = 200
KEPT: Final = 2000
LEAST_MS: Final = 30_000
"""A guess below half a minute counts as half a minute: a factor of nothing means nothing."""

LEVELS: Final = (0.08, 0.5, 0.92)
"""For an interval that holds four of five: history lags behind a rush, so 0.1 and 0.9 would hold too few."""

_PARTS: Final = 10**6


class Interval(NamedTuple):
    """Waits in ms from submission: as likely shorter as longer than `middle`, seldom outside low..high."""

    low: int
    middle: int
    high: int


class Outlook:
    """Guessed waits and what became of them."""

    def __init__(self, *, nearest: int = NEAREST, kept: int = KEPT, enough: int = ENOUGH) -> None:
        self._nearest, self._kept, self._enough = nearest, kept, enough
        self._over: list[tuple[int, int]] = []
        self._order: deque[tuple[int, int]] = deque()
        self._waiting: dict[JobId, tuple[int, int]] = {}

    def begin(self, job: JobId, guess_ms: int, now: int) -> None:
        """`job` was submitted at `now` and guessed to wait `guess_ms`."""
        self._waiting[job] = (max(guess_ms, LEAST_MS), now)

    def end(self, job: JobId, now: int) -> None:
        """`job` started at `now`. One that was never begun teaches nothing."""
        begun = self._waiting.pop(job, None)
        if begun is None:
            return
        guess, since = begun
        entry = (guess, _factor(now - since, guess))
        insort(self._over, entry)
        self._order.append(entry)
        if len(self._order) > self._kept:
            del self._over[bisect_left(self._over, self._order.popleft())]

    def forget(self, job: JobId) -> None:
        """`job` was withdrawn before it started."""
        self._waiting.pop(job, None)

    def interval(self, guess_ms: int, now: int, levels: Sequence[float] = LEVELS) -> Interval | None:
        """The wait of a job guessed to wait `guess_ms`; None while too little is known."""
        if len(self._over) < self._enough:
            return None
        guess = max(guess_ms, LEAST_MS)
        near = self._near(guess)
        seen = [(factor, True) for _, factor in near]
        low, high = near[0][0], near[-1][0]
        seen.extend(
            (_factor(now - since, other), False)
            for other, since in self._waiting.values()
            if low <= other <= high and now - since >= LEAST_MS
        )
        return Interval(*(guess * factor // _PARTS for factor in survival_quantiles(seen, levels)))

    def _near(self, guess: int) -> list[tuple[int, int]]:
        size = min(self._nearest, len(self._over))
        at = bisect_left(self._over, (guess, -1))
        begin = max(0, min(at - size // 2, len(self._over) - size))
        return self._over[begin : begin + size]


def survival_quantiles(seen: Sequence[tuple[int, bool]], levels: Sequence[float]) -> list[int]:
    """Quantiles of values of which some (False) are only known to be at least so much.

    Each value that is over takes an equal part of those still beyond it; a level beyond the last one known is
    given as the largest value. Worked: 1 over, 2 not, 3 over: half lie below 3, all at or below it.
    """
    ordered = sorted(seen)
    found: list[int] = []
    beyond = 1.0
    for at, (value, over) in enumerate(ordered):
        if over:
            beyond *= 1 - 1 / (len(ordered) - at)
        while len(found) < len(levels) and 1 - beyond >= levels[len(found)] - 1e-12:
            found.append(value)
    return found + [ordered[-1][0]] * (len(levels) - len(found))


def pinball(actual: int, quantile: int, level: float) -> float:
    """The loss of having said `quantile` for `level` when it was `actual`; the true one has the least."""
    return max(level * (actual - quantile), (level - 1) * (actual - quantile))


def _factor(waited: int, guess: int) -> int:
    return max(0, waited) * _PARTS // guess
