"""Scoring rows by the value they lose, and the choice among all rows: the kernel behind EFP and FGD.

A row that changed gets a lower bound of its loss first. Only rows whose bound could still win are worked out,
which leaves the choice exactly as if all had been: a skipped row cannot be least, nor tie with the least.
"""

from __future__ import annotations

import math

import numpy as np

from aliquot.core.placement.cells import BLOCK, I32, I64, U32, Cells, Request, Scores
from aliquot.core.placement.kernels.fit import after, fit_mask, lowest
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.kernels.search import (
    TIE,
    extra,
    first_within,
    least_exact,
    lower_floor,
    lower_floors,
    next_bound,
)
from aliquot.core.placement.kernels.values import rehash, sort_falling, value_of
from aliquot.core.placement.scarcity import Scarcity
from aliquot.core.placement.worth import BARE, CLASS_AT, IDLE_AT, Demands, Table, Worth

__all__ = ["decide", "rehash"]

NONE = 1 << 31


@compiled
def code_of(cells: Cells, row: int, kind: int, card: int, flat: bool, card_class: I32) -> int:
    """The code of a card as it is; 0 when it may not be used."""
    if flat:
        return int(cells.effective[row, card])
    if not (cells.usable[row] >> card) & 1:
        return 0
    left = cells.left[row, card]
    code = (np.int64(left[0]) << 32) | (np.int64(left[1]) << 10) | np.int64(left[2])
    code |= np.int64(card_class[kind, card]) << CLASS_AT
    return int(code | (np.int64((cells.idle[row] >> card) & 1) << IDLE_AT))


@compiled
def code_after(
    cells: Cells, request: Request, row: int, kind: int, card: int, flat: bool, card_class: I32
) -> int:
    """The code of a card once the request is booked on it."""
    if request.whole:
        return 0
    if flat:
        return after(cells, request, row, kind, card)
    ask = request.ask[kind]
    asked = (np.int64(ask[0]) << 32) | (np.int64(ask[1]) << 10) | np.int64(ask[2])
    bare = code_of(cells, row, kind, card, flat, card_class) & BARE
    return int(bare - asked)


@compiled
def sets_in(scarce: Scarcity, at: int, kind: int, idle: int, cpu: int) -> int:
    """The twin of `scarcity.sets_in`."""
    if idle < scarce.set_cards[at] or kind < 0 or not scarce.set_kinds[at, kind]:
        return 0
    sets = idle // scarce.set_cards[at]
    if sets * scarce.set_cpu[at] > cpu:
        sets = cpu // scarce.set_cpu[at]
    return int(sets)


@compiled
def count_bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@compiled
def judge(lost: float, rounded: bool, scale: float) -> float:
    """The loss of losing value `lost`: plainly scaled, or FGD's whole points of 100."""
    if rounded:
        return -math.floor(100.0 / (1.0 + math.exp(-lost / scale / 1000.0)))
    return lost / scale


