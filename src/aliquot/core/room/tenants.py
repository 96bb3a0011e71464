"""Running jobs that may be stopped for another, in columns, and what stopping one costs.

The cost is work: milliseconds of one whole card that are lost. A job without cards counts as a thousandth of
a card, so that the one that has run longer still costs more.

`Tenants` is worked out once for a plan; a `Pool` says whom one beneficiary may have, and in what order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.grants import Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.placement.cells import I64
from aliquot.core.queueing.quota import Charge
from aliquot.core.records import JobRecord
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.settings import HOUR_MS, Preemption
from aliquot.core.units import FULL

_UNDER_WAY: Final = frozenset({Phase.STARTING, Phase.RUNNING})
_NOT: Final = -1


class Tenant(NamedTuple):
    """A job that could be stopped for somebody; `seats` are those that would be free then."""

    job: JobId
    cost: int
    seats: tuple[Seat, ...]
    priority: int = 0
    spot: bool = False
    submitted: tuple[int, int] = (0, 0)  # (ms, sequence number): of equals the later goes first
    leaf: int = 0
    charge: Charge = ()


class Tenants:
    """All of a plan, numbered in the order they are given."""

    def __init__(self, tenants: Sequence[Tenant]) -> None:
        self.all = tenants
        self.cost: I64 = np.array([one.cost for one in tenants], np.int64)
        self.priority: I64 = np.array([one.priority for one in tenants], np.int64)
        self.spot = np.array([one.spot for one in tenants], np.bool_)
        numbers: dict[tuple[int, Charge], int] = {}
        self.group: I64 = np.array(
            [numbers.setdefault((one.leaf, one.charge), len(numbers)) for one in tenants], np.int64
        )
        self.groups = list(numbers)
        self.entries = _entries(tenants)

    def on(self, row: int) -> list[int]:
        """Who holds something on `row`, by number."""
        start, stop = np.searchsorted(self.entries[0], (row, row + 1))
        return [int(at) for at in self.entries[1][start:stop]]


class Pool(NamedTuple):
    """Which tenants one beneficiary may have. The smaller `rank` goes first; -1: not to be had."""

    tenants: Tenants
    rank: I64  # [tenants] dense, from 0
    right: I64  # [tenants]

    def narrowed(self, keep: npt.NDArray[np.bool_]) -> Pool:
        """Only those of `keep` [tenants]."""
        return self._replace(rank=np.where(keep, self.rank, _NOT))

    @property
    def is_empty(self) -> bool:
        """Whether nobody is to be had."""
        return bool((self.rank < 0).all())


def open_pool(
    tenants: Tenants,
    rules: Preemption,
    *,
    priority: int | None,
    gone: Sequence[int] = (),
    claim: Claim | None,
) -> Pool:
    """Whom a job of `priority` (None: priorities don't count) may have, those `gone` excepted.

    Spot work first, then whose queue has most beyond its own, then lower priority; last resorts last.
    """
    right, share = _rights(tenants, claim)
    right, share = right[tenants.group], share[tenants.group]
    own = share == 0 if claim is None else _own(tenants, claim)[tenants.group]
    lower = tenants.priority < (priority or 0)
    may = np.where(own, lower & rules.lower_priority & (priority is not None), right >= 0)
    if rules.spot:
        right = np.where(tenants.spot, Right.SPOT, right)
        share = np.where(tenants.spot, 0, share)
        may = may | tenants.spot
    may[list(gone)] = False
    order = np.lexsort((tenants.priority, -share, right))
    keys = np.stack((right[order], -share[order], tenants.priority[order]))
    new = np.ones(len(order), np.int64)
    new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    rank: I64 = np.zeros(len(order), np.int64)
    rank[order] = np.cumsum(new) - 1
    return Pool(tenants, np.where(may, rank, _NOT), right)


def victim_cost(record: JobRecord, now: int, rules: Preemption) -> int | None:
    """What is lost, in ms of one whole card, if the running job of `record` is stopped at `now`.

    Work since its last checkpoint (all of it where it makes none), its restart, and for every earlier
    eviction a part of an hour, on its cards. None: it may not be stopped.
    Worked: 2 cards, 50 min after a checkpoint, 1 min to restart, evicted once at 500 milli: 2 x 81 min.
    """
    if record.phase not in _UNDER_WAY or record.evicting is not None or record.cancelled:
        return None
    stop, ran = record.job.stop, max(0, now - record.since_ms)
    if not stop.preemptible or ran < rules.least_run_ms:
        return None
    lost = (ran % stop.checkpoint_ms if stop.checkpoint_ms else ran) + stop.restart_ms
    if record.evictions:
        if record.evictions >= rules.most_evictions and not record.job.spot:
            return None
        lost += record.evictions * (HOUR_MS * rules.again_milli // FULL)
    return _milli_cards(record) * lost // FULL


def _milli_cards(record: JobRecord) -> int:
    """Cards it was charged for; where nothing says, what it asks."""
    milli = 0
    for part in record.asked:
        milli += part.milli
    return milli or sum(_asked(request) for request in record.job.members) or 1


def _asked(request: Request) -> int:
    share = None if request.whole else request.ask.compute_milli
    return request.cards * (FULL if share is None else share)


def _entries(tenants: Sequence[Tenant]) -> tuple[I64, I64, I64]:
    """(row, tenant, cards it holds there, wholly or in part, at least 1), by row and then by tenant."""
    held: list[tuple[int, int, int]] = []
    for at, one in enumerate(tenants):
        if len(one.seats) == 1:
            held.append((one.seats[0].row, at, one.seats[0].mask.bit_count() or 1))
            continue
        cards: dict[int, int] = {}
        for seat in one.seats:
            cards[seat.row] = cards.get(seat.row, 0) + seat.mask.bit_count()
        held += [(row, at, count or 1) for row, count in cards.items()]
    table = np.array(held, np.int64).reshape(len(held), 3)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()


def _rights(tenants: Tenants, claim: Claim | None) -> tuple[I64, I64]:
    """[groups] (right, share) of those of other queues; -1: none."""
    rights = [(Right.RANK, 0) if claim is None else claim.right(*group) for group in tenants.groups]
    right = [_NOT if known is None else int(known[0]) for known in rights]
    return np.array(right, np.int64), np.array(
        [0 if known is None else known[1] for known in rights], np.int64
    )


def _own(tenants: Tenants, claim: Claim) -> npt.NDArray[np.bool_]:
    return np.array([leaf == claim.leaf for leaf, _ in tenants.groups], np.bool_)
