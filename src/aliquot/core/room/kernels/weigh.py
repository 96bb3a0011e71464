"""`prospects.weigh_plain` in loops: what clearing each row costs at the least.

Of each order only so many are taken as the lack needs, so none is sorted.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import I64, Bool
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.lodgers import MASK, TENANT
from aliquot.core.room.prospects import JOBS, LEAST, NEVER, TENANTS, WORST


@compiled
def weigh(
    held: I64,
    start: I64,
    count: I64,
    is_open: Bool,
    cost: I64,
    rank: I64,
    lack: I64,
    has_parts: bool,
    out: I64,
) -> None:
    """Fill `out` [rows, columns of `prospects`], 0 where not enough can be cleared.

    `held` with `start` and `count` [rows] are the lines of a roll, `is_open`, `cost` and `rank` [tenants].
    """
    most = 0
    for row in range(out.shape[0]):
        most = max(most, count[row])
    who = np.empty(most, np.int64)
    cards = np.empty(most, np.int64)
    taken = np.empty(most, np.bool_)
    for row in range(out.shape[0]):
        out[row] = 0
        if lack[row] >= NEVER:
            continue
        tenants, given, last = 0, 0, -1
        for line in range(start[row], start[row] + count[row]):
            one = held[line, TENANT]
            if not is_open[one]:
                continue
            mask, bits = held[line, MASK], 0
            while mask:
                mask &= mask - 1
                bits += 1
            if tenants and one == last:
                cards[tenants - 1] += bits
            else:
                who[tenants], cards[tenants] = one, bits
                tenants += 1
            last = one
        for at in range(tenants):
            cards[at] = max(cards[at], 1)
            given += cards[at]
        if not tenants or given < lack[row]:
            continue
        out[row, TENANTS] = tenants
        out[row, LEAST] = _least(cost, who, cards, taken, tenants, lack[row])
        out[row, WORST] = _worst(rank, who, cards, taken, tenants, lack[row])
        if not has_parts:
            out[row, JOBS] = _jobs(cards, taken, tenants, lack[row])


@compiled
def _least(cost: I64, who: I64, cards: I64, taken: Bool, tenants: int, lack: int) -> int:
    """The cost of `lack` cards at the least price per card; the first of equals."""
    taken[:tenants] = False
    total = 0
    while lack > 0:
        best, price = -1, 0.0
        for at in range(tenants):
            if not taken[at] and (best < 0 or cost[who[at]] / cards[at] < price):
                best, price = at, cost[who[at]] / cards[at]
        taken[best] = True
        used = min(lack, cards[best])
        total += cost[who[best]] * used // cards[best]
        lack -= used
    return total


@compiled
def _worst(rank: I64, who: I64, cards: I64, taken: Bool, tenants: int, lack: int) -> int:
    """The rank up to which `lack` cards are had, at least 0."""
    taken[:tenants] = False
    worst = 0
    while lack > 0:
        best = -1
        for at in range(tenants):
            if not taken[at] and (best < 0 or rank[who[at]] < rank[who[best]]):
                best = at
        taken[best] = True
        worst = max(worst, rank[who[best]])
        lack -= cards[best]
    return worst


@compiled
def _jobs(cards: I64, taken: Bool, tenants: int, lack: int) -> int:
    """How few tenants have `lack` cards."""
    taken[:tenants] = False
    jobs = 0
    while lack > 0:
        best = -1
        for at in range(tenants):
            if not taken[at] and (best < 0 or cards[at] > cards[best]):
                best = at
        taken[best] = True
        jobs += 1
        lack -= cards[best]
    return jobs
