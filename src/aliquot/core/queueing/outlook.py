"""When a waiting job will start, as an interval that is right as often as it says.

Playing the plan forward without newcomers gives a first guess; newcomers, wrong estimates and luck make the
wait longer or shorter by a factor. An outlook remembers that factor for past jobs and multiplies the guess by
its quantiles among the jobs most like it: in guess, length, cards and how many waited. Jobs that still wait
count as well, as "at least so much": in a rush the long waits are those not yet over, and leaving them out
would promise too much. Jobs that came in one rush share their luck, so those of one stretch of the day weigh
together as much as one. Nothing longer is said than the longest wait there was, or twice the guess.

Where the plan was played into several futures, each level has a guess of its own and is stretched by its own
factor. What they say is believed at first, as if a few stretches had already been scattered around it.

It knows what it was told and nothing else, so an interval uses only what had happened by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.ids import JobId

ENOUGH: Final = 50
NEAREST: Final = 400
KEPT: Final = 2000
LEAST_MS: Final = 30_000
"""Added to guess and wait before they are compared: a factor of nothing means nothing."""

STRETCH_MS: Final = 6 * 3_600_000
"""Jobs submitted in one such stretch of time weigh together as one."""

WEIGHTS: Final = (2, 1, 1, 1)
"""What an octave counts of guess, length, cards and number waiting, where likeness is measured."""

LEVELS: Final = (0.08, 0.5, 0.92)
"""For an interval that holds four of five: history lags behind a rush, so 0.1 and 0.9 would hold too few."""

PRIOR: Final = 10
"""Stretches that what several futures say is worth, as if waits had been scattered around it."""

SAID: Final = (0.1, 0.5, 0.9)
"""The levels of a guess made of several futures."""

_PARTS: Final = 10**6
F64 = npt.NDArray[np.float64]


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
    NOT_YET = "not yet"  # nobody has looked ahead since it came: the next look tells
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


class VerifiedImage(msgspec.Struct, frozen=True):
    """Whether each interval held, its loss and its width in ms, the oldest first; `loss`: of all of them."""

    entries: list[tuple[bool, float, int]] = []
    loss: float = 0.0
    unsaid: int = 0


class OutlookImage(msgspec.Struct, frozen=True):
    """What an outlook knows, as columns over the last that started, and who waits."""

    ended: int = 0
    marks: list[list[int]] = []
    factor: list[list[int]] = []
    since: list[int] = []
    waited: list[int] = []
    waiting: list[tuple[JobId, tuple[int, int, int, int], tuple[int, int, int], int]] = []


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

    def image(self) -> VerifiedImage:
        """All that is known, for `recall`."""
        return VerifiedImage(list(self._entries), self._loss, self._unsaid)

    def recall(self, image: VerifiedImage) -> None:
        """Know what `image` says and nothing else."""
        self._entries = deque(image.entries)
        self._inside = sum(held for held, _, _ in image.entries)
        self._loss, self._unsaid = image.loss, image.unsaid

    @property
    def held_milli(self) -> int | None:
        """The part of intervals that held; None before the first."""
        return 1000 * self._inside // len(self._entries) if self._entries else None

    def __len__(self) -> int:
        return len(self._entries)


class Sight(NamedTuple):
    """What is seen of a job when it comes: the wait guessed, how long it runs (0: unknown), its cards, and
    how many wait. `low_ms` and `high_ms`: the outer ones of SAID levels, where several futures were seen.
    """

    guess_ms: int
    length_ms: int = 0
    cards: int = 1
    waiting: int = 1
    low_ms: int | None = None
    high_ms: int | None = None


class _Begun(NamedTuple):
    """A guess that was made. `marks`: what likeness is measured by; `guess`: at each level."""

    marks: tuple[int, int, int, int]
    guess: tuple[int, int, int]
    since: int


class _Open(NamedTuple):
    """Those that still wait, as columns."""

    marks: I64  # [jobs, 4]
    guess: I64  # [jobs, 3]
    since: I64  # [jobs]


class Outlook:
    """Guessed waits and what became of them."""

    def __init__(self, *, nearest: int = NEAREST, kept: int = KEPT, enough: int = ENOUGH) -> None:
        self._nearest, self._kept, self._enough = nearest, kept, enough
        self._marks = np.zeros((kept, len(WEIGHTS)), np.int64)
        self._factor = np.zeros((kept, len(LEVELS)), np.int64)
        self._since, self._waited = np.zeros((2, kept), np.int64)
        self._ended = 0
        self._waiting: dict[JobId, _Begun] = {}
        self._open: _Open | None = None

    def begin(self, job: JobId, sight: Sight, now: int) -> None:
        """`job` was submitted at `now` and seen like that."""
        self._waiting[job] = _Begun(_marks(sight), _guesses(sight), now)
        self._open = None

    def end(self, job: JobId, now: int) -> None:
        """`job` started at `now`. One that was never begun teaches nothing."""
        begun = self._waiting.pop(job, None)
        if begun is None:
            return
        self._open = None
        at = self._ended % self._kept
        waited = max(0, now - begun.since)
        self._marks[at] = begun.marks
        self._factor[at] = [_raised(waited) * _PARTS // guess for guess in begun.guess]
        self._since[at], self._waited[at] = begun.since, waited
        self._ended += 1

    def forget(self, job: JobId) -> None:
        """`job` was withdrawn before it started."""
        self._waiting.pop(job, None)
        self._open = None

    def image(self) -> OutlookImage:
        """All that is known, for `recall`."""
        size = len(self)
        marks, factor = self._marks[:size].tolist(), self._factor[:size].tolist()
        since, waited = self._since[:size].tolist(), self._waited[:size].tolist()
        waiting = [(job, *begun) for job, begun in self._waiting.items()]
        return OutlookImage(self._ended, marks, factor, since, waited, waiting)

    def recall(self, image: OutlookImage) -> None:
        """Know what `image` says and nothing else; it is of an outlook that keeps as many."""
        self._ended, self._open = image.ended, None
        size = len(self)
        self._marks[:size] = np.array(image.marks, np.int64).reshape(-1, len(WEIGHTS))
        self._factor[:size] = np.array(image.factor, np.int64).reshape(-1, len(LEVELS))
        self._since[:size], self._waited[:size] = image.since, image.waited
        self._waiting = {job: _Begun(marks, guess, since) for job, marks, guess, since in image.waiting}

    def __len__(self) -> int:
        """Guesses of which it is known what became of them."""
        return min(self._ended, self._kept)

    def interval(self, sight: Sight, now: int, levels: Sequence[float] = LEVELS) -> Interval | None:
        """The wait of a job that is seen like that; None while too little is known."""
        size = len(self)
        if size < self._enough:
            return None
        marks, guesses = np.array(_marks(sight), np.int64), _guesses(sight)
        apart = _distance(self._marks[:size], marks)
        near = np.argsort(apart, kind="stable")[: self._nearest]
        still = self._still_waiting()
        so_far = np.maximum(0, now - still.since)
        like = (_distance(still.marks, marks) <= apart[near[-1]]) & (so_far >= LEAST_MS)
        beyond = (so_far[like, None] + LEAST_MS) * _PARTS // still.guess[like]
        factors = np.concatenate((self._factor[near], beyond))
        is_over = np.concatenate((np.ones(len(near), np.bool_), np.zeros(len(beyond), np.bool_)))
        shares = _shares(np.concatenate((self._since[near], still.since[like])) // STRETCH_MS)
        if sight.low_ms is not None:
            factors = np.concatenate((factors, _DOUBT))
            is_over = np.concatenate((is_over, np.ones(len(_DOUBT), np.bool_)))
            shares = np.concatenate((shares, np.full(len(_DOUBT), PRIOR / len(_DOUBT))))
        longest = max(int(self._waited[:size].max()), int(so_far.max(initial=0)), 2 * guesses[1], guesses[2])
        waits = []
        for at, (guess, level) in enumerate(zip(guesses, levels, strict=True)):
            factor = survival_quantiles(factors[:, at], is_over, shares, (level,))[0]
            waits.append(min(longest, max(0, guess * factor // _PARTS - LEAST_MS)))
        return Interval(*sorted(waits))

    def _still_waiting(self) -> _Open:
        if self._open is None:
            rows = self._waiting.values()
            marks = np.array([row.marks for row in rows], np.int64).reshape(-1, len(WEIGHTS))
            guess = np.array([row.guess for row in rows], np.int64).reshape(-1, len(LEVELS))
            self._open = _Open(marks, guess, np.array([row.since for row in rows], np.int64))
        return self._open


def survival_quantiles(
    values: I64, is_over: npt.NDArray[np.bool_], shares: F64, levels: Sequence[float]
) -> list[int]:
    """Quantiles of values of which some (not `is_over`) are only known to be at least so much.

    Each value that is over takes its share of those still beyond it; a level beyond the last one known is
    given as the largest value. Worked, all of one share: 1 over, 2 not, 3 over: half lie below 3, all at or
    below it.
    """
    order = np.lexsort((is_over, values))
    ordered, over, share = values[order], is_over[order], shares[order]
    left = np.cumsum(share[::-1])[::-1]
    beyond = np.cumprod(np.where(over, 1 - share / left, 1.0))
    places = np.searchsorted(1 - beyond, np.array(levels) - 1e-9)
    return [int(ordered[min(place, len(ordered) - 1)]) for place in places.tolist()]


def pinball(actual: int, quantile: int, level: float) -> float:
    """The loss of having said `quantile` for `level` when it was `actual`; the true one has the least."""
    return max(level * (actual - quantile), (level - 1) * (actual - quantile))


def _raised(wait_ms: int) -> int:
    return max(0, wait_ms) + LEAST_MS


def _guesses(sight: Sight) -> tuple[int, int, int]:
    """At the three levels."""
    low = sight.guess_ms if sight.low_ms is None else sight.low_ms
    high = sight.guess_ms if sight.high_ms is None else sight.high_ms
    return _raised(low), _raised(sight.guess_ms), _raised(high)


def _marks(sight: Sight) -> tuple[int, int, int, int]:
    wanted = (_raised(sight.guess_ms), sight.length_ms, sight.cards, sight.waiting + 1)
    guess, length, cards, waiting = (
        weight * octaves_of(value) for weight, value in zip(WEIGHTS, wanted, strict=True)
    )
    return guess, length, cards, waiting


def octaves_of(value: int) -> int:
    """The logarithm to the base 2 in 64ths, straight between powers of 2, in integers: of 8 it is 192."""
    if value < 1:
        return 0
    bits = value.bit_length() - 1
    return 64 * bits + ((value << 6 >> bits) & 63)


def _distance(marks: I64, other: I64) -> I64:
    """[jobs] how unlike each is."""
    apart: I64 = np.abs(marks - other).sum(axis=1)
    return apart


def _shares(stretches: I64) -> F64:
    """[jobs] one to each stretch, in equal parts to those in it."""
    _, which, count = np.unique(stretches, return_inverse=True, return_counts=True)
    shares: F64 = 1.0 / count[which]
    return shares


def _doubt() -> I64:
    """[parts, levels] factors of waits whose logarithm is normal, with deviation 1, around what was said.

    Worked: the median of such waits is 3.6 times what was said for the level 0.1, once what was said for 0.5.
    """
    drawn = np.array([*(-z for z in reversed(_NORMAL)), *_NORMAL])
    said = np.array([-_NINE_TENTHS, 0.0, _NINE_TENTHS])
    factors: I64 = np.rint(np.exp(drawn[:, None] - said) * _PARTS).astype(np.int64)
    return factors


_NORMAL: Final = (0.0627, 0.1891, 0.3186, 0.4538, 0.5978, 0.7554, 0.9346, 1.1503, 1.4395, 1.9600)
"""Upper quantiles of the normal distribution, in the middle of each twentieth."""

_NINE_TENTHS: Final = 1.2816
"""The same at the level 0.9."""

_DOUBT: Final = _doubt()
