"""Serial or parallel: the width that ends soonest above the floor, and when a card is worth sharing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.room.serial_parallel import (
    Width,
    choose_width,
)
from aliquot.core.settings import EfficiencyFloor

HOUR = 3_600_000.0
SCALING = (Width(1, 1.0), Width(2, 1.9), Width(4, 3.0), Width(8, 4.2))


@st.composite
def width_menus(draw: st.DrawFn) -> tuple[Width, ...]:
    cards = sorted(draw(st.sets(st.integers(1, 64), min_size=1, max_size=6)))
    speeds = [draw(st.floats(0.1, 64)) for _ in cards]
    return tuple(Width(n, speed, draw(st.integers(0, 10**8))) for n, speed in zip(cards, speeds, strict=True))


@pytest.mark.parametrize(
    ("widths", "load_milli", "cards"),
    [
        pytest.param(SCALING, 300, 8, id="an idle site: wide, at half efficiency"),
        pytest.param(SCALING, 725, 4, id="at a floor of 0.7 four cards still pass"),
        pytest.param(SCALING, 1000, 2, id="a full site: only what nearly doubles"),
        pytest.param((Width(1, 1.0), Width(4, 3.9, 5_000_000)), 300, 1, id="a long wait eats the speed"),
        pytest.param((Width(4, 3.0),), 1000, 4, id="the only width"),
        pytest.param((Width(1, 1.0), Width(2, 1.0)), 0, 1, id="a tie goes to the narrower"),
        pytest.param(
            (Width(1, 1.0), Width(2, 0.9), Width(4, 4.0)),
            300,
            1,
            id="nothing behind one that fails the floor",
        ),
    ],
)
def test_the_width_that_ends_soonest_above_the_floor(
    widths: tuple[Width, ...], load_milli: int, cards: int
) -> None:
    assert choose_width(widths, HOUR, load_milli).cards == cards


@given(width_menus(), st.floats(1, 1e9), st.integers(0, 1200))
def test_the_floor_is_respected(menu: tuple[Width, ...], work: float, load: int) -> None:
    chosen, floor = choose_width(menu, work, load), EfficiencyFloor()
    narrow = menu[0]
    assert chosen in menu
    assert chosen is narrow or chosen.speed / chosen.cards >= floor.at(load) * narrow.speed / narrow.cards


@given(width_menus(), st.floats(1, 1e9), st.integers(0, 1200), st.integers(0, 1200))
def test_a_higher_load_never_widens_the_choice(
    menu: tuple[Width, ...], work: float, one: int, two: int
) -> None:
    low, high = sorted((one, two))
    assert choose_width(menu, work, high).cards <= choose_width(menu, work, low).cards
