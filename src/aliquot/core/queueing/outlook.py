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
from enum import Enum
from typing import Final, NamedTuple

import msgspec

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


class Method(Enum):
    """How a first guess was made."""

    PLAN = "plan"  # the plan played forward: the same planner on a copy of the site
    COUNTS = "counts"  # counts of free cards per node played forward: whole cards only, no quotas, no models


class Unsaid(Enum):
    """Why there is no expected start."""

    NO_END = "no end"  # what would have to end first is not known ever to end
    TOO_FAR = "too far"  # not reached within the steps or the time allowed for looking ahead


class Expected(msgspec.Struct, frozen=True):
    """When a waiting job is expected to start, in ms of the engine's time.

    `at_ms` is the guess: nobody else comes and all ends as expected; None: unknown, and `unsaid` says why.
    `low_ms` .. `high_ms` is the interval that held for `held_milli` of the last `held_jobs` such, as likely
    before as after `middle_ms`; None while too few starts were seen, of which there were `seen`.
    """

    at_ms: int | None = None
    method: Method = Method.PLAN
    unsaid: Unsaid | None = None
    low_ms: int | None = None
    middle_ms: int | None = None
    high_ms: int | None = None
    held_milli: int | None = None
    held_jobs: int = 0
    seen: int = 0

    @classmethod
    def exactly(cls, at_ms: int) -> Expected:
        """A start that is known, since it has happened."""
        return cls(at_ms, low_ms=at_ms, middle_ms=at_ms, high_ms=at_ms)


class PredictedStart(msgspec.Struct, frozen=True):
    """How right predicted starts were, over the last `jobs` that were given an interval and then started.

    `pinball_ms`: the mean loss of the three levels. None where no such job has started.
    """

    inside_milli: int | None
    jobs: int
    pinball_ms: int | None
    width_ms: int | None = None  # of the interval in the middle of all, from low to high
    unsaid: int = 0  # starts without an interval, since too little was known when they were submitted


class Verified:
    """Intervals that were given, against what came: the last `kept` of them."""

    def __init__(self, *, kept: int = KEPT) -> None:
        self._kept = kept
        self._entries: deque[tuple[bool, float, int]] = deque()
        self._inside, self._loss, self._unsaid = 0, 0.0, 0

    def note(self, interval: Interval | None, waited: int) -> None:
        """A job of which `interval` was said has waited `waited` ms."""
        if interval is None:
            self._unsaid += 1
            return
        held = interval.low <= waited <= interval.high
        loss = sum(pinball(waited, said, level) for said, level in zip(interval, LEVELS, strict=True))
        self._entries.append((held, loss / len(LEVELS), interval.high - interval.low))
        self._inside += held
        self._loss += loss / len(LEVELS)
        if len(self._entries) > self._kept:
            old = self._entries.popleft()
            self._inside -= old[0]
            self._loss -= old[1]

    def report(self) -> PredictedStart:
        """The figures now."""
        jobs = len(self._entries)
        if not jobs:
            return PredictedStart(None, 0, None, unsaid=self._unsaid)
        widths = sorted(width for _, _, width in self._entries)
        return PredictedStart(
            1000 * self._inside // jobs, jobs, round(self._loss / jobs), widths[jobs // 2], self._unsaid
        )

    @property
    def held_milli(self) -> int | None:
        """The part of intervals that held; None before the first."""
        return 1000 * self._inside // len(self._entries) if self._entries else None

    def __len__(self) -> int:
        return len(self._entries)


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

    def __len__(self) -> int:
        """Guesses of which it is known what became of them."""
        return len(self._over)

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
