"""Predicted waits: factors of a guess, learnt from what became of earlier ones."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import (
    LEAST_MS,
    LEVELS,
    STRETCH_MS,
    Interval,
    Outlook,
    PredictedStart,
    Sight,
    Verified,
    octaves_of,
    pinball,
    survival_quantiles,
)

MINUTE = 60_000


def taught(*factors: float, guess: int = MINUTE) -> Outlook:
    """Jobs of which the wait, with half a minute on both, was so many times the guess."""
    outlook = Outlook(enough=3)
    for number, factor in enumerate(factors):
        outlook.begin(JobId(str(number)), Sight(guess), 0)
        outlook.end(JobId(str(number)), stretched(guess, factor))
    return outlook


def stretched(guess: int, factor: float) -> int:
    return max(0, int((guess + LEAST_MS) * factor) - LEAST_MS)


def at_once(wait: int) -> Interval:
    return Interval(wait, wait, wait)


def test_each_level_of_several_futures_is_stretched_as_it_was_wrong_itself() -> None:
    outlook = Outlook(enough=3)
    said = Sight(10 * MINUTE, low_ms=MINUTE, high_ms=20 * MINUTE)
    for number in range(200):
        since = number * STRETCH_MS
        outlook.begin(JobId(str(number)), said, since)
        outlook.end(JobId(str(number)), since + 10 * MINUTE)
    found = outlook.interval(said, 0)
    assert found is not None
    assert found == pytest.approx((10 * MINUTE,) * 3, abs=5), "all waited so long"


def test_what_several_futures_say_is_believed_until_enough_came() -> None:
    outlook = Outlook(enough=3)
    said = Sight(60 * MINUTE, low_ms=30 * MINUTE, high_ms=120 * MINUTE)
    assert outlook.interval(said, 0) is None
    for number in range(3):
        outlook.begin(JobId(str(number)), said, 0)
        outlook.end(JobId(str(number)), 5 * MINUTE)
    found = outlook.interval(said, 0)
    assert found is not None
    assert found.low < 30 * MINUTE
    assert 40 * MINUTE < found.middle < 60 * MINUTE, "one stretch says little"
    assert 80 * MINUTE < found.high < 125 * MINUTE


def test_before_enough_is_known_nothing_is_said() -> None:
    assert taught(1, 1).interval(Sight(MINUTE), 0) is None
    assert Outlook().interval(Sight(MINUTE), 0) is None


def test_a_guess_is_stretched_as_earlier_guesses_were() -> None:
    outlook = taught(1, 2, 3, guess=10 * MINUTE)
    expected = [stretched(MINUTE, factor) for factor in (1, 2, 3)]
    assert outlook.interval(Sight(MINUTE), 0) == Interval(*expected)


def test_nothing_longer_is_said_than_what_there_was_or_twice_the_guess() -> None:
    outlook = taught(1, 1, 9, 9)
    seen = stretched(MINUTE, 9)
    assert outlook.interval(Sight(2 * MINUTE), 0) == Interval(2 * MINUTE, 2 * MINUTE, seen)
    twice = 2 * (10 * MINUTE + LEAST_MS)
    assert outlook.interval(Sight(10 * MINUTE), 0) == Interval(10 * MINUTE, 10 * MINUTE, twice)
    outlook.begin(JobId("still"), Sight(99 * MINUTE), 0)
    found = outlook.interval(Sight(10 * MINUTE), 50 * MINUTE)
    assert found is not None
    assert found.high == 50 * MINUTE, "who waits still has waited longer"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(Sight(MINUTE), Sight(60 * MINUTE), id="guess"),
        pytest.param(Sight(MINUTE, 1000), Sight(MINUTE, 500_000), id="length"),
        pytest.param(Sight(MINUTE, 0, 1), Sight(MINUTE, 0, 8), id="cards"),
        pytest.param(Sight(MINUTE, 0, 1, 2), Sight(MINUTE, 0, 1, 900), id="how many wait"),
    ],
)
def test_those_most_like_it_speak(one: Sight, other: Sight) -> None:
    outlook = Outlook(enough=2, nearest=2)
    for number, (sight, factor) in enumerate([(one, 1), (other, 3), (one, 1), (other, 3)]):
        outlook.begin(JobId(str(number)), sight, 0)
        outlook.end(JobId(str(number)), stretched(sight.guess_ms, factor))
    assert outlook.interval(one, 0) == at_once(stretched(one.guess_ms, 1))
    assert outlook.interval(other, 0) == at_once(stretched(other.guess_ms, 3))


def test_a_rush_weighs_as_much_as_a_quiet_time() -> None:
    outlook = Outlook(enough=3)
    came = [0, STRETCH_MS, *[2 * STRETCH_MS + at for at in range(50)]]
    for number, since in enumerate(came):
        outlook.begin(JobId(str(number)), Sight(MINUTE), since)
        outlook.end(JobId(str(number)), since + (MINUTE if number < 2 else 10 * MINUTE))
    assert outlook.interval(Sight(MINUTE), 0, (0.5, 0.6, 0.9)) == (MINUTE, MINUTE, 10 * MINUTE)


def test_who_still_waits_counts_as_at_least_so_long() -> None:
    outlook = taught(1, 1, 1, 1)
    outlook.begin(JobId("long"), Sight(MINUTE), 0)
    assert outlook.interval(Sight(MINUTE), 10 * MINUTE) == Interval(MINUTE, MINUTE, 10 * MINUTE)
    outlook.forget(JobId("long"))
    assert outlook.interval(Sight(MINUTE), 10 * MINUTE) == at_once(MINUTE)


def test_a_guess_of_nothing_is_still_stretched() -> None:
    assert taught(1, 1, 3, guess=0).interval(Sight(0), 0) == Interval(0, 0, 2 * LEAST_MS)
    assert taught(0, 0, 0).interval(Sight(5), 0) == at_once(0)


def test_only_the_latest_are_kept_and_strangers_teach_nothing() -> None:
    outlook = Outlook(enough=2, kept=2)
    for number, waited in enumerate([9, 1, 1]):
        outlook.begin(JobId(str(number)), Sight(MINUTE), 0)
        outlook.end(JobId(str(number)), waited * MINUTE)
    outlook.end(JobId("stranger"), 99 * MINUTE)
    assert len(outlook) == 2
    assert outlook.interval(Sight(MINUTE), 0) == at_once(MINUTE)


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_octaves_grow_with_what_they_measure(one: int, other: int) -> None:
    assert (octaves_of(one) - octaves_of(other)) * (one - other) >= 0
    assert [octaves_of(value) for value in (0, 1, 2, 3, 4, 8)] == [0, 0, 64, 96, 128, 192]


@pytest.mark.parametrize(
    ("values", "is_over", "levels", "expected"),
    [
        pytest.param([1, 2, 3], [True, False, True], [0.3, 0.5, 0.9], [1, 3, 3], id="worked"),
        pytest.param(list(range(1, 11)), [True] * 10, [0.1, 0.5, 0.9], [1, 5, 9], id="all over"),
        pytest.param([1, 9], [True, False], [0.5, 0.9], [1, 9], id="beyond what is known"),
    ],
)
def test_quantiles_with_some_not_over(
    values: list[int], is_over: list[bool], levels: list[float], expected: list[int]
) -> None:
    columns = np.array(values), np.array(is_over)
    assert survival_quantiles(*columns, np.ones(len(values)), levels) == expected
    turned = tuple(column[::-1] for column in columns)
    assert survival_quantiles(turned[0], turned[1], np.ones(len(values)), levels) == expected


def test_quantiles_go_by_shares() -> None:
    values, over = np.array([1, 2]), np.array([True, True])
    assert survival_quantiles(values, over, np.array([3.0, 1.0]), [0.7, 0.8]) == [1, 2]


def test_pinball_weighs_too_low_by_the_level_and_too_high_by_the_rest() -> None:
    assert pinball(10, 0, 0.9) == pytest.approx(9)
    assert pinball(0, 10, 0.9) == pytest.approx(1)
    assert pinball(5, 5, 0.9) == 0


def test_on_waits_that_do_not_change_their_habits_the_interval_holds_as_often_as_it_says() -> None:
    draw, outlook, held = random.Random(7), Outlook(), 0
    for number in range(1500):
        guess, factor = draw.randint(MINUTE, 100 * MINUTE), draw.lognormvariate(0, 1)
        at = number * STRETCH_MS
        found = outlook.interval(Sight(guess), at, (0.1, 0.5, 0.9)) if number >= 500 else None
        held += found is not None and found.low <= guess * factor <= found.high
        outlook.begin(JobId(str(number)), Sight(guess), at)
        outlook.end(JobId(str(number)), at + int(guess * factor))
    assert 760 <= held <= 840


def test_how_right_intervals_were_is_counted_over_the_last() -> None:
    verified = Verified(kept=2)
    assert verified.report() == PredictedStart(None, 0, None)
    verified.note(None, 5)
    verified.note(Interval(0, 0, 0), 100)
    verified.note(Interval(0, 10, 20), 10)
    verified.note(Interval(0, 10, 40), 41)
    told = verified.report()
    assert (told.jobs, told.inside_milli, told.unsaid) == (2, 500, 1)
    assert told.width_ms == 40
    loss = [pinball(10, 0, LEVELS[0]), 0, pinball(10, 20, LEVELS[2])]
    loss += [pinball(41, said, level) for said, level in zip((0, 10, 40), LEVELS, strict=True)]
    assert told.pinball_ms == round(sum(loss) / 6)
