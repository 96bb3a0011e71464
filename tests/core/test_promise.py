"""Promises: what can be said of a bound, and when a bound makes a job urgent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.jobs import Bound, Job
from aliquot.core.promise import (
    LEAST_MARGIN_MS,
    Answer,
    Crowding,
    CrowdRules,
    Part,
    Promise,
    Term,
    crowding_of,
    due_ms,
    least_speed,
    promise_of,
)
from aliquot.core.queueing.outlook import Expected
from tests.support.build import a_job, a_request

MINUTE = 60_000
HOUR = 60 * MINUTE
TIMES = st.integers(0, 10 * HOUR)


def bounded(start: int | None = None, finish: int | None = None, *, runs: int | None = HOUR) -> Job:
    return a_job("j", bound=Bound(start, finish), estimate_ms=runs)


def between(low: int, high: int) -> Expected:
    return Expected((low + high) // 2, low_ms=low, middle_ms=(low + high) // 2, high_ms=high, seen=60)


@pytest.mark.parametrize(
    ("job", "expected", "answer"),
    [
        pytest.param(bounded(), between(1, 2), Answer.MET, id="nothing asked"),
        pytest.param(bounded(HOUR), between(0, HOUR), Answer.MET, id="all of it before"),
        pytest.param(bounded(HOUR), between(0, HOUR + 1), Answer.AT_RISK, id="a part of it after"),
        pytest.param(bounded(HOUR), between(HOUR + 1, 2 * HOUR), Answer.CANNOT, id="all of it after"),
        pytest.param(bounded(HOUR), Expected(MINUTE), Answer.POSSIBLE, id="a mere guess before"),
        pytest.param(bounded(HOUR), Expected(2 * HOUR), Answer.AT_RISK, id="a mere guess after"),
        pytest.param(bounded(HOUR), None, Answer.UNKNOWN, id="nothing known"),
        pytest.param(bounded(0), None, Answer.CANNOT, id="the moment has passed"),
        pytest.param(bounded(None, 2 * HOUR), between(0, HOUR), Answer.MET, id="over in time"),
        pytest.param(bounded(None, 2 * HOUR), between(0, HOUR + 1), Answer.AT_RISK, id="perhaps in time"),
        pytest.param(bounded(None, HOUR), None, Answer.CANNOT, id="runs longer than there is time"),
        pytest.param(
            bounded(None, HOUR, runs=None), between(0, 1), Answer.UNKNOWN, id="nobody knows how long it runs"
        ),
        pytest.param(
            bounded(None, HOUR, runs=None), Expected(2 * HOUR), Answer.AT_RISK, id="guessed too late"
        ),
        pytest.param(
            bounded(None, HOUR, runs=None), between(0, HOUR + 1), Answer.AT_RISK, id="it may start too late"
        ),
        pytest.param(
            bounded(None, HOUR, runs=None), between(2 * HOUR, 3 * HOUR), Answer.CANNOT, id="starts too late"
        ),
        pytest.param(bounded(HOUR, HOUR), between(0, 1), Answer.CANNOT, id="the gravest of two counts"),
    ],
)  # fmt: skip  # one row each
def test_what_is_said_of_bounds(job: Job, expected: Expected | None, answer: Answer) -> None:
    assert promise_of(job, 1, expected).answer is answer


def test_the_numbers_are_told() -> None:
    told = promise_of(bounded(HOUR, 3 * HOUR), 0, between(0, 2 * HOUR))
    assert told.parts == (
        Part(Term.START_BY, Answer.AT_RISK, HOUR, 0, 2 * HOUR, HOUR),
        Part(Term.FINISH_BY, Answer.MET, 3 * HOUR, HOUR, 3 * HOUR, 2 * HOUR),
    )


def test_a_start_that_has_happened_is_no_guess() -> None:
    assert promise_of(bounded(HOUR), HOUR, Expected.exactly(HOUR)).answer is Answer.MET
    assert promise_of(bounded(HOUR), HOUR + 1, Expected.exactly(HOUR + 1)).answer is Answer.CANNOT


@given(now=TIMES, low=TIMES, wide=TIMES, bound=TIMES, runs=TIMES)
def test_nothing_is_promised_that_the_interval_excludes(
    now: int, low: int, wide: int, bound: int, runs: int
) -> None:
    expected = between(now + low, now + low + wide)
    told = promise_of(bounded(bound, bound + runs, runs=runs), now, expected)
    for part in told.parts:
        assert part.low is not None
        assert part.high is not None
        assert (part.answer is Answer.MET) == (part.high <= part.bound)
        assert (part.answer is Answer.CANNOT) == (part.low > part.bound)


@given(now=TIMES, low=TIMES, wide=TIMES, bound=TIMES, later=TIMES)
def test_a_later_bound_is_never_harder_to_meet(now: int, low: int, wide: int, bound: int, later: int) -> None:
    order, expected = list(Answer), between(now + low, now + low + wide)
    sooner = promise_of(bounded(bound), now, expected).answer
    assert order.index(promise_of(bounded(bound + later), now, expected).answer) <= order.index(sooner)


@pytest.mark.parametrize(
    ("job", "due"),
    [
        pytest.param(bounded(), None, id="no bounds"),
        pytest.param(bounded(4 * HOUR), 3 * HOUR, id="a quarter of what it was given before the last moment"),
        pytest.param(bounded(20 * MINUTE), 10 * MINUTE, id="ten minutes at least"),
        pytest.param(bounded(MINUTE), MINUTE - LEAST_MARGIN_MS, id="at once"),
        pytest.param(bounded(None, 5 * HOUR), 3 * HOUR, id="an end leaves time to run"),
        pytest.param(bounded(None, 5 * HOUR, runs=None), None, id="unless nobody knows how long"),
        pytest.param(bounded(8 * HOUR, 5 * HOUR), 3 * HOUR, id="the earlier of both"),
    ],
)
def test_when_a_bound_makes_urgent(job: Job, due: int | None) -> None:
    assert due_ms(job) == due


def test_the_least_speed_is_that_of_what_is_its_own() -> None:
    assert least_speed(a_job("whole")) == 1000
    assert least_speed(a_job("half", a_request(compute=500))) == 500
    assert least_speed(a_job("memory", a_request(memory=1000))) is None
    assert least_speed(a_job("gang", [a_request(8)] * 2)) == 1000
    assert least_speed(a_job("part", [a_request(8)] * 2, minimum=1)) is None
    assert least_speed(a_job("anywhere", cards=8, scatter=True)) is None
    assert least_speed(a_job("mixed", [a_request(1), a_request(compute=300)])) == 300


@pytest.mark.parametrize(
    ("speed", "answer"), [(1000, Answer.MET), (899, Answer.AT_RISK), (None, Answer.UNKNOWN)]
)
def test_a_speed_floor(speed: int | None, answer: Answer) -> None:
    job = a_job("j", bound=Bound(speed_floor_milli=900))
    assert promise_of(job, 0, None, speed).answer is answer


def test_a_pool_is_crowded_when_it_is_full_for_long_and_bounds_are_in_danger() -> None:
    late, calm = (
        (Promise(Answer.AT_RISK), Promise(Answer.CANNOT), Promise(Answer.MET)),
        (Promise(Answer.MET),),
    )
    rules = CrowdRules(busy_milli=900, for_ms=10)
    first = crowding_of(950, None, 100, late, rules)
    assert first == Crowding(False, 950, 100, 1, 1)
    assert crowding_of(950, first.since_ms, 110, late, rules) == replace(first, is_crowded=True)
    assert not crowding_of(950, first.since_ms, 110, calm, rules).is_crowded
    assert crowding_of(899, first.since_ms, 110, late, rules).since_ms is None
    assert crowding_of(None, None, 110, late, rules) == Crowding(False, None, None, 1, 1)
