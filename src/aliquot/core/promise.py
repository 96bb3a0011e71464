"""What a job was promised, or asks to be promised, against what is expected.

Told at submission and on every question: met, can be met, at risk, cannot be met, or unknown, each with its
numbers. An interval that reaches beyond a bound never makes a promise, and a guess without an interval makes
none either: where it is within the bound, that can be met, and no more is known.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from aliquot.core.jobs import Job
from aliquot.core.lengths import told
from aliquot.core.queueing.outlook import Expected
from aliquot.core.units import FULL

LEAST_MARGIN_MS: Final = 600_000


class Answer(Enum):
    """Of all parts of a promise the gravest counts: the later one in this list."""

    MET = "met"
    POSSIBLE = "can be met"  # if nobody else comes and all ends as expected; how right that is, is not known
    UNKNOWN = "unknown"
    AT_RISK = "at risk"
    CANNOT = "cannot be met"


class Term(Enum):
    """What a promise can be about."""

    START_BY = "startBy"
    FINISH_BY = "finishBy"
    SPEED = "speedFloor"


class Part(msgspec.Struct, frozen=True):
    """One term: what is asked, and what is expected from `low` to `high`, or as a mere guess (`guess`).

    Times in ms of the engine's time, speed in milli of full speed. None: unknown.
    """

    term: Term
    answer: Answer
    bound: int
    low: int | None = None
    high: int | None = None
    guess: int | None = None


class Promise(msgspec.Struct, frozen=True):
    """All terms that a job names. No terms: nothing was asked, and that is met."""

    answer: Answer
    parts: tuple[Part, ...] = ()


class CrowdRules(msgspec.Struct, frozen=True):
    """A pool is full from `busy_milli` of its cards on, and crowded once it has been so for `for_ms`."""

    busy_milli: int = 900
    for_ms: int = 600_000


class Crowding(msgspec.Struct, frozen=True):
    """How full a pool is, and which promises that endangers. Counts are of waiting jobs."""

    is_crowded: bool
    busy_milli: int | None  # None: no cards
    since_ms: int | None = None  # full without a break; None: not full
    at_risk: int = 0
    cannot: int = 0


def promise_of(job: Job, now: int, expected: Expected | None, speed_milli: int | None = None) -> Promise:
    """What can be said at `now` of the bounds of `job`, which waits.

    `expected`: its start; None: unknown. `speed_milli`: the least it will run at, where that is known. Of a
    job that has started, ask as of its start and with `Expected.exactly`.
    """
    bound, parts = job.bound, []
    if bound.start_by_ms is not None:
        parts.append(_time(Term.START_BY, bound.start_by_ms, now, expected, 0))
    if bound.finish_by_ms is not None:
        parts.append(_time(Term.FINISH_BY, bound.finish_by_ms, now, expected, told(job)))
    if bound.speed_floor_milli is not None:
        parts.append(_speed(bound.speed_floor_milli, speed_milli))
    gravest = max((part.answer for part in parts), key=list(Answer).index, default=Answer.MET)
    return Promise(gravest, tuple(parts))


def last_start_ms(job: Job) -> int | None:
    """The last moment at which `job` may start and keep its bounds; None: it has none on time.

    A finish is no reason to hurry where nobody knows how long the job runs.
    """
    last = [] if job.bound.start_by_ms is None else [job.bound.start_by_ms]
    length = told(job)
    if job.bound.finish_by_ms is not None and length is not None:
        last.append(job.bound.finish_by_ms - length)
    return min(last, default=None)


def due_ms(job: Job) -> int | None:
    """From when on `job` must go before others, or its bounds are in danger; None: it has none on time.

    Ten minutes, or a quarter of the time it was given, before the last moment at which it may start.
    """
    last = last_start_ms(job)
    if last is None:
        return None
    return last - max(LEAST_MARGIN_MS, max(0, last - job.submitted_ms) // 4)


def least_speed(job: Job) -> int | None:
    """Milli of its speed on cards of its own that `job` runs at whatever happens; None: it depends.

    Whole cards are its own; a slice has what compute it asks for, if it asks for any. How wide an elastic
    job or a gang that may start in part will be, and over what links a scattered one, is not known before.
    """
    if job.scatter or job.elastic is not None or job.least < len(job.members):
        return None
    shared = [request for request in job.members if request.cards and not request.whole]
    asked = [request.ask.compute_milli for request in shared]
    return None if None in asked else min((milli for milli in asked if milli is not None), default=FULL)


def crowding_of(
    busy_milli: int | None,
    since_ms: int | None,
    now: int,
    promises: tuple[Promise, ...],
    rules: CrowdRules = CrowdRules(),  # noqa: B008 - a frozen value
) -> Crowding:
    """Whether a pool is crowded at `now`: full for a while, and waiting jobs' bounds in danger by it.

    `since_ms`: what the last `Crowding` said; `promises`: of the waiting jobs that ask for any.
    """
    at_risk = sum(promise.answer is Answer.AT_RISK for promise in promises)
    cannot = sum(promise.answer is Answer.CANNOT for promise in promises)
    if busy_milli is None or busy_milli < rules.busy_milli:
        return Crowding(False, busy_milli, None, at_risk, cannot)
    since = now if since_ms is None else since_ms
    is_crowded = now - since >= rules.for_ms and at_risk + cannot > 0
    return Crowding(is_crowded, busy_milli, since, at_risk, cannot)


def _time(term: Term, bound: int, now: int, expected: Expected | None, after: int | None) -> Part:
    """A bound on a moment `after` ms after the start (None: nobody knows how long after)."""
    start = Expected() if expected is None else expected
    soonest = now if start.low_ms is None else max(now, start.low_ms)
    if soonest + (after or 0) > bound:
        low = None if start.low_ms is None or after is None else start.low_ms + after
        high = None if low is None or start.high_ms is None or after is None else start.high_ms + after
        guess = None if start.at_ms is None or after is None else start.at_ms + after
        return Part(term, Answer.CANNOT, bound, low, high, guess)
    if after is None or start.at_ms is None:
        latest = start.at_ms if start.high_ms is None else start.high_ms
        late = latest is not None and latest > bound  # the start alone, however short the job is
        return Part(term, Answer.AT_RISK if late else Answer.UNKNOWN, bound)
    guess = start.at_ms + after
    if start.low_ms is None or start.high_ms is None:
        return Part(term, Answer.AT_RISK if guess > bound else Answer.POSSIBLE, bound, guess=guess)
    high = start.high_ms + after
    answer = Answer.MET if high <= bound else Answer.AT_RISK
    return Part(term, answer, bound, start.low_ms + after, high, guess)


def _speed(floor: int, speed: int | None) -> Part:
    if speed is None:
        return Part(Term.SPEED, Answer.UNKNOWN, floor)
    return Part(Term.SPEED, Answer.MET if speed >= floor else Answer.AT_RISK, floor, low=speed, guess=speed)
