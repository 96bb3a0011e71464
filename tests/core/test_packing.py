"""How many loads find room at once: exact within its bound, and sure whenever it says that not all do."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.room.packing import Load, count_packed


@pytest.mark.parametrize(
    ("loads", "bins", "expected"),
    [
        pytest.param([(5,), (5,)], [(8,), (4,)], 1, id="each alone, never both"),
        pytest.param([(5,), (5,)], [(8,), (5,)], 2, id="a bin each"),
        pytest.param([(4,), (4,)], [(8,)], 2, id="side by side"),
        pytest.param([(4,), (3,), (3,), (2,)], [(6,), (6,)], 4, id="4 beside 2, and 3 beside 3"),
        pytest.param([(4,), (4,), (4,)], [(6,), (6,)], 2, id="the third finds none"),
        pytest.param([(1, 0, 4), (0, 1, 4)], [(1, 1, 4)], 1, id="of two kinds, on the same cards"),
        pytest.param([], [(1,)], 0, id="nothing asked"),
        pytest.param([(1,)], [], 0, id="nothing there"),
    ],
)
def test_what_finds_room_at_once(loads: list[Load], bins: list[Load], expected: int) -> None:
    assert count_packed(loads, bins) == expected


SIZES = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), max_size=5)


@given(SIZES, SIZES.map(lambda sizes: sizes[:3]))
def test_all_find_room_where_any_arrangement_has_it(loads: list[Load], bins: list[Load]) -> None:
    def holds(where: tuple[int, ...]) -> bool:
        for at, room in enumerate(bins):
            inside = [load for load, home in zip(loads, where, strict=True) if home == at]
            if any(sum(load[dim] for load in inside) > room[dim] for dim in range(2)):
                return False
        return True

    ways = product(range(len(bins)), repeat=len(loads))
    assert (count_packed(loads, bins) == len(loads)) == any(holds(where) for where in ways)


def test_many_alike_on_a_large_site_are_counted_at_once() -> None:
    assert count_packed([(5,)] * 60, [(8,)] * 59 + [(4,)] * 900) == 59
    assert count_packed([(2,)] * 200, [(8,)] * 50) == 200
