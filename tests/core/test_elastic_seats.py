"""Where resized jobs sit: unchanged jobs stay, others sit together where they can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.room.seats import Seats, seat_jobs

FOUR = [4, 4, 4]


@pytest.mark.parametrize(
    ("held", "cards", "expected"),
    [
        pytest.param([((1, 2),)], [2], [((1, 2),)], id="an unchanged size keeps its cards"),
        pytest.param(
            [((0, 3),), ()], [3, 1], [((0, 3),), ((0, 1),)], id="a start fills the fullest node it fits"
        ),
        pytest.param([((1, 4),)], [8], [((0, 4), (1, 4))], id="a wider one takes whole nodes"),
        pytest.param([((2, 4),)], [2], [((2, 2),)], id="a narrower one stays on its own node"),
        pytest.param(
            [((0, 3),), ((1, 3),), ((2, 3),), ()],
            [3, 3, 3, 3],
            [((0, 3),), ((1, 3),), ((2, 3),), ((0, 1), (1, 1), (2, 1))],
            id="scattered rather than waiting",
        ),
        pytest.param([((0, 2),)], [0], [()], id="no cards, no seat"),
    ],
)
def test_seats(held: list[Seats], cards: list[int], expected: list[Seats]) -> None:
    assert list(seat_jobs(FOUR, held, cards)) == expected


def test_more_cards_than_there_are_is_refused() -> None:
    with pytest.raises(SpecError, match="cards"):
        seat_jobs(FOUR, [()], [13])


@given(st.lists(st.integers(0, 6), max_size=6), st.lists(st.integers(0, 6), min_size=6, max_size=6))
def test_two_rounds_keep_capacity_and_the_seats_of_unchanged_jobs(
    first: list[int], second: list[int]
) -> None:
    capacity = [4] * 9
    before = seat_jobs(capacity, [()] * len(first), first)
    after = seat_jobs(capacity, before, second[: len(first)])
    for seats, cards in ((before, first), (after, second)):
        assert [sum(part for _, part in job) for job in seats] == cards[: len(first)]
        used = [sum(part for job in seats for node, part in job if node == at) for at in range(9)]
        assert all(have >= 0 and have <= 4 for have in used)
    assert all(
        after[at] == before[at] for at in range(len(first)) if first[at] == second[at] and first[at] > 0
    )
