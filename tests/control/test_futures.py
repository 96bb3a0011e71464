"""Starts in several futures, as levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.control.futures import column, levels_of, play_futures
from aliquot.core.ids import JobId
from aliquot.core.room.shadow import FAR
from tests.support.worlds import WorldBuilder


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        pytest.param([5], (5, 5, 5), id="one future"),
        pytest.param([30, 10, 20], (12, 20, 28), id="three, in any order"),
        pytest.param([10, 20, 30, 40], (13, 25, 37), id="between two"),
        pytest.param([10, 20, -1], (12, 20, 20), id="the last that is known"),
        pytest.param([10, 20, -1, -1], (13, 20, 20), id="the middle is known in one of the two beside it"),
        pytest.param([10, -1, -1], (10, FAR, 10), id="the middle is unknown"),
        pytest.param([-1, -1], (FAR, FAR, FAR), id="nobody knows"),
    ],
)
def test_levels_of_starts(starts: list[int], expected: tuple[int, int, int]) -> None:
    assert levels_of([np.array([start]) for start in starts]) == [expected]


def test_what_is_learnt_while_futures_are_drawn_changes_how_many_there_are_and_nothing_else() -> None:
    site = WorldBuilder().node("n", 1)
    site.submit("a")
    site.submit("b")
    jobs = [site.frozen.jobs[JobId(name)].job for name in "ab"]
    drawn = iter([[5, 6], [7, 8, 9, 10]])
    played = list(
        play_futures(site.frozen, 0, column([]), jobs, lambda job: None, lambda job, ran: next(drawn))
    )
    assert [lengths.tolist() for _, lengths in played] == [[5, 7], [6, 8]]


@given(st.lists(st.lists(st.integers(0, 2**50), min_size=3, max_size=3), min_size=1, max_size=9))
def test_levels_are_in_order_and_within_what_was_seen(starts: list[list[int]]) -> None:
    for job, (low, middle, high) in enumerate(levels_of([np.array(row) for row in starts])):
        seen = [row[job] for row in starts]
        assert min(seen) <= low <= middle <= high <= max(seen)
