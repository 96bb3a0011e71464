"""Which attempts should have been over by now, or have begun: whoever sees to that may hang."""

from __future__ import annotations

import time

from aliquot.core.ids import JobId
from aliquot.engines.local.attempts import Attempt


class Lateness:
    """Attempts with a `late_ms`."""

    def __init__(self) -> None:
        self._expected: dict[JobId, Attempt] = {}

    def note(self, attempt: Attempt) -> None:
        """Take up what the attempt says now."""
        if attempt.late_ms is None or attempt.is_over:
            self._expected.pop(attempt.job, None)
        else:
            self._expected[attempt.job] = attempt

    def wait(self, most_ms: int | None) -> int | None:
        """How long to sleep until somebody may be late: `most_ms` at most, None for any time."""
        if not self._expected:
            return most_ms
        due = max(0, min(_late(attempt) for attempt in self._expected.values()) - since_boot())
        return due if most_ms is None else min(most_ms, due)

    def late(self) -> list[tuple[Attempt, str]]:
        """Attempts that are late, their supervisors being killed, and what to say of each, or ""."""
        now = since_boot()
        found = [attempt for attempt in self._expected.values() if _late(attempt) <= now]
        return [(attempt, attempt.end_late(now)) for attempt in found]


def since_boot() -> int:
    """Milliseconds; no setting of the clock changes them."""
    return time.monotonic_ns() // 1_000_000


def _late(attempt: Attempt) -> int:
    assert attempt.late_ms is not None
    return attempt.late_ms
