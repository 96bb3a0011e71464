"""Calendar months in UTC, from milliseconds since 1970: arithmetic only, no clock and no time zone.

A month is numbered year * 12 + month - 1, so the next one is one more. Days are counted in eras of 400 years
of the Gregorian calendar that begin in March, so that a leap day is the last day of its year.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from aliquot.core.units import format_ms

DAY_MS: Final = 86_400_000
_MINUTE_MS: Final = 60_000
_ERA_DAYS: Final = 146_097
_TO_MARCH: Final = 719_468  # days from 1 March of year 0 to 1 January 1970
_DATED_FROM: Final = 946_684_800_000  # 2000-01-01: what lies before is a virtual time


class Date(NamedTuple):
    """A day of the calendar; months and days from 1."""

    year: int
    month: int
    day: int


def date_of(at_ms: int) -> Date:
    """The day in UTC of a moment. 1,790,000,000,000 is 2026-09-21."""
    days = at_ms // DAY_MS + _TO_MARCH
    era, day_of_era = divmod(days, _ERA_DAYS)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // (_ERA_DAYS - 1)
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march = (5 * day_of_year + 2) // 153  # months since March
    month = march + 3 if march < 10 else march - 9
    year = era * 400 + year_of_era + (month <= 2)
    return Date(year, month, day_of_year - (153 * march + 2) // 5 + 1)


def month_of(at_ms: int) -> int:
    """The number of the month that a moment lies in."""
    date = date_of(at_ms)
    return date.year * 12 + date.month - 1


def begin_of(month: int) -> int:
    """The first millisecond of a month by number."""
    year, of_year = divmod(month, 12)
    year -= of_year < 2
    era, year_of_era = divmod(year, 400)
    march = (of_year + 10) % 12  # months since March
    day_of_year = (153 * march + 2) // 5
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return (era * _ERA_DAYS + day_of_era - _TO_MARCH) * DAY_MS


def is_dated(at_ms: int) -> bool:
    """Whether a moment has a date; else it is of a virtual time, which counts from its own beginning."""
    return at_ms >= _DATED_FROM


def format_moment(at_ms: int) -> str:
    """`2026-12-01 06:30 UTC`; `2 h 30 min` of a virtual time."""
    if not is_dated(at_ms):
        return format_ms(at_ms)
    minutes = at_ms % DAY_MS // _MINUTE_MS
    return f"{format_day(at_ms)} {minutes // 60:02d}:{minutes % 60:02d} UTC"


def format_day(at_ms: int) -> str:
    """`2026-12-01`; of a virtual time as `format_moment`."""
    if not is_dated(at_ms):
        return format_ms(at_ms)
    date = date_of(at_ms)
    return f"{date.year:04d}-{date.month:02d}-{date.day:02d}"
