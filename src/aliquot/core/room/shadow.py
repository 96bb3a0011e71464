"""When a blocked job could start, and where: the shadow it throws on those behind it.

The running jobs' expected ends are replayed in order on a copy of what is free, until the job fits; the nodes
it then gets are concrete, so a later job knows exactly what to leave alone. `horizon` does this on the draft,
with cards, memory and wiring; `counts.replay` on free cards per node.

Expected ends are guesses. A job that has outrun its estimate is expected to need as long again as it has run
so far, plus a minute: with estimates wrong by up to ten times this halves the worst wait against a fixed
minute. Unknown is FAR, never now.
"""

from __future__ import annotations

from typing import Final, TypeVar

from aliquot.core.settings import Overrun

FAR: Final = 2**60
"""An end that nobody knows, in ms."""

T = TypeVar("T")


def expected_end(started_ms: int, estimate_ms: int | None, now: int, overrun: Overrun = Overrun()) -> int:  # noqa: B008 - a frozen value
    """When a job that runs since `started_ms` is expected to be over: after `now`, FAR where unknown."""
    if estimate_ms is None:
        return FAR
    end = started_ms + estimate_ms
    if end > now:
        return end
    return now + overrun.least_ms + (now - started_ms) * overrun.again_milli // 1000
