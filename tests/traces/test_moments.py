"""Times and durations as tables write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.traces.moments import UNITS_MS, parse_clock, parse_duration, parse_time

DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "form", "ms"),
    [
        pytest.param("1970-01-02 00:00:01", "iso", DAY + 1000, id="a space between date and time"),
        pytest.param("1970-01-02T00:00:01.250", "iso", DAY + 1250, id="thousandths"),
        pytest.param("1970-01-02T01:00:00+01:00", "iso", DAY, id="with a zone"),
        pytest.param("1970-01-02T00:00:00Z", "iso", DAY, id="in UTC"),
        pytest.param("1970-01-02", "iso", DAY, id="a date alone"),
        pytest.param("86400.5", "seconds", DAY + 500, id="seconds since 1970"),
        pytest.param("86400500", "milliseconds", DAY + 500, id="milliseconds since 1970"),
        pytest.param("02.01.1970 00:30", "%d.%m.%Y %H:%M", DAY + 1_800_000, id="a pattern"),
    ],
)
def test_a_time_is_read_exactly(text: str, form: str, ms: int) -> None:
    assert parse_time(text, form) == ms


@pytest.mark.parametrize(
    ("text", "form", "right"),
    [
        ("yesterday", "iso", "a date and time such as"),
        ("2026-13-01", "iso", "a date and time such as"),
        ("1.1.2026", "%d.%m.%Y %H:%M", "a time written as %d.%m.%Y %H:%M"),
        ("soon", "seconds", "a number of seconds since 1970"),
        ("nan", "seconds", "a number of seconds since 1970"),
        ("-5", "seconds", "a number of seconds since 1970"),
        ("1e400", "seconds", "a number of seconds since 1970"),
        ("١", "milliseconds", "a number of milliseconds since 1970"),
    ],
)
def test_a_time_that_is_none_says_what_would_be_right(text: str, form: str, right: str) -> None:
    with pytest.raises(ValueError, match=right):
        parse_time(text, form)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("00:00:07", 7, id="hours, minutes, seconds"),
        pytest.param("03:04", 184, id="minutes and seconds"),
        pytest.param("90", 5400, id="minutes alone, as Slurm writes limits"),
        pytest.param("1-00:00:00", 86_400, id="days"),
        pytest.param("2-03", 2 * 86_400 + 3 * 3600, id="days and hours"),
        pytest.param("100:00:00", 360_000, id="many hours"),
    ],
)
def test_a_clock(text: str, seconds: int) -> None:
    assert parse_clock(text) == parse_duration(text, "clock") == seconds * 1000


@pytest.mark.parametrize("text", ["", "1:2:3:4", "-1", "1-", "two hours", "UNLIMITED", "1,5"])
def test_what_is_no_clock(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as"):
        parse_clock(text)


@given(
    st.integers(0, 10_000), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999)
)
def test_a_clock_written_out_is_read_back(days: int, hours: int, minutes: int, seconds: int, ms: int) -> None:
    written = f"{days}-{hours:02}:{minutes:02}:{seconds:02}.{ms:03}"
    assert parse_clock(written) == (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + ms


@given(st.integers(0, 10**9), st.sampled_from(sorted(UNITS_MS)))
def test_a_whole_number_of_any_unit_is_exact(count: int, unit: str) -> None:
    if count * UNITS_MS[unit] <= 10**15:
        assert parse_duration(str(count), unit) == count * UNITS_MS[unit]
