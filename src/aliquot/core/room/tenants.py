"""Running jobs that may be stopped for another, in columns, and what stopping one costs.

The cost is work: milliseconds of one whole card that are lost. A job without cards counts as a thousandth of
a card, so that the one that has run longer still costs more.

`Tenants` are those of one plan, seen on the `Roll` that is kept from plan to plan; a `Pool` says whom one
beneficiary may have, and in what order. Both are worked out by kind (`lodgers.Kinds`), as far as they can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.ids import JobId
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.core.placement.cells import I32, I64
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.records import JobRecord
from aliquot.core.room.law import Law, law_of, line_of, side_of
from aliquot.core.room.lodgers import (
    AT_MS,
    EVERY,
    EXTRA,
    FIXED,
    KIND,
    MASK,
    MILLI,
    PARTED,
    RESTART,
    SEQ,
    SINCE,
    TENANT,
    Roll,
    Tenant,
    Terms,
    lines_of,
)
from aliquot.core.room.reclaim import Claim, Right, below_of
from aliquot.core.settings import HOUR_MS, Preemption
from aliquot.core.units import FULL

_UNDER_WAY: Final = frozenset({Phase.STARTING, Phase.RUNNING})
_NOT: Final = -1
_HIGH: Final = 2**62


class Tenants:
    """Those of `roll` who may be stopped at `now`; what they hold is as long as the roll is not changed."""

    def __init__(self, roll: Roll, now: int, rules: Preemption) -> None:
        self.roll, self._now = roll, now
        columns = roll.columns
        rested = np.maximum(now - columns[SINCE], 0) >= rules.least_run_ms
        # [tenants] the number of its kind, or -1: not to be stopped
        self.kind: I64 = np.where(rested, columns[KIND], _NOT)
        kinds = roll.kinds
        self.count: I64 = np.bincount(self.kind + 1, minlength=len(kinds.group) + 1)[1:]
        self.groups = kinds.groups
        self.group_of: I64 = np.array(kinds.group, np.int64)
        self.priority_of: I64 = np.array(kinds.priority, np.int64)
        self.spot_of = np.array(kinds.spot, np.bool_)
        self.leaf_of: I64 = np.array([leaf for leaf, _ in kinds.groups], np.int64)
        self.has_parts = bool(roll.before)
        there = self.count > 0
        self.any_spot = bool(self.spot_of[there].any())
        self.lowest_of = self._lowest(there)  # priority, by leaf
        self.lowest = min(self.lowest_of.values(), default=_HIGH)
        self._below: tuple[QueueTree, dict[int, list[int]]] | None = None
        self._told: dict[int, Tenant] = {}
        self._law: tuple[QueueTree, tuple[Law, I64]] | None = None

    def __getitem__(self, at: int) -> Tenant:
        """One of them, with its cost."""
        found = self._told.get(at)
        if found is None:
            one = self.roll.all[at]
            assert one is not None, "nobody is asked for who is not there"
            found = self._told[at] = one._replace(cost=int(self.cost[at]))
        return found

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def cost(self) -> I64:
        """[tenants] what is lost, in ms of one whole card."""
        columns = self.roll.columns
        ran, every = np.maximum(self._now - columns[SINCE], 0), columns[EVERY]
        unsaved = np.where(every > 0, ran % np.maximum(every, 1), ran)
        cost = columns[MILLI] * (unsaved + columns[RESTART] + columns[EXTRA]) // FULL
        found: I64 = np.where(columns[FIXED] >= 0, columns[FIXED], cost)
        return found

    @cached_property
    def _given(self) -> I64:
        """[groups] what each is charged, of all resources together."""
        return np.array([sum(amount for _, amount in charge) for _, charge in self.groups], np.int64)

    @property
    def before(self) -> dict[int, int]:
        """Of a part of a job: the one that has to be taken before it."""
        return self.roll.before

    def numbers(self, job: JobId) -> tuple[int, ...]:
        """Of the parts of `job`."""
        return self.roll.numbers.get(job, ())

    def after(self, at: int) -> int:
        """The part of the same job that comes after `at`; -1: none."""
        one = self.roll.all[at]
        assert one is not None
        own = self.roll.numbers[one.job]
        place = own.index(at) + 1
        return own[place] if place < len(own) else _NOT

    def below(self, tree: QueueTree) -> dict[int, list[int]]:
        """The leaves of tenants, by each node of `tree` above them."""
        if self._below is None or self._below[0] is not tree:
            self._below = (tree, below_of(tree, self.lowest_of))
        return self._below[1]

    def law(self, tree: QueueTree) -> tuple[Law, I64]:
        """`tree` as arrays, and [groups, resources] what each group is charged; worked out once."""
        if self._law is None or self._law[0] is not tree:
            law = law_of(tree)
            slots = law.entitled.shape[1]
            charge: I64 = np.zeros((max(1, len(self.groups)), slots), np.int64)
            for at, (_, each) in enumerate(self.groups):
                charge[at] = line_of(each, slots)
            self._law = (tree, (law, charge))
        return self._law[1]

    def helping(self, claim: Claim, lack: tuple[int, int]) -> npt.NDArray[np.bool_]:
        """[groups] whether stopping one of them gives some of `lack`: (node, slot)."""
        node, slot = lack
        law, charge = self.law(claim.book.tree)
        below: npt.NDArray[np.bool_] = (law.path[self.leaf_of] == node).any(axis=1)
        return below & (charge[: len(below), slot] > 0)

    def on(self, row: int) -> list[int]:
        """Who holds something on `row`, by number; parts of one job in their order."""
        start = int(self.roll.start[row])
        lines = self.roll.held[start : start + int(self.roll.count[row]), TENANT]
        return list(dict.fromkeys(lines.tolist()))

    def by_quota(self, found: I64, rank: I64) -> Iterator[int]:
        """`found`, of these ranks, by cost per quota that they give back within one rank; the later first."""
        given = self._given[self.group_of[self.kind[found]]]
        for at in np.flatnonzero(self.roll.columns[PARTED, found] > 0).tolist():
            given[at] = sum(amount for _, amount in self[int(found[at])].given)
        price = self.cost[found] * 1_000_000 // np.maximum(given, 1)
        late = -self.roll.columns[AT_MS, found], -self.roll.columns[SEQ, found]
        keys = np.stack((rank, price, *late))
        order = np.lexsort(keys[::-1])
        same = (keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)
        if same.any():  # by name, parts of one job in their order
            names = sorted(order.tolist(), key=lambda at: (*keys[:, at].tolist(), self[int(found[at])].job))
            order = np.array(names, np.int64)
        return map(int, found[order])

    def holding_on(self, rows: I32) -> npt.NDArray[np.bool_]:
        """[tenants] whether each holds something on one of `rows`."""
        found = np.zeros(len(self.kind), np.bool_)
        found[self._lines(rows)[:, TENANT]] = True
        return found

    def _lines(self, rows: I32 | I64) -> I64:
        """What is held on `rows`, row by row."""
        lines: I64 = self.roll.held[lines_of(self.roll.start[rows], self.roll.count[rows])]
        return lines

    def entries(self, is_open: npt.NDArray[np.bool_]) -> tuple[I64, I64, I64]:
        """(row, tenant, cards it holds there, wholly or in part, at least 1), by row, of the open ones."""
        roll = self.roll
        every = np.arange(len(roll.count))
        row, lines = np.repeat(every, roll.count), self._lines(every)
        keep = is_open[lines[:, TENANT]]
        row, at = row[keep], lines[keep, TENANT]
        cards = np.bitwise_count(lines[keep, MASK]).astype(np.int64)
        if not len(row):
            return row, at, cards
        new = np.ones(len(row), np.bool_)
        new[1:] = (row[1:] != row[:-1]) | (at[1:] != at[:-1])
        (starts,) = np.nonzero(new)
        return row[starts], at[starts], np.maximum(np.add.reduceat(cards, starts), 1)

    def _lowest(self, there: npt.NDArray[np.bool_]) -> dict[int, int]:
        leaf, priority = self.leaf_of[self.group_of[there]], self.priority_of[there]
        order = np.lexsort((priority, leaf))
        found, first = np.unique(leaf[order], return_index=True)
        return dict(zip(found.tolist(), priority[order][first].tolist(), strict=True))


class Pool(NamedTuple):
    """Which tenants one beneficiary may have. The smaller `rank` goes first; -1: not to be had."""

    tenants: Tenants
    rank: I64  # [tenants] dense, from 0
    right_of: I64  # [kinds] of those that are to be had

    def narrowed(self, keep: npt.NDArray[np.bool_]) -> Pool:
        """Only those of `keep` [tenants]."""
        return self._replace(rank=np.where(keep, self.rank, _NOT))

    def of_kinds(self, keep: npt.NDArray[np.bool_]) -> Pool:
        """Only those of `keep` [kinds]."""
        return self if keep.all() else self.narrowed(np.append(keep, False)[self.tenants.kind])

    @property
    def right(self) -> I64:
        """[tenants] by which right each is to be had."""
        found: I64 = np.append(self.right_of, _NOT)[self.tenants.kind]
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nobody is to be had."""
        return bool((self.rank < 0).all())


