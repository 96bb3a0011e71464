"""When a row first has room for a request, if those who hold something there end as expected.

The compiled half of `horizon`: counts of cards that fit, row by row. Which cards of them a request would get,
and whether their wiring will do, is asked of the few rows that are ready first.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import I64, Cells, Request
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.stays import Clock, Stays

FOREVER = 2**62
FAR_OFF = 2**50  # what is later is not multiplied by a thousand


@compiled
def expected(stays: Stays, clock: Clock, row: int, slot: int) -> int:
    """When a stay is expected to be over."""
    end = int(stays.end[row, slot])
    since = int(stays.since[row, slot])
    if since < 0:
        return max(clock.now + 1, end)
    if end > clock.now:
        return end
    return clock.now + clock.least_ms + (clock.now - since) * clock.again_milli // 1000


@compiled
def fits_card(cells: Cells, request: Request, left: I64, kind: int, card: int) -> bool:
    """Whether a card with `left` [c, DIMS] has room. A whole one may be without bandwidth of its own."""
    if request.whole:
        return bool(left[card, 0] >= 1000 and left[card, 1] >= cells.full[kind, card, 1])
    for dim in range(left.shape[1]):  # noqa: SIM110 - numba compiles loops, not generators
        if left[card, dim] < request.ask[kind, dim]:
            return False
    return True


@compiled
def lasting(stays: Stays, clock: Clock, row: int, slot: int, at: int) -> int:
    """The last moment of asking at which a stay is still expected to be over by `at`, as it is now."""
    end = int(stays.end[row, slot])
    since = int(stays.since[row, slot])
    if since < 0:
        return at - 1
    if at > FAR_OFF:
        return clock.now
    # now + least + (now - since) * again / 1000 <= at, for whoever has outrun his end by then
    late = (1000 * (at - clock.least_ms) + since * clock.again_milli) // (1000 + clock.again_milli)
    return max(late, end - 1) if end > clock.now else late


@compiled
def first_moments(
    cells: Cells, request: Request, stays: Stays, clock: Clock, rows: I64, out: I64, until: I64
) -> None:
    """Into `out` for `rows` the first moment from `clock.begin` on with enough cards, cpu and host memory.

    `clock.far` where there is none before that. `until`: till which moment of asking that stays so, if
    nothing is booked there and nobody comes or goes (where it is the moment of asking itself: that it is).
    """
    slots = stays.end.shape[1]
    cards = cells.left.shape[1]
    times = np.zeros(slots, np.int64)
    order = np.zeros(slots, np.int64)
    left = np.zeros((cards, cells.left.shape[2]), np.int64)
    for row in rows:
        out[row] = clock.far
        until[row] = FOREVER
        kind = cells.kind[row]
        if kind < 0 or request.eligible[kind] == 0:
            continue
        allowed = request.eligible[kind] & cells.usable[row]
        able = 0
        for card in range(cards):
            able += (allowed >> card) & 1
        if request.cards > able:
            continue
        count = stays.used[row]
        for slot in range(count):
            when = expected(stays, clock, row, slot)
            at = slot
            while at > 0 and times[at - 1] > when:
                times[at] = times[at - 1]
                order[at] = order[at - 1]
                at -= 1
            times[at] = when
            order[at] = slot
        cpu = cells.cpu[row]
        room = cells.host[row]
        free = 0
        for card in range(cards):
            for dim in range(left.shape[1]):
                left[card, dim] = cells.left[row, card, dim]
            if (allowed >> card) & 1 and fits_card(cells, request, left, kind, card):
                free += 1
        at = 0
        moment = clock.begin
        while True:
            while at < count and times[at] <= moment:
                slot = order[at]
                cpu += stays.cpu[row, slot]
                room += stays.host[row, slot]
                held = stays.mask[row, slot]
                for card in range(cards):
                    if (held >> card) & 1:
                        usable = (allowed >> card) & 1
                        if usable and fits_card(cells, request, left, kind, card):
                            free -= 1
                        for dim in range(left.shape[1]):
                            left[card, dim] += stays.vector[row, slot, dim]
                        if usable and fits_card(cells, request, left, kind, card):
                            free += 1
                at += 1
            if free >= request.cards and cpu >= request.cpu and room >= request.host:
                out[row] = moment
                for before in range(at):
                    until[row] = min(until[row], lasting(stays, clock, row, order[before], moment))
                break
            if at == count:
                break
            moment = times[at]
            if moment >= clock.far:
                break
