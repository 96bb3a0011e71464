"""Real time for the loop: milliseconds of the Unix epoch that never go back and never jump.

The wall clock is read once; from then on time is what the kernel's boot clock adds, which counts on through a
suspended machine and is not set by anyone. After a restart it begins no earlier than the last event recorded,
so the record's times stay in order even where the wall clock was set back in between; `note` then says so.
A wall clock that is set while the service runs changes nothing either, and `news` tells of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Final

DRIFT_MS: Final = 60_000  # a wall clock off by more than this is worth a note


def wall_ms() -> int:
    """Milliseconds of the Unix epoch as the machine has them now."""
    return time.time_ns() // 1_000_000


class LocalClock:
    """Port `Clock`. `since`: time of the last event on record, 0 without one; `wall`: the wall clock."""

    def __init__(self, since: int = 0, wall: Callable[[], int] = wall_ms) -> None:
        self._wall = wall
        self.note = ""
        if since > wall() + DRIFT_MS:
            self.note = (
                f"the wall clock is {(since - wall()) // 1000} s behind the last recorded event;"
                " times go on from that event"
            )
        self._offset = max(wall(), since) - _boot_ms()
        self._drift = self.drift_ms()
        self._lock = Lock()
        self._wake: int | None = None

    def now(self) -> int:
        """Milliseconds."""
        return self._offset + _boot_ms()

    def wake_at(self, at: int) -> None:
        """Note that the loop should turn by `at`; the earliest counts."""
        with self._lock:
            self._wake = at if self._wake is None else min(self._wake, at)

    def next_wake(self) -> int | None:
        """The earliest time asked for since the last call that lay in the past was taken, or None."""
        with self._lock:
            wake = self._wake
            if wake is not None and wake <= self.now():
                self._wake = None
            return wake

    def drift_ms(self) -> int:
        """How far the wall clock has moved away from this one; positive where it is ahead."""
        return self._wall() - self.now()

    def news(self) -> str:
        """Where the wall clock was set since the last call, by more than a minute, what follows; else ""."""
        drift = self.drift_ms()
        if abs(drift - self._drift) <= DRIFT_MS:
            return ""
        self._drift = drift
        where = f"{abs(drift) // 1000} s {'ahead of' if drift > 0 else 'behind'} the service"
        return (
            f"the wall clock was set, and is {where} now; times here go on as before, reservations too."
            " A restart follows a clock that is ahead"
        )


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
