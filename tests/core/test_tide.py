"""What other work than spot wants: folded from events, quarter hour by quarter hour, and forecast."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array
from aliquot.core.settings import HOUR_MS
from aliquot.core.tide import BIN_MS, DAY_BINS, KEPT_BINS, Tide, Tides, high_tide, rolled
from aliquot.core.units import FULL
from tests.support.build import a_request
from tests.support.worlds import WorldBuilder

DAY = DAY_BINS * BIN_MS
JOB = JobId("j")


def after(*wants: tuple[int, int]) -> Tide:
    """The tide after (ms, milli-cards wanted from then on), of one job."""
    tides = Tides()
    for at, milli in wants:
        tides.note(JOB, milli, at)
    return tides.tide


def daily(days: int, *, low: int = 1_000, high: int = 5_000, begins: int = 9, ends: int = 17) -> Tide:
    """So many days of `high` between two hours and `low` in the others."""
    return after(
        *(
            (day * DAY + hour * HOUR_MS, milli)
            for day in range(days)
            for hour, milli in ((begins, high), (ends, low))
        )
    )


def test_a_bin_knows_its_beginning_and_its_most() -> None:
    tide = after((10, 2_000), (20, 9_000), (30, 1_000), (2 * BIN_MS + 5, 4_000))
    assert tide.past == ((0, 9_000), (1_000, 1_000))
    assert (tide.number, tide.open, tide.now_milli) == (2, (1_000, 4_000), 4_000)


def test_time_before_anything_was_wanted_is_not_known() -> None:
    assert after((1_000 * DAY + BIN_MS, 3_000)).past == ()


def test_the_past_is_bounded() -> None:
    tide = rolled(after((0, 3_000)), 100 * DAY)
    assert len(tide.past) == KEPT_BINS
    assert set(tide.past) == {(3_000, 3_000)}


@pytest.mark.parametrize(
    ("tide", "at", "horizon", "expected"),
    [
        pytest.param(after(), 0, HOUR_MS, 0, id="nothing was ever wanted"),
        pytest.param(
            after((0, 7_000), (60_000, 2_000)), 120_000, HOUR_MS, 7_000, id="nothing known: the most yet"
        ),
        pytest.param(daily(5), 5 * DAY + 8 * HOUR_MS, HOUR_MS, 5_000, id="before it rises each day"),
        pytest.param(daily(5), 5 * DAY + 7 * HOUR_MS, HOUR_MS, 1_000, id="two hours before, for one hour"),
        pytest.param(daily(5), 5 * DAY + 7 * HOUR_MS, 3 * HOUR_MS, 5_000, id="the same for three hours"),
        pytest.param(daily(5), 5 * DAY + 20 * HOUR_MS, HOUR_MS, 1_000, id="in the evening"),
        pytest.param(
            after((0, 4_000), (10 * DAY, 6_000)),
            10 * DAY + HOUR_MS,
            HOUR_MS,
            6_000,
            id="what is wanted now counts",
        ),
    ],
)
def test_how_much_is_expected_to_be_wanted(tide: Tide, at: int, horizon: int, expected: int) -> None:
    assert high_tide(tide, at, horizon, 900) == expected


def test_a_day_out_of_ten_decides_at_a_high_quantile_only() -> None:
    wants = [(day * DAY + 9 * HOUR_MS, 9_000 if day == 3 else 5_000) for day in range(10)]
    wants += [(day * DAY + 17 * HOUR_MS, 1_000) for day in range(10)]
    tide = after(*sorted(wants))
    at = 10 * DAY + 8 * HOUR_MS
    assert high_tide(tide, at, HOUR_MS, 800) == 5_000
    assert high_tide(tide, at, HOUR_MS, 950) == 9_000


@given(
    st.lists(st.tuples(st.integers(0, 3 * DAY), st.integers(0, 8)), max_size=30),
    st.integers(1, 8),
    st.integers(0, 999),
)
@settings(deadline=None, max_examples=60)
def test_it_is_never_less_than_now_nor_more_than_was_ever_wanted(
    wants: list[tuple[int, int]], hours: int, quantile: int
) -> None:
    wants.sort()
    tide = after(*((at, milli * FULL) for at, milli in wants))
    found = high_tide(tide, 3 * DAY, hours * HOUR_MS, quantile)
    assert tide.now_milli <= found <= max((milli * FULL for _, milli in wants), default=0)


# --- the fold ----------------------------------------------------------------------------------------------


def wanted(site: WorldBuilder) -> int:
    return site.frozen.tide.now_milli


def test_who_waits_or_runs_is_wanted_and_spot_work_is_not() -> None:
    site = WorldBuilder().node("n", 4).submit("a", cards=2).submit("s", cards=2, spot=True)
    assert wanted(site) == 2 * FULL
    site.placed().started("a").started("s")
    assert wanted(site) == 2 * FULL
    site.submit("half", a_request(1, compute=500))
    assert wanted(site) == 2_500
    site.ended("a")
    assert wanted(site) == 500
    site.cancel("half")
    assert wanted(site) == 0


def test_who_waits_for_another_is_wanted_once_it_waits_for_room_only() -> None:
    site = WorldBuilder().node("n", 4).submit("a").submit("b", cards=3, after=(After(JobId("a")),))
    assert wanted(site) == FULL
    site.placed().started("a").ended("a")
    assert wanted(site) == 3 * FULL


def test_of_an_array_with_a_width_only_what_runs_is_wanted() -> None:
    site = WorldBuilder().node("n", 4)
    for at in range(4):
        site.submit(f"x{at}", array=Array("x", 4, 1))
    assert wanted(site) == 0
    site.placed().started("x0")
    assert wanted(site) >= FULL


def test_a_rebuilt_world_knows_the_same_past() -> None:
    random, site = Random(3), WorldBuilder().node("n", 8)
    for at in range(40):
        site.later(random.randrange(BIN_MS)).submit(
            f"j{at}", cards=random.randrange(1, 4), spot=random.random() < 0.3
        )
        site.placed()
        if site.holding and random.random() < 0.7:
            site.ended(random.choice(site.holding))
    assert site.rebuilt().freeze().tide == site.frozen.tide
    assert len(site.frozen.tide.past) > 10
