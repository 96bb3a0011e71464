"""What is scarce now: a price per GPU milli of each node kind, a reserve on idle sets of 2, 4 and 8 cards.

    price_k   = beta x sum over groups c of the mix that accept k of share_c x free / free in c, at most `cap`
    reserve_s = kappa x 1000 x cards_s x min(1, wanted_s / sets_s); wanted_s: requests for such a set among
                those that would fill what is free; sets_s: how many of them are idle

A group is the set of kinds a demand accepts; one that accepts every kind prices all alike and is left out.
Demands for 2, 4 or 8 whole cards that accept the same kinds and want about as much cpu ask for one kind of
set: eight cards with 120 cores are rarer than eight cards, and on one model rarer still. Both terms need no
knowledge of the future but the mix, change with every booking, and so stay outside cached scores.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import F64, I16, I64, SETS, Bool, Cells
from aliquot.core.placement.mix import Demand, DemandMix

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
    row_sets: I16  # [n, sets] as counted in `sets`
    free: I64  # [kinds]
    sets: I64  # [sets] how many of each kind of set are idle
    set_cards: I64  # [sets]
    set_cpu: I64  # [sets] mean cpu of the demands
    set_kinds: Bool  # [sets, kinds] what accepts them
    set_count: I64  # [sets] requests of the mix
    groups: Bool  # [groups, kinds]
    group_milli: I64  # [groups] GPU milli the mix asks of the group
    mix_milli: int
    beta: float
    cap: float
    kappa: float
    price: F64  # [kinds] loss per GPU milli
    reserve: F64  # [sets] loss per set


def scarcity_of(mix: DemandMix, weights: Weights, rows: int, kinds: int) -> Scarcity:
    """Nothing counted yet; every row has to be noticed once."""
    groups: Counter[tuple[bool, ...]] = Counter()
    for demand in mix.demands:
        accepts = _accepts(demand)
        if demand.shape.milli > 0 and any(accepts) and not all(accepts):
            groups[accepts] += demand.times * demand.shape.milli
    ordered = sorted(groups.items())
    kept = _sets(mix) if weights.kappa > 0 else []
    return Scarcity(
        row_milli=np.zeros(rows, np.int64),
        row_kind=np.full(rows, -1, np.int64),
        row_sets=np.zeros((rows, len(kept)), np.int16),
        free=np.zeros(kinds, np.int64),
        sets=np.zeros(len(kept), np.int64),
        set_cards=np.array([part[0].shape.cards for part in kept], np.int64),
        set_cpu=np.array([_count(part, cpu=True) // _count(part) for part in kept], np.int64),
        set_kinds=np.array([_accepts(part[0]) for part in kept], np.bool_).reshape(len(kept), kinds),
        set_count=np.array([_count(part) for part in kept], np.int64),
        groups=np.array([accepts for accepts, _ in ordered], np.bool_).reshape(len(ordered), kinds),
        group_milli=np.array([milli for _, milli in ordered], np.int64),
        mix_milli=max(mix.milli, 1),
        beta=weights.beta,
        cap=weights.cap,
        kappa=weights.kappa,
        price=np.zeros(kinds, np.float64),
        reserve=np.zeros(len(kept), np.float64),
    )


def notice(scarce: Scarcity, cells: Cells, rows: list[int]) -> None:
    """Count `rows` anew, then price. The twin of `kernels.future.recount` and `reprice`."""
    for row in rows:
        _recount(scarce, cells, row)
    _reprice(scarce)


def sets_in(scarce: Scarcity, kind: int, idle: int, cpu: int) -> list[int]:
    """How many of each kind of set a row of `kind` with `idle` idle cards holds, as far as the cpu goes."""
    result = []
    for at, (cards, each) in enumerate(zip(scarce.set_cards.tolist(), scarce.set_cpu.tolist(), strict=True)):
        sets = idle // cards if kind >= 0 and scarce.set_kinds[at, kind] else 0
        result.append(min(sets, cpu // each) if each > 0 else sets)
    return result


def _accepts(demand: Demand) -> tuple[bool, ...]:
    return tuple(mask != 0 for mask in demand.shape.eligible)


def _sets(mix: DemandMix) -> list[list[Demand]]:
    """Demands by kind of set, those first that ask for the most cards; beyond `SETS` kinds, none is kept."""
    parts: dict[tuple[object, ...], list[Demand]] = {}
    for demand in mix.demands:
        if demand.shape.whole and demand.shape.cards in SIZES:
            key = (demand.shape.cards, _accepts(demand), band(demand.shape.cpu))
            parts.setdefault(key, []).append(demand)
    ordered = sorted(parts.items(), key=lambda item: (-_count(item[1]) * item[1][0].shape.cards, item[0]))
    return [part for _, part in ordered[:SETS]]


def _count(part: list[Demand], *, cpu: bool = False) -> int:
    return sum(demand.times * (demand.shape.cpu if cpu else 1) for demand in part)


def band(cpu: int) -> int:
    """Amounts of cpu alike to a factor of 1.5: 65,536 to 98,303 are one band, up to 131,071 the next."""
    length = cpu.bit_length()
    return 2 * length + (cpu >> length - 2 & 1 if length > 1 else 0)


def _recount(scarce: Scarcity, cells: Cells, row: int) -> None:
    kind, counted = int(cells.kind[row]), int(scarce.row_kind[row])
    if counted >= 0:
        scarce.free[counted] -= scarce.row_milli[row]
    scarce.row_milli[row] = int(cells.effective[row].sum())
    scarce.row_kind[row] = kind
    if kind >= 0:
        scarce.free[kind] += scarce.row_milli[row]
    idle, cpu = int(cells.idle[row]).bit_count(), int(cells.cpu[row])
    for at, sets in enumerate(sets_in(scarce, kind, idle, cpu)):
        scarce.sets[at] += sets - int(scarce.row_sets[row, at])
        scarce.row_sets[row, at] = sets


def _reprice(scarce: Scarcity) -> None:
    total = int(scarce.free.sum())
    seen = total / scarce.mix_milli
    scarce.price[:] = 0.0
    for accepts, milli in zip(scarce.groups, scarce.group_milli.tolist(), strict=True):
        supply = int(scarce.free[accepts].sum())
        scarce.price[accepts] += scarce.beta * (milli * seen) / supply if supply > 0 else scarce.cap
    np.minimum(scarce.price, scarce.cap, out=scarce.price)
    for at, cards in enumerate(scarce.set_cards.tolist()):
        sets = int(scarce.sets[at])
        wanted = int(scarce.set_count[at]) * seen / sets if sets > 0 else 0.0
        scarce.reserve[at] = scarce.kappa * 1000.0 * cards * min(1.0, wanted)