@compiled
def score_row(
    cells: Cells,
    request: Request,
    scores: Scores,
    demands: Demands,
    table: Table,
    scarce: Scarcity,
    worth: Worth,
    given: int,
    bound_only: bool,
    rounded: bool,
    scale: float,
    card_class: I32,
    row: int,
    codes: I64,
    changed: I64,
    key: I64,
    scratch: I64,
    left: I32,
) -> None:
    """Fill the scores of one row. `given`: the cards a chooser took (0: lowest first)."""
    scores.loss[row] = np.inf
    scores.exact[row] = True
    scores.mask[row] = 0
    mask = fit_mask(cells, request, row)
    if mask == 0:
        return
    flat = demands.flat
    kind = cells.kind[row]
    profile = demands.profile[kind]
    width = codes.shape[0]
    for card in range(width):
        codes[card] = code_of(cells, row, kind, card, flat, card_class)
    sort_falling(codes)
    if worth.at[row] != cells.changed[row]:
        worth.value[row] = value_of(demands, table, profile, cells.cpu[row], codes, key, scratch, left)
        worth.at[row] = cells.changed[row]
    before = worth.value[row]
    cpu = cells.cpu[row] - request.cpu
    taken = 0
    best = np.inf
    if request.cards == 1 and given == 0:
        allowed = mask
        if bound_only:
            # What the row could pack at most afterwards: every other card to its ceiling.
            ceiling = 0
            for card in range(width):
                ceiling += demands.ceiling[profile, codes[card]]
            gentlest = 1 << 30
            any_busy = False
            for card in range(width):
                if (allowed >> card) & 1:
                    drop = demands.ceiling[profile, cells.effective[row, card]]
                    drop -= demands.ceiling[profile, after(cells, request, row, kind, card)]
                    gentlest = min(gentlest, drop)
                    if not (cells.idle[row] >> card) & 1:
                        any_busy = True
            best = before / scale - (ceiling - gentlest)
            scores.exact[row] = False
            if not any_busy:
                taken = lowest(allowed, 1)
        else:
            for card in range(width):
                if not (allowed >> card) & 1:
                    continue
                old = code_of(cells, row, kind, card, flat, card_class)
                new = code_after(cells, request, row, kind, card, flat, card_class)
                repeated = False
                for other in range(card):
                    if (allowed >> other) & 1 and code_of(cells, row, kind, other, flat, card_class) == old:
                        repeated = code_after(cells, request, row, kind, other, flat, card_class) == new
                        if repeated:
                            break
                if repeated:
                    continue
                place = 0
                while codes[place] != old:
                    place += 1
                for at in range(width):
                    changed[at] = codes[at]
                while place + 1 < width and changed[place + 1] > new:
                    changed[place] = changed[place + 1]
                    place += 1
                changed[place] = new
                value = value_of(demands, table, profile, cpu, changed, key, scratch, left)
                loss = judge(float(before - value), rounded, scale)
                if loss < best - TIE:
                    best = loss
                    taken = 1 << card
    else:
        if request.cards > 0:
            taken = given if given != 0 else lowest(mask, request.cards)
        for card in range(width):
            if (taken >> card) & 1:
                changed[card] = code_after(cells, request, row, kind, card, flat, card_class)
            else:
                changed[card] = code_of(cells, row, kind, card, flat, card_class)
        sort_falling(changed)
        value = value_of(demands, table, profile, cpu, changed, key, scratch, left)
        best = judge(float(before - value), rounded, scale)
    scores.loss[row] = best
    scores.mask[row] = taken if request.cards > 0 else NONE
    idle = count_bits(cells.idle[row])
    idle_after = idle - count_bits(cells.idle[row] & taken)
    scores.breaks[row] = False
    for at in range(scarce.reserve.shape[0]):
        had = sets_in(scarce, at, kind, idle, cells.cpu[row])
        lost = had - sets_in(scarce, at, kind, idle_after, cpu) if had > 0 else 0
        scores.lost[row, at] = lost
        if lost > 0:
            scores.breaks[row] = True


@compiled
def recount(cells: Cells, scarce: Scarcity, row: int) -> None:
    """Bring what a row contributes to the totals up to date."""
    kind = cells.kind[row]
    counted = scarce.row_kind[row]
    if counted >= 0:
        scarce.free[counted] -= scarce.row_milli[row]
    milli = 0
    for card in range(cells.effective.shape[1]):
        milli += cells.effective[row, card]
    scarce.row_milli[row] = milli
    scarce.row_kind[row] = kind
    if kind >= 0:
        scarce.free[kind] += milli
    idle = count_bits(cells.idle[row])
    for at in range(scarce.reserve.shape[0]):
        sets = sets_in(scarce, at, kind, idle, cells.cpu[row])
        scarce.sets[at] += sets - scarce.row_sets[row, at]
        scarce.row_sets[row, at] = sets


@compiled
def reprice(scarce: Scarcity) -> None:
    """Price and reserve from the totals; the formulas are in `scarcity`."""
    total = 0
    for kind in range(scarce.free.shape[0]):
        total += scarce.free[kind]
        scarce.price[kind] = 0.0
    seen = total / scarce.mix_milli
    for group in range(scarce.groups.shape[0]):
        supply = 0
        for kind in range(scarce.free.shape[0]):
            if scarce.groups[group, kind]:
                supply += scarce.free[kind]
        rate = scarce.cap
        if supply > 0:
            rate = scarce.beta * (scarce.group_milli[group] * seen) / supply
        for kind in range(scarce.free.shape[0]):
            if scarce.groups[group, kind]:
                scarce.price[kind] += rate
    for kind in range(scarce.free.shape[0]):
        scarce.price[kind] = min(scarce.price[kind], scarce.cap)
    for at in range(scarce.reserve.shape[0]):
        wanted = 0.0
        if scarce.sets[at] > 0:
            wanted = scarce.set_count[at] * seen / scarce.sets[at]
        scarce.reserve[at] = scarce.kappa * 1000.0 * scarce.set_cards[at] * min(1.0, wanted)