class Offers(NamedTuple):
    """[kinds] what one beneficiary may have, by kind: `rank` -1: nothing."""

    rank: I64
    right: I64


def offers_of(
    tenants: Tenants,
    rules: Preemption,
    *,
    priority: int | None,
    claim: Claim | None,
    compiled: bool = False,
) -> Offers:
    """What a job of `priority` (None: priorities don't count) may have.

    Spot work first, then whose queue has most beyond its own, then lower priority; last resorts last.
    """
    nobody: I64 = np.full(len(tenants.count), _NOT, np.int64)
    if not is_any(tenants, rules, priority=priority, claim=claim):
        return Offers(nobody, nobody)
    group, there = tenants.group_of, tenants.count > 0
    by_group = _rights(tenants, claim, compiled=compiled)
    right, share = by_group[0][group], by_group[1][group]
    own = there if claim is None else tenants.leaf_of[group] == claim.leaf
    lower = tenants.priority_of < (priority or 0)
    may = np.where(own, lower & rules.lower_priority & (priority is not None), right >= 0)
    if rules.spot:
        right = np.where(tenants.spot_of, Right.SPOT, right)
        share = np.where(tenants.spot_of, 0, share)
        may = may | tenants.spot_of
    (kinds,) = np.nonzero(there)
    keys = np.stack((right, -share, tenants.priority_of))[:, kinds]
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), np.int64)
    new[1:] = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
    rank = nobody.copy()
    rank[kinds[order]] = np.cumsum(new) - 1
    return Offers(np.where(may, rank, _NOT), right)


