"""What run times turned out to be, measured by what was told of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.queueing.truth import ENOUGH, Sample, Truth

HOUR = 3_600_000


def taught(*pairs: tuple[int, int], times: int = ENOUGH) -> Truth:
    truth = Truth()
    for told, ran in pairs * times:
        truth.learn(told, ran)
    return truth


def test_words_are_believed_until_enough_of_them_were_wrong() -> None:
    assert Truth().is_exact
    assert taught((HOUR, 5 * HOUR), times=ENOUGH - 1).is_exact
    assert not taught((HOUR, 5 * HOUR)).is_exact
    assert taught((HOUR, HOUR), (2 * HOUR, 2 * HOUR + 1000)).is_exact


def test_a_word_means_what_such_words_meant() -> None:
    truth = taught((HOUR, 2 * HOUR), (HOUR, 4 * HOUR), (20 * HOUR, 5 * HOUR))
    assert truth.length(HOUR, 0, 0) == 2 * HOUR
    assert truth.length(HOUR, 0, 999) == 4 * HOUR
    assert truth.length(20 * HOUR, 0, 500) == 5 * HOUR
    assert truth.length(HOUR + 1000, 0, 0) == 2 * (HOUR + 1000), "a word nearly as long"


def test_a_word_of_a_size_never_heard_means_what_words_mean_in_general() -> None:
    assert taught((HOUR, 2 * HOUR)).length(1000, 0, 500) == 2000


def test_who_has_run_long_is_one_of_those_who_run_longer() -> None:
    truth = taught((HOUR, HOUR), (HOUR, 3 * HOUR))
    assert truth.length(HOUR, HOUR - 1, 0) == HOUR
    assert truth.length(HOUR, HOUR, 0) == 3 * HOUR
    assert truth.length(HOUR, 3 * HOUR, 500) is None, "none ever ran so long"


@given(
    st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**9)), min_size=1, max_size=40),
    st.integers(1, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 999),
)
def test_a_length_is_always_beyond_what_has_run(
    pairs: list[tuple[int, int]], told: int, ran: int, milli: int
) -> None:
    length = taught(*pairs, times=1).length(told, ran, milli)
    assert length is None or length > ran


def test_a_sample_keeps_the_latest_in_order_of_size() -> None:
    sample = Sample(kept=4)
    for value in (90, 10, 40, 20, 30):
        sample.add(value)
    assert list(sample.values) == [10, 20, 30, 40]
    assert (len(sample), sample.least, sample.most) == (4, 10, 40)
