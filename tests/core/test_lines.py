"""What changed between two lines of waiting jobs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.ids import JobId
from aliquot.core.lines import compare_lines
from aliquot.core.records import QueueKey


def line_of(*numbers: int) -> tuple[QueueKey, ...]:
    """A line of jobs submitted at `numbers`."""
    return tuple((0, number, 0, JobId(f"j{number}")) for number in sorted(numbers))


@pytest.mark.parametrize(
    ("before", "after", "gone", "come"),
    [
        pytest.param((1, 2, 3), (1, 2, 3), (), (), id="nothing happened"),
        pytest.param((), (4, 5), (), (4, 5), id="the first who come"),
        pytest.param((4, 5), (), (4, 5), (), id="the last who go"),
        pytest.param((1, 2, 3, 4), (3, 4, 5), (1, 2), (5,), id="two start and one comes"),
        pytest.param((1, 3, 5), (2, 4, 6), (1, 3, 5), (2, 4, 6), id="all are others"),
        pytest.param((2, 3), (1, 2, 3), (), (1,), id="one that was stopped is in front again"),
    ],
)
def test_who_left_a_line_and_who_came(
    before: tuple[int, ...], after: tuple[int, ...], gone: tuple[int, ...], come: tuple[int, ...]
) -> None:
    left, entered = compare_lines(line_of(*before), line_of(*after))
    assert (tuple(left), tuple(entered)) == (line_of(*gone), line_of(*come))


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_it_is_what_the_sets_say(before: set[int], after: set[int]) -> None:
    left, entered = compare_lines(line_of(*before), line_of(*after))
    assert tuple(left) == line_of(*(before - after))
    assert tuple(entered) == line_of(*(after - before))
