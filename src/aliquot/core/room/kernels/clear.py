"""`Ground.clear_one` in numbers: the cheapest set on one row, in the same order and with the same bounds.

Inner loops are handed single arrays: to hand on a tuple of arrays costs more than what is done with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aliquot.core.placement.cells import I32, I64, Bool
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.kernels.law import UNSURE, right_of, take_away
from aliquot.core.room.law import Law, Side
from aliquot.core.room.lodgers import AT_MS, CARDS, COMPUTE, CPU, HOST, MASK, PARTED, SEQ, TENANT
from aliquot.core.room.plot import ALIKE_MS, NODES, PARTS
from aliquot.core.units import FULL

NONE = -1
"""No set will do; `law.UNSURE` where it has to be worked out the long way."""


WANTS_CPU, WANTS_HOST, WANTS_CARDS, WANTS_WHOLE, ELIGIBLE, ASKS = range(6)
"""Columns of what is asked: [shapes, 8], the shapes that may stand for one member, on the kind of the row.
The last three, from ASKS on, are what it takes of a card.
"""

_COST, _RANK, _HELD, _AT, _LATE, _HERE = range(6)
"""Columns of those who may be stopped here: cost, rank, cards in all, submitted (ms, number), cards here."""


class People(NamedTuple):
    """Tenants: [columns, tenants], then [tenants], [kinds], [groups, resources], [groups]."""

    columns: I64
    cost: I64
    rank: I64
    open: Bool
    kind: I64
    right_of: I64
    group_of: I64
    charge: I64
    leaf: I64


@compiled
def clear_row(
    bare: I64,
    left: I32,
    asked: I64,
    lines: I64,
    people: People,
    members: int,
    counted: bool,
    law: Law,
    side: Side,
    usage: I64,
    out: I64,
) -> tuple[int, int]:
    """(how many victims are in `out`, or NONE, or UNSURE; partial sets that were still allowed).

    `bare`: usable, idle, cpu, host; `counted`: quotas count; `usage`: `Book.columns`.
    """
    room, cards = bare.copy(), left.astype(np.int64)
    count = lines.shape[0]
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    who, one_of = np.zeros(count, np.int64), np.zeros((count, 6), np.int64)
    n, at = 0, 0
    while at < count:
        one, end, held = lines[at, TENANT], at, 0
        while end < count and lines[end, TENANT] == one:
            held += _bits(lines[end, MASK])
            end += 1
        if people.open[one]:
            if people.columns[PARTED, one] > 0:
                return UNSURE, NODES
            first[n], last[n], who[n] = at, end, one
            one_of[n, _COST], one_of[n, _RANK] = people.cost[one], people.rank[one]
            one_of[n, _HELD], one_of[n, _HERE] = people.columns[CARDS, one], max(held, 1)
            one_of[n, _AT], one_of[n, _LATE] = people.columns[AT_MS, one], people.columns[SEQ, one]
            n += 1
        at = end
    # whatever quotas say, it takes more than all of them
    for one in range(n):
        _shift(room, cards, lines, first[one], last[one], 1)
    if not _fits(room, cards, asked, members):
        return NONE, NODES
    room[:], cards[:] = bare, left
    lack = _lacking(room, cards, asked, members)
    order = np.arange(n)
    if not _sort(order, one_of, lack):
        return UNSURE, NODES

    # in order until they fit
    used = usage.copy()
    chosen = np.zeros(n, np.int64)
    size, fits = 0, False
    for place in range(n):
        one = order[place]
        if counted:
            took = _take(used, law, side, people, who[one])
            if took == UNSURE:
                return UNSURE, NODES
            if not took:
                continue
        _shift(room, cards, lines, first[one], last[one], 1)
        chosen[size] = one
        size += 1
        fits = _fits(room, cards, asked, members)
        if fits:
            break
    if not fits:
        return NONE, NODES
    best, needed = chosen.copy(), size
    needed = _fill_back(room, cards, asked, members, lines, first, last, best, size)
    for place in range(needed):
        _shift(room, cards, lines, first[best[place]], last[best[place]], -1)
    worst = one_of[best[0], _RANK]
    for place in range(needed):
        worst = max(worst, one_of[best[place], _RANK])
    pool = np.zeros(n, np.int64)
    width = 0
    for place in range(n):
        if one_of[order[place], _RANK] <= worst:
            pool[width] = order[place]
            width += 1
    allowed = NODES
    if width > needed:
        each = np.zeros(width, np.int64)
        for place in range(width):
            each[place] = one_of[pool[place], _COST] * PARTS // one_of[pool[place], _HERE]
        pool = pool[:width][np.argsort(each, kind="mergesort")]
        cost, beyond = _price(best, needed, one_of, lack)
        key = (cost // ALIKE_MS, needed, beyond, cost)
        # what `Branch` does: with one and without it, from each partial set that could be better
        step = np.zeros(width + 1, np.int64)
        costs = np.zeros(width + 1, np.int64)
        size, depth = 0, 0
        while depth >= 0:
            if step[depth] == 0:
                if allowed == 0:
                    depth -= 1
                    continue
                allowed -= 1
                if size > 0 and _fits(room, cards, asked, members):
                    trial = chosen.copy()
                    kept = _fill_back(room, cards, asked, members, lines, first, last, trial, size)
                    for place in range(size):
                        spared = True
                        for other in range(kept):
                            spared = spared and trial[other] != chosen[place]
                        if spared:
                            _shift(room, cards, lines, first[chosen[place]], last[chosen[place]], 1)
                    cost, beyond = _price(trial, kept, one_of, lack)
                    again = (cost // ALIKE_MS, kept, beyond, cost)
                    if again < key:
                        permitted = 1
                        if counted:
                            used = usage.copy()
                            for place in range(kept):
                                took = _take(used, law, side, people, who[trial[place]])
                                if took == UNSURE:
                                    return UNSURE, NODES
                                if not took:
                                    permitted = 0
                                    break
                        if permitted:
                            best, needed, key = trial, kept, again
                    depth -= 1
                    continue
                if depth == width:
                    depth -= 1
                    continue
                if not _promises(room, cards, asked, members, pool, depth, size, costs[depth], one_of, key):
                    depth -= 1
                    continue
                one = pool[depth]
                _shift(room, cards, lines, first[one], last[one], 1)
                chosen[size] = one
                size += 1
                step[depth] = 1
                costs[depth + 1] = costs[depth] + one_of[one, _COST]
                step[depth + 1] = 0
                depth += 1
            elif step[depth] == 1:
                one = pool[depth]
                _shift(room, cards, lines, first[one], last[one], -1)
                size -= 1
                step[depth] = 2
                costs[depth + 1] = costs[depth]
                step[depth + 1] = 0
                depth += 1
            else:
                depth -= 1
    for place in range(needed):
        out[place] = who[best[place]]
    return needed, allowed


@compiled
def _bits(mask: int) -> int:
    found = 0
    while mask:
        mask &= mask - 1
        found += 1
    return found


@compiled
def _sort(order: I64, one_of: I64, lack: int) -> bool:
    """By rank, by cost per card that is needed, the later first; False where two are equal in all that."""
    price = np.zeros(len(order), np.int64)
    for at in range(len(order)):
        price[at] = one_of[at, _COST] * PARTS // min(lack, one_of[at, _HERE])
    for at in range(1, len(order)):
        one = order[at]
        place = at
        while place > 0:
            other = order[place - 1]
            less = (one_of[one, _RANK], price[one], -one_of[one, _AT], -one_of[one, _LATE])
            more = (one_of[other, _RANK], price[other], -one_of[other, _AT], -one_of[other, _LATE])
            if less == more:
                return False
            if less > more:
                break
            order[place] = other
            place -= 1
        order[place] = one
    return True


@compiled
def _take(used: I64, law: Law, side: Side, people: People, one: int) -> int:
    """1: stopped, and `used` is without it; 0: it may not be; UNSURE."""
    kind = people.kind[one]
    group = people.group_of[kind]
    leaf = people.leaf[group]
    if people.right_of[kind] != 0:
        right = right_of(used, law, side, leaf, people.charge[group])
        if right == UNSURE:
            return UNSURE
        if right < 0 or right > side.most:
            return 0
    take_away(used, law, leaf, people.charge[group])
    return 1


@compiled
def _shift(room: I64, cards: I64, lines: I64, first: int, last: int, sign: int) -> None:
    for at in range(first, last):
        room[2] += sign * lines[at, CPU]
        room[3] += sign * lines[at, HOST]
        mask = lines[at, MASK]
        for card in range(cards.shape[0]):
            if mask >> card & 1:
                for part in range(3):
                    cards[card, part] += sign * lines[at, COMPUTE + part]
                if cards[card, 0] == FULL:
                    room[1] |= 1 << card
                else:
                    room[1] &= ~(1 << card)


@compiled
def _fits(room: I64, cards: I64, asked: I64, members: int) -> bool:
    found = False
    for shape in range(asked.shape[0]):
        found = found or _count(room, cards, asked, shape, members) >= members
    return found


@compiled
def _count(room: I64, cards: I64, asked: I64, shape: int, most: int) -> int:
    if asked[shape, ELIGIBLE] == 0:
        return 0
    if asked[shape, WANTS_CPU]:
        most = min(most, room[2] // asked[shape, WANTS_CPU])
    if asked[shape, WANTS_HOST]:
        most = min(most, room[3] // asked[shape, WANTS_HOST])
    wide = asked[shape, WANTS_CARDS]
    if most <= 0 or wide == 0:
        return max(0, most)
    if asked[shape, WANTS_WHOLE]:
        return min(most, int(_bits(asked[shape, ELIGIBLE] & room[0] & room[1]) // wide))
    total = 0
    for card in range(cards.shape[0]):
        total += _slots(room, cards, asked, shape, card)
    for members in range(min(most, total // wide), 0, -1):
        places = 0
        for card in range(cards.shape[0]):
            places += min(_slots(room, cards, asked, shape, card), members)
        if places >= members * wide:
            return members
    return 0


@compiled
def _slots(room: I64, cards: I64, asked: I64, shape: int, card: int) -> int:
    allowed = asked[shape, ELIGIBLE] & room[0]
    if not allowed >> card & 1:
        return 0
    found, any_part = 0, False
    for part in range(3):
        wanted = asked[shape, ASKS + part]
        if wanted:
            count = cards[card, part] // wanted
            found = min(found, count) if any_part else count
            any_part = True
    return found if any_part else FULL


@compiled
def _lacking(room: I64, cards: I64, asked: I64, members: int) -> int:
    least = 1 << 30
    for shape in range(asked.shape[0]):
        wide = asked[shape, WANTS_CARDS]
        if wide == 0:
            lack = 0
        elif asked[shape, WANTS_WHOLE]:
            lack = wide * members - _bits(asked[shape, ELIGIBLE] & room[0] & room[1])
        else:
            lack = wide
            for card in range(cards.shape[0]):
                if _slots(room, cards, asked, shape, card) > 0:
                    lack -= 1
        least = min(least, lack)
    return max(1, least)


@compiled
def _fill_back(
    room: I64,
    cards: I64,
    asked: I64,
    members: int,
    lines: I64,
    first: I64,
    last: I64,
    chosen: I64,
    size: int,
) -> int:
    """Take back those not needed, latest first; `chosen` are the others then, so many."""
    keep = np.ones(size, np.bool_)
    for at in range(size - 1, -1, -1):
        _shift(room, cards, lines, first[chosen[at]], last[chosen[at]], -1)
        if _fits(room, cards, asked, members):
            keep[at] = False
        else:
            _shift(room, cards, lines, first[chosen[at]], last[chosen[at]], 1)
    kept = 0
    for at in range(size):
        if keep[at]:
            chosen[kept] = chosen[at]
            kept += 1
    return kept


@compiled
def _price(chosen: I64, size: int, one_of: I64, lack: int) -> tuple[int, int]:
    """Cost, and cards cleared beyond need."""
    cost, held = 0, 0
    for at in range(size):
        cost += one_of[chosen[at], _COST]
        held += one_of[chosen[at], _HELD]
    return cost, max(0, held - lack)


@compiled
def _promises(
    room: I64,
    cards: I64,
    asked: I64,
    members: int,
    pool: I64,
    at: int,
    size: int,
    cost: int,
    one_of: I64,
    key: tuple[int, int, int, int],
) -> bool:
    """Whether a set that goes on from here could be better: cards at the least price that is left."""
    lack = _lacking(room, cards, asked, members)
    most = 1
    for place in range(at, len(pool)):
        most = max(most, one_of[pool[place], _HERE])
    jobs = size - (-lack // most)
    for place in range(at, len(pool)):
        one = pool[place]
        used = min(lack, one_of[one, _HERE])
        cost += one_of[one, _COST] * used // one_of[one, _HERE]
        lack -= used
        if lack == 0:
            return (cost // ALIKE_MS, jobs, 0, cost) < key
    return False