@compiled
def decide(
    cells: Cells,
    request: Request,
    scores: Scores,
    demands: Demands,
    table: Table,
    scarce: Scarcity,
    worth: Worth,
    given: U32,
    bound: bool,
    rounded: bool,
    scale: float,
    card_class: I32,
    changed_rows: I32,
    count: int,
    fresh: I32,
    rows: int,
    host: int,
    barred: int,
) -> int:
    """Score `changed_rows[:count]`, as bounds where that is enough for now; then pick among the first `rows`.

    The row of least loss among those that fit and have `host` MiB; ties to the first; -1: none. `barred` is a
    row that may not be taken (-1: none). Totals are first brought up to date with the rows `fresh`. One
    function for all, because compiling it twice would take twice as long.
    """
    if fresh.shape[0] > 0:
        for entry in range(fresh.shape[0]):
            recount(cells, scarce, fresh[entry])
        reprice(scarce)
    width = cells.effective.shape[1]
    codes = np.empty(width, np.int64)
    changed = np.empty(width, np.int64)
    scratch = np.empty(width, np.int64)
    left = np.empty(16, np.int32)
    key = np.empty(table.keys.shape[1], np.int64)
    bound = bound and demands.flat and not rounded
    at = 0
    scoring = count > 0
    floored = False
    least = np.inf
    row = 0
    like = -1
    while True:
        # 1. rows that changed; 2. bounds that could still win
        if scoring:
            target = changed_rows[at]
            taken = given[target] if given.shape[0] > 0 else 0
            as_bound = bound
            at += 1
            scoring = at < count
            if like >= 0 and given.shape[0] == 0 and same_row(cells, like, target):
                copy_scores(cells, scores, worth, like, target)
                continue
            like = target
        else:
            if not floored:
                floored = True
                lower_floors(scores, changed_rows, count)
                least = least_exact(cells, request, scores, scarce, rows, host, barred)
            row = next_bound(cells, request, scores, scarce, row, rows, host, barred, least)
            if row >= rows:
                break
            target = row
            row += 1
            taken = 0
            as_bound = False
        score_row(
            cells, request, scores, demands, table, scarce, worth, taken, as_bound, rounded, scale,
            card_class, target, codes, changed, key, scratch, left,
        )  # fmt: skip
        if floored:
            least = min(least, scores.loss[target] + extra(cells, request, scores, scarce, target))
            lower_floor(scores, target // BLOCK)
    if least == np.inf:
        return -1
    return first_within(cells, request, scores, scarce, rows, host, barred, least + TIE)


@compiled
def same_row(cells: Cells, one: int, other: int) -> bool:
    """Whether two rows look the same to every request (host memory apart)."""
    if (
        cells.kind[one] != cells.kind[other]
        or cells.cpu[one] != cells.cpu[other]
        or cells.usable[one] != cells.usable[other]
        or cells.idle[one] != cells.idle[other]
    ):
        return False
    for card in range(cells.left.shape[1]):
        for dim in range(cells.left.shape[2]):
            if cells.left[one, card, dim] != cells.left[other, card, dim]:
                return False
    return True


@compiled
def copy_scores(cells: Cells, scores: Scores, worth: Worth, one: int, other: int) -> None:
    """Give row `other` what was worked out for row `one`, which looks the same."""
    scores.loss[other] = scores.loss[one]
    scores.exact[other] = scores.exact[one]
    scores.mask[other] = scores.mask[one]
    scores.breaks[other] = scores.breaks[one]
    for at in range(scores.lost.shape[1]):
        scores.lost[other, at] = scores.lost[one, at]
    if worth.at[one] == cells.changed[one]:
        worth.value[other] = worth.value[one]
        worth.at[other] = cells.changed[other]
