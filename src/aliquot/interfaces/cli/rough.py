"""Lengths of time to come as a person would say them: none is known to the second."""

from __future__ import annotations

from typing import Final, Protocol

from aliquot.interfaces.cli.plain import span

_MINUTE: Final = 60_000
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


class Start(Protocol):
    """When something is expected to start, in ms of the engine's time; None is unknown."""

    @property
    def at_ms(self) -> int | None: ...

    @property
    def low_ms(self) -> int | None: ...

    @property
    def high_ms(self) -> int | None: ...


def starts_in(expected: Start | None, now: int) -> str:
    """In a word or two, for a column: `12 min to 40 min`, `about 20 min`, `unknown`, or nothing."""
    if expected is None:
        return ""
    if expected.at_ms is None:
        return "unknown"
    if expected.low_ms is None or expected.high_ms is None:
        return f"about {rough(expected.at_ms - now)}"
    low, high = rough(expected.low_ms - now), rough(expected.high_ms - now)
    return f"{low} to {high}" if low != high else f"about {high}"


def rough(ms: int) -> str:
    """At least `0 s`."""
    return span(round_off(max(0, ms)))


def round_off(ms: int) -> int:
    """To what a person would say: seconds, from ten minutes on minutes, from ten hours on quarters."""
    step = 1000 if ms < 10 * _MINUTE else _MINUTE if ms < 10 * _HOUR else _HOUR // 4
    step = _HOUR if ms >= 2 * _DAY else step
    return (ms + step // 2) // step * step
