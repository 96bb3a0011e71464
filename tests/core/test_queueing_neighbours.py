"""Run times of jobs without a word, from those that were submitted next to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.ids import JobId
from aliquot.core.queueing import neighbours
from aliquot.core.queueing.neighbours import KEPT, Like, Neighbours

HOUR = 3_600_000
ME = Like("ann", "lab", 1)
ALL_PARTS = (0.99, 0.75, 0.5, 0.25, 0.01)


def taught(*ran: tuple[Like, int], enough: int = 2) -> Neighbours:
    """Jobs 0, 1, ... that are over."""
    known = Neighbours(enough=enough)
    for seq, (like, length) in enumerate(ran):
        known.start(JobId(str(seq)), like, seq, 0)
        known.end(JobId(str(seq)), length)
    return known


def middle(known: Neighbours, like: Like = ME, seq: int = 99, ran: int = 0, now: int = 0) -> int | None:
    return known.lengths(like, seq, ran, (0.5,), now)[0]


def test_nothing_known_is_no_length() -> None:
    assert Neighbours().lengths(ME, 0, 0, (0.5, 0.1), 0) == (None, None)
    assert Neighbours().lengths(ME, 0, 5000, (0.5, 0.1), 0) == (None, None), "that it runs says not how long"
    assert middle(taught((ME, 5))) is None
    assert middle(taught((ME, 5)), ran=HOUR) is None, "that it runs already says nothing of how long it will"
    assert not Neighbours()


@pytest.mark.parametrize(
    ("nearest", "expected"),
    [
        pytest.param(ME, 10, id="one's own jobs"),
        pytest.param(Like("bob", "lab", 1), 10, id="others of that size"),
        pytest.param(Like("bob", "lab", 8), 10, id="others of the queue"),
        pytest.param(Like("bob", "far", 8), 77, id="anybody, of whom most are others"),
    ],
)
def test_the_nearest_group_with_enough_speaks(nearest: Like, expected: int) -> None:
    strangers = [(Like("eve", "moon", 4), 77)] * 20
    assert middle(taught((nearest, 10), (nearest, 10), (nearest, 10), *strangers), seq=23) == expected


def test_those_submitted_next_to_it_weigh_most() -> None:
    known = taught(*[(ME, 10)] * 30, *[(ME, 500)] * 30)
    assert middle(known, seq=60) == 500
    assert middle(known, seq=1) == 10
    assert known.lengths(ME, 60, 0, (0.99,), 0) == (10,), "the others are not forgotten"


def test_a_row_that_runs_on_shows_that_it_is_not_of_the_short_ones() -> None:
    known = taught(*[(ME, 60_000)] * 20, *[(ME, 5 * HOUR)] * 5)
    assert middle(known, seq=200) == 60_000
    for seq in range(100, 160):
        known.start(JobId(str(seq)), ME, seq, 0)
    assert middle(known, seq=200, now=1000) == 60_000, "they have only begun"
    assert middle(known, seq=200, now=HOUR) == 5 * HOUR


def test_who_has_run_long_is_one_of_those_who_run_longer() -> None:
    known = taught((ME, 10), (ME, 20), (ME, 1000))
    assert middle(known, ran=15) == 1000
    assert middle(known, ran=3000) == 6001, "nobody ran so long: as long again in the middle"
    assert known.lengths(ME, 9, 3000, (0.1,), 0) == (30_001,)


def test_beyond_the_longest_known_half_is_over_when_the_time_has_doubled() -> None:
    known = taught(*[(ME, 100)] * 4, enough=4)
    for seq in range(4, 40):
        known.start(JobId(str(seq)), ME, seq, 0)
    half, quarter = known.lengths(ME, 40, 0, (0.5, 0.25), 1000)
    assert half is not None
    assert quarter is not None
    assert half > 100
    assert quarter == pytest.approx(2 * half, abs=2)


def test_who_was_stopped_says_nothing_and_strangers_are_not_heard() -> None:
    known = taught((ME, 10), (ME, 10))
    known.start(JobId("stopped"), ME, 5, 0)
    known.forget(JobId("stopped"))
    known.forget(JobId("stranger"))
    known.end(JobId("stranger"), 10**9)
    known.end(JobId("stopped"), 10**9)
    assert known.lengths(ME, 6, 0, ALL_PARTS, 10**9) == (10,) * 5


def test_only_so_much_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    known = taught(*[(ME, 10)] * 10, *[(ME, 70)] * KEPT)
    assert known.lengths(ME, 0, 0, (0.999,), 0) == (70,), "the jobs submitted last are kept"
    monkeypatch.setattr(neighbours, "GROUPS", 6)
    known = taught(*((Like(f"user {number}", "lab", 1), 10) for number in range(50)))
    assert len(known) == 6


def test_lengths_are_spread_as_such_jobs_are() -> None:
    draw = random.Random(5)
    lengths = [int(draw.lognormvariate(12, 1)) for _ in range(KEPT)]
    drawn = taught(*((ME, length) for length in lengths)).lengths(ME, KEPT // 2, 0, (0.9, 0.5, 0.1), 0)
    ordered = sorted(lengths)
    for length, share in zip(drawn, (0.1, 0.5, 0.9), strict=True):
        assert length is not None
        assert (
            ordered[int((share - 0.1) * KEPT)] <= length <= ordered[min(KEPT - 1, int((share + 0.1) * KEPT))]
        )


@given(
    st.lists(st.tuples(st.sampled_from([ME, Like("", "lab", 1)]), st.integers(0, 10**9)), max_size=30),
    st.lists(st.integers(0, 10**9), max_size=10),
    st.integers(0, 60),
    st.integers(0, 10**9),
    st.lists(st.floats(0, 1), min_size=2, max_size=6).map(lambda parts: sorted(parts, reverse=True)),
)
def test_a_length_is_beyond_what_has_run_and_longer_where_fewer_run_longer(
    over: list[tuple[Like, int]], running: list[int], seq: int, ran: int, parts: list[float]
) -> None:
    known, now = taught(*over), 10**9
    for number, since in enumerate(running, start=40):
        known.start(JobId(str(number)), ME, number, since)
    found = known.lengths(ME, seq, ran, parts, now)
    assert found == known.lengths(ME, seq, ran, parts, now), "nothing is drawn by chance"
    lengths = [length for length in found if length is not None]
    assert len(lengths) in (0, len(parts))
    assert all(length > ran for length in lengths)
    assert lengths == sorted(lengths)
