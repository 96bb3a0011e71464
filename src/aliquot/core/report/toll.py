"""What an attempt held, and how much of it was of no use: before it ran, restarting, work done in vain.

Work is in vain where the attempt was stopped for others or lost with its node, from its last checkpoint on;
a job that makes none loses all of the attempt. What a job that fails or is given up has done is its affair.
"""

from __future__ import annotations

from typing import NamedTuple


class Toll(NamedTuple):
    """One attempt in milli-card ms, all within the window; `saved_ms` is progress that stays, in ms."""

    held: int
    unready: int
    restart: int
    lost_work: int
    saved_ms: int


class Attempt(NamedTuple):
    """An attempt of `milli` milli-cards: when it was granted, when it ran, and what stopping it costs.

    `worked_ms` None: it runs still. `restart_ms` is 0 for a first attempt.
    """

    milli: int
    granted_ms: int
    since_ms: int | None
    worked_ms: int | None
    restart_ms: int
    checkpoint_ms: int | None


def toll_of(attempt: Attempt, at: int, start: int, *, stopped: bool) -> Toll:
    """The toll of `attempt` up to `at` in a window from `start` on. `stopped`: by eviction or loss.

    8 cards that ran 50 min with a checkpoint every 20 and are evicted: 40 min stay, 80 card-min are lost.
    """
    milli = attempt.milli
    held = milli * inside(attempt.granted_ms, at, start)
    since = attempt.since_ms
    if since is None:
        return Toll(held, held, 0, 0, 0)
    worked = at - since if attempt.worked_ms is None else attempt.worked_ms
    over = since + worked
    resumed = since + min(attempt.restart_ms, worked)
    progress = over - resumed
    saved = progress
    if stopped:
        every = attempt.checkpoint_ms
        saved = progress // every * every if every else 0
    return Toll(
        held=held,
        unready=held - milli * inside(since, over, start),
        restart=milli * inside(since, resumed, start),
        lost_work=milli * inside(resumed + saved, over, start),
        saved_ms=saved,
    )


def inside(begin: int, end: int, start: int) -> int:
    """How much of `begin`..`end` lies after `start`."""
    return max(0, end - max(begin, start))
