"""How many cards other work than spot has wanted, quarter hour by quarter hour, and will want soon.

Wanted is what such jobs hold, and what those ask for that only wait for their turn and room. Who waits for
other jobs, or is of an array that runs a few at a time, counts once it holds something. It is folded from
events, so a restart and a replay know the same past.

The forecast looks at the same time of day: how high demand went in the horizon on each day before, and how
much it rose in it from where it was. A quantile of each is taken, and the lower of the two counts, but never
less than is wanted now. As long as too few days are known, any time of day will do; and as long as nothing
is, the most that was ever wanted.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.units import FULL

BIN_MS: Final = 900_000
DAY_BINS: Final = 96
KEPT_BINS: Final = 14 * DAY_BINS
ENOUGH: Final = 6
"""Windows of the past that are needed before they speak: three of each day are alike."""

Bin = tuple[int, int]
"""(wanted when it began, the most that was wanted in it), milli-cards."""


class Tide(msgspec.Struct, frozen=True):
    """What is wanted now, in the bin `number`, of which `open` is so far, and in the `past` before it."""

    now_milli: int = 0
    number: int = 0
    open: Bin = (0, 0)
    past: tuple[Bin, ...] = ()


def asked_milli(job: Job) -> int:
    """Milli-cards of all its members; the whole card where a slice's compute is not said."""
    return milli_of(job.members)


@lru_cache(maxsize=1 << 10)
def milli_of(members: tuple[Request, ...]) -> int:
    """The same of `members`."""
    return sum(
        request.cards * (FULL if request.whole else request.ask.compute_milli or FULL) for request in members
    )


class Tides:
    """The running state. `tide` is a snapshot at any time."""

    def __init__(self, tide: Tide | None = None, wants: Mapping[JobId, int] | None = None) -> None:
        self.tide = Tide() if tide is None else tide
        self._wants: dict[JobId, int] = {job: milli for job, milli in (wants or {}).items() if milli}

    def note(self, job: JobId, milli: int, at: int) -> None:
        """From `at` on `job` wants so much; 0: nothing any more."""
        before = self._wants.get(job, 0)
        if milli == before:
            return
        if milli:
            self._wants[job] = milli
        else:
            del self._wants[job]
        tide = rolled(self.tide, at)
        now = tide.now_milli + milli - before
        self.tide = Tide(now, tide.number, (tide.open[0], max(tide.open[1], now)), tide.past)


def rolled(tide: Tide, at: int) -> Tide:
    """`tide` as it is at `at`: bins that have passed since are closed at what was wanted all through them."""
    gone = at // BIN_MS - tide.number
    if gone <= 0:
        return tide
    level = (tide.now_milli, tide.now_milli)
    if not tide.past and not tide.number and tide.open == (0, 0):
        return Tide(tide.now_milli, tide.number + gone, level)  # nothing was ever wanted: no past to know
    past = (*tide.past, tide.open, *[level] * min(gone - 1, KEPT_BINS))
    return Tide(tide.now_milli, tide.number + gone, level, past[-KEPT_BINS:])


def high_tide(tide: Tide, now: int, horizon_ms: int, quantile_milli: int) -> int:
    """Milli-cards that other work than spot is expected to want at most from `now` to the horizon."""
    tide = rolled(tide, now)
    known = _usual(tide.past, tide.number, -(-horizon_ms // BIN_MS), quantile_milli)
    if known is None:
        return max(tide.now_milli, tide.open[1], *(most for _, most in tide.past), 0)
    level, rise = known
    return max(tide.now_milli, min(level, tide.now_milli + rise))


@lru_cache(maxsize=16)
def _usual(past: tuple[Bin, ...], number: int, span: int, quantile_milli: int) -> tuple[int, int] | None:
    """(the most wanted, how far it rose) in the `span` bins after bin `number`, as the past has it."""
    first = number - len(past)  # the number of the oldest bin
    peaks: tuple[list[int], list[int]] = ([], [])
    rises: tuple[list[int], list[int]] = ([], [])
    for at in range(len(past) - span):
        start = past[at][0]
        peak = max(most for _, most in past[at : at + span + 1])
        apart = (first + at - number) % DAY_BINS
        for alike in (False, True) if apart in {0, 1, DAY_BINS - 1} else (False,):
            insort(peaks[alike], peak)
            insort(rises[alike], peak - start)
    known = next((alike for alike in (True, False) if len(peaks[alike]) >= ENOUGH), None)
    if known is None:
        return None
    return _quantile(peaks[known], quantile_milli), _quantile(rises[known], quantile_milli)


def _quantile(ordered: list[int], milli: int) -> int:
    return ordered[min(len(ordered) - 1, len(ordered) * milli // 1000)]
