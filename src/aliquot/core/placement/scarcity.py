"""What is scarce now: a price per GPU milli of each node kind, a reserve on whole slots of 2, 4 and 8 cards.

    price_k   = beta x sum over groups c of the mix that accept k of share_c x free / free in c, at most `cap`
    reserve_m = kappa x 1000 x m x min(1, wanted_m / slots_m); wanted_m: requests for m cards among those that
                would fill what is free

A group is the set of kinds a demand accepts; one that accepts every kind prices all alike and is left out.
Both need no knowledge of the future but the mix, change with every booking, and so stay outside cached
scores.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import F64, I16, I64, Bool, Cells
from aliquot.core.placement.mix import DemandMix

SIZES: Final = (2, 4, 8)


class Weights(NamedTuple):
    """How much scarcity counts."""

    beta: float = 1.0
    cap: float = 1.5
    kappa: float = 0.1


class Scarcity(NamedTuple):
    """Totals of the board and what follows from them; `price` and `reserve` are rewritten in place."""

    row_milli: I64  # [n] free GPU milli of a row as counted in `free`
    row_kind: I64  # [n] the kind it was counted for
    row_slots: I16  # [n, 3] whole slots as counted in `slots`
    free: I64  # [kinds]
    slots: I64  # [3]
    slot_cpu: I64  # [3] mean cpu of the demands for 2, 4, 8 whole cards
    groups: Bool  # [groups, kinds]
    group_milli: I64  # [groups] GPU milli the mix asks of the group
    slot_count: I64  # [3] requests of the mix for 2, 4, 8 whole cards
    mix_milli: int
    beta: float
    cap: float
    kappa: float
    price: F64  # [kinds] loss per GPU milli
    reserve: F64  # [3] loss per slot


def scarcity_of(mix: DemandMix, weights: Weights, rows: int, kinds: int) -> Scarcity:
    """Nothing counted yet; every row has to be noticed once."""
    groups: Counter[tuple[bool, ...]] = Counter()
    for demand in mix.demands:
        accepts = tuple(mask != 0 for mask in demand.shape.eligible)
        if demand.shape.milli > 0 and any(accepts) and not all(accepts):
            groups[accepts] += demand.times * demand.shape.milli
    ordered = sorted(groups.items())
    whole = [[demand for demand in mix.demands if demand.shape.cards == size] for size in SIZES]
    counts = [sum(demand.times for demand in part) for part in whole]
    cpus = [sum(demand.times * demand.shape.cpu for demand in part) for part in whole]
    return Scarcity(
        row_milli=np.zeros(rows, np.int64),
        row_kind=np.full(rows, -1, np.int64),
        row_slots=np.zeros((rows, len(SIZES)), np.int16),
        free=np.zeros(kinds, np.int64),
        slots=np.zeros(len(SIZES), np.int64),
        slot_cpu=np.array([cpu // max(count, 1) for cpu, count in zip(cpus, counts, strict=True)], np.int64),
        groups=np.array([accepts for accepts, _ in ordered], np.bool_).reshape(len(ordered), kinds),
        group_milli=np.array([milli for _, milli in ordered], np.int64),
        slot_count=np.array(counts, np.int64),
        mix_milli=max(mix.milli, 1),
        beta=weights.beta,
        cap=weights.cap,
        kappa=weights.kappa,
        price=np.zeros(kinds, np.float64),
        reserve=np.zeros(len(SIZES), np.float64),
    )


def notice(scarce: Scarcity, cells: Cells, rows: list[int]) -> None:
    """Count `rows` anew, then price. The twin of `kernels.future.recount_rows`."""
    for row in rows:
        _recount(scarce, cells, row)
    _reprice(scarce)


def slots_of(idle: int, cpu: int, size: int, slot_cpu: int) -> int:
    """Whole slots of `size` cards among `idle` idle cards, as far as the cpu goes."""
    slots = idle // size
    return min(slots, cpu // slot_cpu) if slot_cpu > 0 else slots


def _recount(scarce: Scarcity, cells: Cells, row: int) -> None:
    kind, counted = int(cells.kind[row]), int(scarce.row_kind[row])
    if counted >= 0:
        scarce.free[counted] -= scarce.row_milli[row]
    scarce.row_milli[row] = int(cells.effective[row].sum())
    scarce.row_kind[row] = kind
    if kind >= 0:
        scarce.free[kind] += scarce.row_milli[row]
    idle, cpu = int(cells.idle[row]).bit_count(), int(cells.cpu[row])
    for at, size in enumerate(SIZES):
        slots = slots_of(idle, cpu, size, int(scarce.slot_cpu[at]))
        scarce.slots[at] += slots - int(scarce.row_slots[row, at])
        scarce.row_slots[row, at] = slots


def _reprice(scarce: Scarcity) -> None:
    total = int(scarce.free.sum())
    seen = total / scarce.mix_milli
    scarce.price[:] = 0.0
    for accepts, milli in zip(scarce.groups, scarce.group_milli.tolist(), strict=True):
        supply = int(scarce.free[accepts].sum())
        scarce.price[accepts] += scarce.beta * (milli * seen) / supply if supply > 0 else scarce.cap
    np.minimum(scarce.price, scarce.cap, out=scarce.price)
    for at, size in enumerate(SIZES):
        slots = int(scarce.slots[at])
        wanted = int(scarce.slot_count[at]) * seen / slots if slots > 0 else 0.0
        scarce.reserve[at] = scarce.kappa * 1000.0 * size * min(1.0, wanted)
