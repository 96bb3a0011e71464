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
from aliquot.core.room.reclaim import Claim, Right, Sides, sides_of
from aliquot.core.settings import HOUR_MS, Preemption
from aliquot.core.units import FULL

_UNDER_WAY: Final = frozenset({Phase.STARTING, Phase.RUNNING})
_NOT: Final = -1
_HIGH: Final = 2**62


class Tenant(NamedTuple):
    """A job that could be stopped for somebody; `seats` are those that would be free then.

    A job that can also go on narrower is several, one after the other, the widest first: each is what it
    gives up beyond the one before it, so taking one takes those before it too. `keep` is the width at which
    it then goes on (0: it is stopped), `charge` what it gives up in all so far, `part` what of that is new.
    """

    job: JobId
    cost: int
    seats: tuple[Seat, ...]
    priority: int = 0
    spot: bool = False
    submitted: tuple[int, int] = (0, 0)  # (ms, sequence number): of equals the later goes first
    leaf: int = 0
    charge: Charge = ()
    keep: int = 0
    part: Charge | None = None

    @property
    def given(self) -> Charge:
        """What is not charged any more beyond what the tenant before it gives."""
        return self.charge if self.part is None else self.part


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
        # by number: the one that has to be taken before it, or -1
        self.before = [_NOT] * len(tenants)
        self.numbers: dict[JobId, list[int]] = {}
        self.lowest_of: dict[int, int] = {}  # priority, by leaf
        for at, one in enumerate(tenants):
            own = self.numbers.setdefault(one.job, [])
            if own:
                self.before[at] = own[-1]
            own.append(at)
            if one.priority < self.lowest_of.get(one.leaf, _HIGH):
                self.lowest_of[one.leaf] = one.priority
        self.has_parts = len(self.numbers) < len(tenants)
        self.any_spot = bool(self.spot.any())
        self.lowest = min(self.lowest_of.values(), default=_HIGH)
        self._sides: dict[int, tuple[Sides, ...]] = {}
        self.entries = _entries(tenants)

    def sides(self, claim: Claim) -> tuple[Sides, ...]:
        """Where the queue of `claim` meets those of tenants."""
        found = self._sides.get(claim.leaf)
        if found is None:
            found = sides_of(claim.book.tree, claim.leaf, self.lowest_of)
            self._sides[claim.leaf] = found
        return found

    def on(self, row: int) -> list[int]:
        """Who holds something on `row`, by number; parts of one job in their order."""
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
    if not is_any(tenants, rules, priority=priority, claim=claim):
        nobody: I64 = np.full(len(tenants.all), _NOT, np.int64)
        return Pool(tenants, nobody, nobody)
    rights = _rights(tenants, claim)
    by_group = [(_NOT, 0) if known is None else (int(known[0]), known[1]) for known in rights]
    right: I64 = np.array([one for one, _ in by_group], np.int64)[tenants.group]
    share: I64 = np.array([one for _, one in by_group], np.int64)[tenants.group]
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


def is_any(tenants: Tenants, rules: Preemption, *, priority: int | None, claim: Claim | None) -> bool:
    """Whether anybody might be had; looked at by queue, before anything is laid out by tenant.

    False is sure, True is not.
    """
    if rules.spot and tenants.any_spot:
        return True
    if rules.lower_priority and priority is not None:
        least = tenants.lowest if claim is None else tenants.lowest_of.get(claim.leaf, priority)
        if least < priority:
            return True
    return claim is not None and bool(claim.open_leaves(tenants.sides(claim)))


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
    lost = _unsaved_ms(record, now) + stop.restart_ms
    if record.evictions:
        if record.evictions >= rules.most_evictions and not record.job.spot:
            return None
        lost += record.evictions * (HOUR_MS * rules.again_milli // FULL)
    return _milli_cards(record) * lost // FULL


def shrink_cost(record: JobRecord, left_milli: int, now: int) -> int:
    """What is lost, in ms of one whole card, if the job of `record` goes on with `left_milli` of its cards.

    All its cards stand still for a restart; an elastic job loses nothing else, a gang the work of those
    members that go.
    """
    held = _milli_cards(record)
    lost = held * record.job.stop.restart_ms
    if record.job.elastic is None:
        lost += (held - left_milli) * _unsaved_ms(record, now)
    return lost // FULL


def _unsaved_ms(record: JobRecord, now: int) -> int:
    """Work since the last checkpoint; all of it where it makes none."""
    ran, every = max(0, now - record.since_ms), record.job.stop.checkpoint_ms
    return ran % every if every else ran


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


def _rights(tenants: Tenants, claim: Claim | None) -> list[tuple[Right, int] | None]:
    """[groups] (right, share) of those of other queues; None: none."""
    if claim is None:
        return [(Right.RANK, 0)] * len(tenants.groups)
    may = {claim.leaf, *claim.open_leaves(tenants.sides(claim))}
    return [claim.right(*group) if group[0] in may else None for group in tenants.groups]


def _own(tenants: Tenants, claim: Claim) -> npt.NDArray[np.bool_]:
    return np.array([leaf == claim.leaf for leaf, _ in tenants.groups], np.bool_)
