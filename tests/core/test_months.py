"""Months and days by arithmetic, against the calendar of the standard library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.months import DAY_MS, begin_of, date_of, format_day, format_moment, month_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ms(year: int, month: int, day: int, hour: int = 0) -> int:
    """A moment in UTC as ms since 1970."""
    return (datetime(year, month, day, hour, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


@given(st.integers(-700_000, 2_900_000), st.integers(0, DAY_MS - 1))
def test_days_are_those_of_the_calendar(day: int, part: int) -> None:
    expected = EPOCH + timedelta(days=day)
    assert date_of(day * DAY_MS + part) == (expected.year, expected.month, expected.day)


@given(st.integers(1, 9998), st.integers(1, 12))
def test_a_month_begins_with_its_first_millisecond(year: int, month: int) -> None:
    begin = ms(year, month, 1)
    assert begin_of(year * 12 + month - 1) == begin
    assert month_of(begin) == month_of(begin - 1) + 1 == year * 12 + month - 1


@pytest.mark.parametrize(
    ("at", "moment", "day"),
    [
        pytest.param(ms(2026, 12, 1, 6), "2026-12-01 06:00 UTC", "2026-12-01", id="a-date"),
        pytest.param(ms(2024, 2, 29), "2024-02-29 00:00 UTC", "2024-02-29", id="a-leap-day"),
        pytest.param(9_000_000, "2 h 30 min", "2 h 30 min", id="virtual-time"),
    ],
)
def test_moments_are_dates_or_counted_from_the_beginning(at: int, moment: str, day: str) -> None:
    assert (format_moment(at), format_day(at)) == (moment, day)
