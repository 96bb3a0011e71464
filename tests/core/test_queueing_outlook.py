"""Predicted waits: factors of a guess, learnt from what became of earlier ones."""

from __future__ import annotations

import random

import pytest

from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import (
    LEAST_MS,
    LEVELS,
    Interval,
    Outlook,
    PredictedStart,
    Verified,
    pinball,
    survival_quantiles,
)

MINUTE = 60_000


def taught(*factors: float, guess: int = MINUTE) -> Outlook:
    outlook = Outlook(enough=3)
    for number, factor in enumerate(factors):
        outlook.begin(JobId(str(number)), guess, 0)
        outlook.end(JobId(str(number)), int(guess * factor))
    return outlook


def test_before_enough_is_known_nothing_is_said() -> None:
    assert taught(1, 1).interval(MINUTE, 0) is None
    assert Outlook().interval(MINUTE, 0) is None


def test_a_guess_is_stretched_as_earlier_guesses_were() -> None:
    outlook = taught(1, 2, 3)
    assert outlook.interval(10 * MINUTE, 0) == Interval(10 * MINUTE, 20 * MINUTE, 30 * MINUTE)


def test_the_nearest_guesses_speak() -> None:
    outlook = Outlook(enough=2, nearest=2)
    for number, (guess, waited) in enumerate([(1, 1), (1, 1), (60, 120), (60, 120)]):
        outlook.begin(JobId(str(number)), guess * MINUTE, 0)
        outlook.end(JobId(str(number)), waited * MINUTE)
    assert outlook.interval(MINUTE, 0) == Interval(MINUTE, MINUTE, MINUTE)
    assert outlook.interval(70 * MINUTE, 0) == Interval(*[140 * MINUTE] * 3)


def test_who_still_waits_counts_as_at_least_so_long() -> None:
    outlook = taught(1, 1, 1, 1)
    outlook.begin(JobId("long"), MINUTE, 0)
    assert outlook.interval(MINUTE, 9 * MINUTE) == Interval(MINUTE, MINUTE, 9 * MINUTE)
    outlook.forget(JobId("long"))
    assert outlook.interval(MINUTE, 9 * MINUTE) == Interval(MINUTE, MINUTE, MINUTE)


def test_a_guess_of_nothing_counts_as_half_a_minute() -> None:
    outlook = taught(0, 0, 2, guess=0)
    assert outlook.interval(0, 0) == Interval(0, 0, 0)
    assert taught(1, 1, 1).interval(5, 0) == Interval(*[LEAST_MS] * 3)


def test_only_the_latest_are_kept_and_strangers_teach_nothing() -> None:
    outlook = Outlook(enough=2, kept=2)
    for number, waited in enumerate([9, 1, 1]):
        outlook.begin(JobId(str(number)), MINUTE, 0)
        outlook.end(JobId(str(number)), waited * MINUTE)
    outlook.end(JobId("stranger"), 99 * MINUTE)
    assert outlook.interval(MINUTE, 0) == Interval(MINUTE, MINUTE, MINUTE)


@pytest.mark.parametrize(
    ("seen", "levels", "expected"),
    [
        pytest.param([(1, True), (2, False), (3, True)], [0.3, 0.5, 0.9], [1, 3, 3], id="worked"),
        pytest.param([(value, True) for value in range(1, 11)], [0.1, 0.5, 0.9], [1, 5, 9], id="all over"),
        pytest.param([(1, True), (9, False)], [0.5, 0.9], [1, 9], id="beyond what is known"),
    ],
)
def test_quantiles_with_some_not_over(
    seen: list[tuple[int, bool]], levels: list[float], expected: list[int]
) -> None:
    assert survival_quantiles(seen, levels) == expected


def test_pinball_weighs_too_low_by_the_level_and_too_high_by_the_rest() -> None:
    assert pinball(10, 0, 0.9) == pytest.approx(9)
    assert pinball(0, 10, 0.9) == pytest.approx(1)
    assert pinball(5, 5, 0.9) == 0


def test_on_waits_that_do_not_change_their_habits_the_interval_holds_as_often_as_it_says() -> None:
    draw, outlook, held = random.Random(7), Outlook(), 0
    for number in range(1500):
        guess, factor = draw.randint(MINUTE, 100 * MINUTE), draw.lognormvariate(0, 1)
        found = outlook.interval(guess, 0, (0.1, 0.5, 0.9)) if number >= 500 else None
        held += found is not None and found.low <= guess * factor <= found.high
        outlook.begin(JobId(str(number)), guess, 0)
        outlook.end(JobId(str(number)), int(guess * factor))
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