def open_pool(tenants: Tenants, offers: Offers, gone: Sequence[int] = ()) -> Pool:
    """Those tenants that `offers` are of, those `gone` excepted."""
    rank: I64 = np.append(offers.rank, _NOT)[tenants.kind]
    rank[list(gone)] = _NOT
    return Pool(tenants, rank, offers.right)


def is_any(tenants: Tenants, rules: Preemption, *, priority: int | None, claim: Claim | None) -> bool:
    """Whether anybody might be had; looked at by queue, before anything is laid out by kind.

    False is sure, True is not.
    """
    if rules.spot and tenants.any_spot:
        return True
    if rules.lower_priority and priority is not None:
        least = tenants.lowest if claim is None else tenants.lowest_of.get(claim.leaf, priority)
        if least < priority:
            return True
    if claim is None:
        return False
    return next(claim.open_leaves(tenants.below(claim.book.tree)), None) is not None


def may_ever_stop(record: JobRecord, rules: Preemption) -> bool:
    """Whether the job of `record` may be stopped, once it has run long enough."""
    if record.phase not in _UNDER_WAY or record.evicting is not None or record.cancelled:
        return False
    often = record.evictions and record.evictions >= rules.most_evictions and not record.job.spot
    return record.job.stop.preemptible and not often


def terms_of(record: JobRecord, rules: Preemption, fixed: int = -1) -> Terms:
    """What the cost of stopping it follows from."""
    stop = record.job.stop
    extra = record.evictions * (HOUR_MS * rules.again_milli // FULL)
    return Terms(
        record.since_ms, stop.checkpoint_ms or 0, stop.restart_ms, extra, _milli_cards(record), fixed
    )


def victim_cost(record: JobRecord, now: int, rules: Preemption) -> int | None:
    """What is lost, in ms of one whole card, if the running job of `record` is stopped at `now`.

    Work since its last checkpoint (all of it where it makes none), its restart, and for every earlier
    eviction a part of an hour, on its cards. None: it may not be stopped.
    Worked: 2 cards, 50 min after a checkpoint, 1 min to restart, evicted once at 500 milli: 2 x 81 min.
    """
    if not may_ever_stop(record, rules) or max(0, now - record.since_ms) < rules.least_run_ms:
        return None
    terms = terms_of(record, rules)
    return terms.milli * (_unsaved_ms(record, now) + terms.restart + terms.extra) // FULL


def shrink_cost(record: JobRecord, left_milli: int, now: int, *, in_place: bool = True) -> int:
    """What is lost, in ms of one whole card, if the job of `record` goes on with `left_milli` of its cards.

    All its cards stand still for a restart. An elastic job loses nothing else: it saves its work when it is
    warned. A gang loses the unsaved work of those members that go; where widths do not change `in_place`, all
    of them end and start again, and it loses as much as if it were stopped.
    Worked: of 8 cards 4 stay, 50 min after a checkpoint, 1 min to restart: 8 + 200 min, by restart 8 + 400.
    """
    held = _milli_cards(record)
    lost = held * record.job.stop.restart_ms
    if record.job.elastic is None:
        lost += (held - left_milli if in_place else held) * _unsaved_ms(record, now)
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


def _rights(tenants: Tenants, claim: Claim | None, *, compiled: bool) -> tuple[I64, I64]:
    """[groups] right and share of those of other queues; right -1: none."""
    right: I64 = np.full(len(tenants.groups), _NOT, np.int64)
    share: I64 = np.zeros(len(tenants.groups), np.int64)
    if claim is None:
        right[:] = Right.RANK
        return right, share
    is_open = np.zeros(len(claim.book.tree.names), np.bool_)
    is_open[[claim.leaf, *claim.open_leaves(tenants.below(claim.book.tree))]] = True
    may: npt.NDArray[np.bool_] = is_open[tenants.leaf_of]
    if compiled and _rights_at_once(tenants, claim, may, right, share):
        return right, share
    for at in np.flatnonzero(may).tolist():
        known = claim.right(*tenants.groups[at])
        if known is not None:
            right[at], share[at] = known
    return right, share


def _rights_at_once(
    tenants: Tenants, claim: Claim, may: npt.NDArray[np.bool_], right: I64, share: I64
) -> bool:
    """Whether they were worked out by the compiled loop."""
    from aliquot.core.room.kernels.law import rights_of

    law, charge = tenants.law(claim.book.tree)
    side = side_of(claim, charge.shape[1])
    if rights_of(claim.book.columns(), law, side, charge, tenants.leaf_of, may, right, share):
        return True
    right[:], share[:] = _NOT, 0
    return False
