"""Moments as a person writes them at a shell: in the time of this machine, or beside what time it is now."""

from __future__ import annotations

from datetime import datetime, time, timedelta

from aliquot.core.errors import SpecError
from aliquot.core.units import parse_duration

HINT = "now, now+2h, 22:00, 2026-12-01, 2026-12-01T08:00 or 2026-12-01T08:00+01:00"


def spell_moment(word: str, option: str, now: datetime) -> str:
    """`word` as a date and time with its offset. `now` has an offset. Raises SpecError that names `option`.

    A time alone is the next such time; a date alone begins at midnight.
    """
    if word == "now" or word.startswith(("now+", "+")):
        ahead = word.removeprefix("now").removeprefix("+")
        length = parse_duration(ahead, option, zero=True) if word != "now" else 0
        return (now + timedelta(milliseconds=length)).isoformat(timespec="seconds")
    try:
        return _next_time(time.fromisoformat(word), now).isoformat(timespec="seconds")
    except ValueError:
        pass  # a date, then
    try:
        at = datetime.fromisoformat(word)
    except ValueError:
        raise SpecError(f"{word!r} is no date or time", field=option, value=word, hint=HINT) from None
    return at.astimezone(at.tzinfo).isoformat(timespec="seconds")


def _next_time(clock: time, now: datetime) -> datetime:
    """The first moment from `now` on at which the clocks here show `clock`."""
    here = now.astimezone(clock.tzinfo)
    for days in (0, 1):
        at = datetime.combine(here.date() + timedelta(days), clock).astimezone(clock.tzinfo)
        if at >= here:
            break
    return at
