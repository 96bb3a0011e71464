"""A name that is not there, and which one was meant."""

from __future__ import annotations

import pytest

from aliquot.control.chronicle import Life
from aliquot.control.naming import MOST_SHOWN, no_job, not_found
from aliquot.control.words import counted, measured
from aliquot.core.lifecycle import Phase
from tests.support.build import a_job

POLICIES = ("future-packing", "fgd", "best-fit", "spread")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fdg", "no policy 'fdg'; did you mean 'fgd'?"),
        ("best", "no policy 'best'; did you mean 'best-fit'?"),
        ("Spread", "no policy 'Spread'; did you mean 'spread'?"),
        ("x", "no policy 'x'; there are future-packing, fgd, best-fit, spread"),
        ("", "no policy ''; there are future-packing, fgd, best-fit, spread"),
    ],
)
def test_the_nearest_name_or_all_of_them(name: str, told: str) -> None:
    assert str(not_found("policy", name, POLICIES)) == told


def a_life(job: str, name: str, *, is_over: bool = False) -> Life:
    return Life(a_job(job), Phase.PENDING, 0, name, over_ms=1 if is_over else None)


@pytest.mark.parametrize(
    ("lives", "told"),
    [
        ((), "no job 'train'; 'aliquot jobs' lists those there are"),
        ((a_life("7", "train"),), "no job has the id 'train'; job 7 is called so: a job is meant by its id"),
        (
            (a_life("7", "train"), a_life("8", "other"), a_life("9", "train")),
            "no job has the id 'train'; jobs 7, 9 are called so: a job is meant by its id",
        ),
        (
            (a_life("7", "train", is_over=True), a_life("9", "train")),
            "no job has the id 'train'; job 9 is called so: a job is meant by its id",
        ),
        (
            tuple(a_life(f"4_{index}", "train") for index in range(3)),
            "no job has the id 'train'; job 4 is called so: a job is meant by its id",
        ),
        (
            tuple(a_life(str(number), "train") for number in range(20)),
            (
                "no job has the id 'train'; jobs 0, 1, 2, 3, 4 and 15 more are called so:"
                " a job is meant by its id"
            ),
        ),
    ],
    ids=["nobody", "one", "several", "over and not", "an array", "many"],
)
def test_a_name_in_place_of_an_id_is_answered_with_the_ids(lives: tuple[Life, ...], told: str) -> None:
    assert str(no_job("train", lives)) == told


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (counted(1, "card"), "1 card"),
        (counted(0, "card"), "0 cards"),
        (counted(10_240, "byte"), "10,240 bytes"),
        (measured(1.0, "core"), "1 core"),
        (measured(0.5, "core"), "0.5 cores"),
    ],
)
def test_one_of_a_thing_is_no_plural(said: str, words: str) -> None:
    assert said == words


def test_where_it_was_looked_for_and_no_more_than_one_can_read() -> None:
    names = [f"job-{number}" for number in range(500)]
    assert str(not_found("job", "job", names, where="x.yaml")) == (
        "no job 'job' in x.yaml; did you mean 'job-0' or 'job-1' or 'job-2'?"
    )
    shown = str(not_found("job", "zzz", names))
    assert shown.count(",") == MOST_SHOWN
    assert shown.endswith(", ...")
    assert str(not_found("job", "zzz", [])) == "no job 'zzz'; there are none"
    assert str(not_found("job", "zzz", ["a"])) == "no job 'zzz'; there is a"
