"""Moments as a person writes them at a shell."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from aliquot.core.errors import SpecError
from aliquot.interfaces.cli.moments import spell_moment

CET = timezone(timedelta(hours=1))
NOW = datetime(2026, 11, 30, 21, 30, tzinfo=CET)


@pytest.mark.parametrize(
    ("word", "spelt"),
    [
        ("now", "2026-11-30T21:30:00+01:00"),
        ("now+2h", "2026-11-30T23:30:00+01:00"),
        ("+90min", "2026-11-30T23:00:00+01:00"),
        ("2026-12-01T08:00+02:00", "2026-12-01T08:00:00+02:00"),
        ("2026-12-01T08:00Z", "2026-12-01T08:00:00+00:00"),
        ("23:00+01:00", "2026-11-30T23:00:00+01:00"),
        ("08:00+01:00", "2026-12-01T08:00:00+01:00"),
        ("21:30+01:00", "2026-11-30T21:30:00+01:00"),
    ],
)
def test_a_moment_has_an_offset_once_it_is_spelt(word: str, spelt: str) -> None:
    assert spell_moment(word, "--start", NOW) == spelt


@pytest.mark.parametrize("word", ["23:00", "2026-12-01", "2026-12-01T08:00"])
def test_without_an_offset_it_is_the_time_of_this_machine(word: str) -> None:
    at = datetime.fromisoformat(spell_moment(word, "--start", NOW))
    assert at.utcoffset() == at.replace(tzinfo=None).astimezone().utcoffset()
    assert at >= NOW
    assert (at.astimezone().strftime("%H:%M")) in {"23:00", "00:00", "08:00"}


@pytest.mark.parametrize("word", ["soon", "", "25:00", "now+soon", "2026-13-01"])
def test_what_is_no_moment_is_said_with_what_would_be(word: str) -> None:
    with pytest.raises(SpecError) as caught:
        spell_moment(word, "--start", NOW)
    assert caught.value.field == "--start"
    assert caught.value.hint
