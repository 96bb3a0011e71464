"""Running jobs that may be stopped for another, and what stopping one costs.

The cost is work: milliseconds of one whole card that are lost. A job without cards counts as a thousandth of
a card, so that the one that has run longer still costs more.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from aliquot.core.grants import Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.quota import Charge
from aliquot.core.records import JobRecord
from aliquot.core.room.reclaim import Right
from aliquot.core.settings import HOUR_MS, Preemption
from aliquot.core.units import FULL

_UNDER_WAY: Final = frozenset({Phase.STARTING, Phase.RUNNING})


class Candidate(NamedTuple):
    """A job that may be stopped. The smaller `rank` goes first; `seats` are those that would be free then."""

    job: JobId
    rank: tuple[int, ...]
    cost: int
    seats: tuple[Seat, ...]
    leaf: int = 0
    charge: Charge = ()
    right: Right = Right.RANK
    submitted: tuple[int, int] = (0, 0)  # (ms, sequence number): of equals the later goes first


def rank_of(right: Right, share: int, priority: int) -> tuple[int, int, int]:
    """Spot work first, then whose queue has most beyond its own, then lower priority; last resorts last."""
    return (int(right), -share, priority)


def victim_cost(record: JobRecord, now: int, rules: Preemption) -> int | None:
    """What is lost, in ms of one whole card, if the running job of `record` is stopped at `now`.

    Work since its last checkpoint (all of it where it makes none), its restart, and for every earlier
    eviction a part of an hour, on its cards. None: it may not be stopped.
    Worked: 2 cards, 50 min after a checkpoint, 1 min to restart, evicted once at 500 milli: 2 x 81 min.
    """
    job, stop = record.job, record.job.stop
    ran = max(0, now - record.since_ms)
    if record.phase not in _UNDER_WAY or record.evicting is not None or record.cancelled:
        return None
    if not stop.preemptible or ran < rules.least_run_ms:
        return None
    if record.evictions >= rules.most_evictions and not job.spot:
        return None
    lost = ran % stop.checkpoint_ms if stop.checkpoint_ms else ran
    again = record.evictions * (HOUR_MS * rules.again_milli // FULL)
    return _milli_cards(record) * (lost + stop.restart_ms + again) // FULL


def _milli_cards(record: JobRecord) -> int:
    """Cards it was charged for; where nothing says, what it asks."""
    milli = sum(part.milli for part in record.asked)
    return milli or sum(_asked(request) for request in record.job.members) or 1


def _asked(request: Request) -> int:
    share = None if request.whole else request.ask.compute_milli
    return request.cards * (FULL if share is None else share)
