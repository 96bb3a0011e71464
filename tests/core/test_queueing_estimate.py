"""Run times guessed from similar jobs."""

from __future__ import annotations

import pytest

from aliquot.core.queueing.estimate import Guess, History, Like, Sample

ME = Like("ann", "lab", 1)


def taught(*lessons: tuple[Like, int]) -> History:
    history = History(enough=2)
    for like, ran in lessons:
        history.learn(like, ran)
    return history


def test_nothing_known_is_no_guess() -> None:
    assert History().guess(ME) is None
    assert taught((ME, 5)).guess(ME) is None


@pytest.mark.parametrize(
    ("lessons", "expected"),
    [
        pytest.param([(ME, 10), (ME, 30)], Guess(30, 0, 2), id="one's own jobs"),
        pytest.param([(ME, 10), (Like("bob", "lab", 1), 40)], Guess(40, 1, 2), id="others of that size"),
        pytest.param([(ME, 10), (Like("bob", "lab", 8), 50)], Guess(50, 2, 2), id="others of the queue"),
        pytest.param([(ME, 10), (Like("bob", "far", 8), 60)], Guess(60, 3, 2), id="anybody"),
    ],
)
def test_the_nearest_level_with_enough_speaks(lessons: list[tuple[Like, int]], expected: Guess) -> None:
    assert taught(*lessons).guess(ME) == expected


def test_a_job_of_nobody_in_particular_is_counted_once() -> None:
    nobody = Like("", "lab", 1)
    guess = taught((nobody, 10), (nobody, 20)).guess(nobody)
    assert guess is not None
    assert guess.seen == 2


def test_quantiles_and_what_is_forgotten() -> None:
    sample = Sample(kept=4)
    for value in (90, 10, 40, 20, 30):
        sample.add(value)
    assert len(sample) == 4
    assert [sample.quantile(milli) for milli in (0, 500, 900, 1000)] == [10, 30, 40, 40]
