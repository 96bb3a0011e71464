"""When a blocked job could start, and where: the shadow it throws on those behind it.

The running jobs' expected ends are replayed in order on a copy of what is free, until the job fits; the nodes
it then gets are concrete, so a later job knows exactly what to leave alone. `earliest_start` does this on any
board (the ledger's draft, with cards, memory and wiring); `counts.replay` on free cards per node.

Expected ends are guesses. A job that has outrun its estimate is expected to need as long again as it has run
so far, plus a minute: with estimates wrong by up to ten times this halves the worst wait against a fixed
minute. Unknown is FAR, never now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from aliquot.core.ids import JobId
from aliquot.core.settings import Overrun

FAR: Final = 2**60
"""An end that nobody knows, in ms."""

T = TypeVar("T")


class Hold(NamedTuple):
    """Cards (bits of `mask`) of one row, kept from `at_ms` on for a job, or for maintenance: `job` None."""

    row: int
    mask: int
    at_ms: int
    job: JobId | None = None


def expected_end(started_ms: int, estimate_ms: int | None, now: int, overrun: Overrun = Overrun()) -> int:  # noqa: B008 - a frozen value
    """When a job that runs since `started_ms` is expected to be over: after `now`, FAR where unknown."""
    if estimate_ms is None:
        return FAR
    end = started_ms + estimate_ms
    if end > now:
        return end
    return now + overrun.least_ms + (now - started_ms) * overrun.again_milli // 1000


def earliest_start(
    ends: Iterable[tuple[int, JobId]],
    give_back: Callable[[JobId], None],
    try_seat: Callable[[], T | None],
) -> tuple[int, T] | None:
    """(ms, seat) of the first end after which `try_seat` finds one; None if it never does.

    `ends` are the running jobs' expected ends. `give_back` frees what a job holds on the caller's copy; jobs
    that end at one moment are given back together. The caller rolls its copy back afterwards.
    """
    waiting = sorted(ends)
    for at, (end, job) in enumerate(waiting):
        give_back(job)
        if at + 1 < len(waiting) and waiting[at + 1][0] == end:
            continue
        seat = try_seat()
        if seat is not None:
            return end, seat
    return None


def closed_cards(holds: Iterable[Hold], row: int, until_ms: int | None) -> int:
    """The cards of `row` that a job which ends at `until_ms` must leave alone (None: its end is unknown)."""
    mask = 0
    for hold in holds:
        if hold.row == row and (until_ms is None or until_ms > hold.at_ms):
            mask |= hold.mask
    return mask
