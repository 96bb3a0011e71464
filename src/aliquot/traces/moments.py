"""Times and durations as tables write them, into ms. A bad one is a ValueError that says what is right.

A time without a zone is taken as UTC: only differences count, and they are off by an hour where a job ran
across a change of daylight saving time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

UNITS_MS: Final = {
    "milliseconds": 1,
    "seconds": 1000,
    "minutes": 60_000,
    "hours": 3_600_000,
    "days": 86_400_000,
}
CLOCK: Final = "clock"
ISO: Final = "iso"
MOST_MS: Final = 10**15  # some 30,000 years
_CLOCK: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,4}(?::\d{1,2}){0,2})(?:\.(\d{1,6}))?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(text: str, form: str) -> int:
    """ms since 1970 in UTC. `form`: iso, seconds, milliseconds, or a pattern of `strptime`."""
    if form in UNITS_MS:
        return _scaled(text, UNITS_MS[form], f"a number of {form} since 1970")
    try:
        at = datetime.fromisoformat(text) if form == ISO else _by_pattern(text, form)
    except ValueError:
        right = "a date and time such as 2026-05-31T08:00:00" if form == ISO else f"a time written as {form}"
        raise ValueError(right) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    past = at - _EPOCH
    return (past.days * 86_400 + past.seconds) * 1000 + past.microseconds // 1000


def parse_duration(text: str, unit: str) -> int:
    """ms of a duration. `unit`: one of UNITS_MS, or clock for [DAYS-]HOURS:MINUTES:SECONDS."""
    if unit == CLOCK:
        return parse_clock(text)
    return _scaled(text, UNITS_MS[unit], f"a number of {unit}, 0 or more")


def parse_clock(text: str) -> int:
    """ms of `1-02:03:04`, `02:03:04`, `03:04` (minutes, seconds), `1-02` and `1-02:03` (days first).

    Without days one number alone is minutes, as Slurm writes limits.
    """
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError("a duration such as 02:30:00 or 1-00:00:00")
    days, clock, fraction = match.groups()
    parts = [int(part) for part in clock.split(":")]
    if days is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 1:
        hours, minutes, seconds = 0, parts[0], 0
    else:
        hours, minutes, seconds = (0, *parts)[-3:]
    whole_s = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole_s * 1000 + int((fraction or "0").ljust(3, "0")[:3])


def _by_pattern(text: str, form: str) -> datetime:
    return datetime.strptime(text, form)  # noqa: DTZ007 - the caller gives it a zone where it has none


def _scaled(text: str, scale: int, right: str) -> int:
    try:
        value = Decimal(text) * scale
    except InvalidOperation:
        raise ValueError(right) from None
    if not (value.is_finite() and 0 <= value <= MOST_MS) or not text.isascii():
        raise ValueError(right)
    return int(value.to_integral_value())
