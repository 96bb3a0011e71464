"""Several ways in which what runs and waits may end, and the starts that lie at the levels between them.

Where nobody knows for sure how long jobs run, one future says little of how far a start may be off. So counts
are played forward into several, each with lengths of its own, and what they say together is a low, a middle
and a high start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from aliquot.core.columns import I64
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.outlook import SAID
from aliquot.core.records import Frozen
from aliquot.core.room.shadow import FAR

EstimateOf = Callable[[Job], int | None]
"""How long a job runs; None where nobody knows."""

Futures = Callable[[Job, int], Sequence[int | None]]
"""How long a job that has run for so many ms may run in all, in each of several futures."""


def play_futures(
    world: Frozen,
    now: int,
    ends: I64,
    jobs: Sequence[Job],
    estimate_of: EstimateOf,
    futures: Futures | None,
) -> Iterator[tuple[I64, I64]]:
    """For each future when what runs is over, and how long each of `jobs` runs (-1: for ever).

    `ends`: when what runs is expected to be over, by the ids of jobs; it speaks where a future does not know.
    Without `futures` there is one, in which all is as expected.
    """
    if futures is None:
        yield ends, lengths_column(estimate_of(job) for job in jobs)
        return
    held = [world.jobs[job] for job in sorted(world.grants)]
    ran = [futures(record.job, max(0, now - record.granted_ms)) for record in held]
    runs = [futures(job, 0) for job in jobs]
    for at in range(min(len(lengths) for lengths in (*ran, *runs))):  # more may be learnt in between
        over = []
        for record, length, end in zip(held, (lengths[at] for lengths in ran), ends.tolist(), strict=True):
            is_known = length is not None and record.phase is not Phase.STOPPING
            over.append(max(now + 1, record.granted_ms + (length or 0)) if is_known else end)
        yield column(over), lengths_column(lengths[at] for lengths in runs)


def levels_of(starts: Sequence[I64]) -> list[tuple[int, int, int]]:
    """Of each job the low, middle and high start, of its starts in all futures (-1 or FAR: unknown).

    Straight between two futures if both know it. The middle is FAR where it is unknown; the high one then is
    the last that is known.
    """
    every = np.sort(np.where(np.array(starts) < 0, FAR, np.array(starts)), axis=0)
    return [_levels_of(ordered) for ordered in every.T.tolist()]


def lengths_column(lengths: Iterable[int | None]) -> I64:
    """[jobs] ms, at least 1; -1: unknown."""
    return column(-1 if length is None else max(1, length) for length in lengths)


def column(values: Iterable[int]) -> I64:
    """[values] as they are."""
    return np.array(list(values), np.int64)


def _levels_of(ordered: Sequence[int]) -> tuple[int, int, int]:
    low, middle, high = (_between(ordered, round(1000 * level)) for level in SAID)
    known = [start for start in ordered if start < FAR]
    return low, middle, min(high, known[-1]) if known else high


def _between(ordered: Sequence[int], milli: int) -> int:
    """The value at `milli` / 1000 of the way: of 10, 20, 30 and 40 the middle is 25."""
    at, part = divmod(milli * (len(ordered) - 1), 1000)
    one, other = ordered[at], ordered[min(at + 1, len(ordered) - 1)]
    return one if other >= FAR else one + (other - one) * part // 1000
