"""When a row first has room for a request, if those who hold something there end as expected.

The compiled half of `horizon`: counts of cards that fit, row by row. Which cards of them a request would get,
and whether their wiring will do, is asked of the few rows that are ready first.
"""

from __future__ import annotations

import numpy as np

from aliquot.core.placement.cells import I32, I64, Cells, Request
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.placement.stays import Clock, Stays

FOREVER = 2**62
FAR_OFF = 2**50  # what is later is not multiplied by a thousand


@compiled
def expected(end: int, since: int, now: int, least: int, again: int) -> int:
    """When a stay is expected to be over. Numbers, not `Stays`: arrays are dear to hand on in a loop."""
    if since < 0:
        return max(now + 1, end)
    if end > now:
        return end
    return now + least + (now - since) * again // 1000


@compiled
def lasting(end: int, since: int, now: int, least: int, again: int, at: int) -> int:
    """The last moment of asking at which a stay is still expected to be over by `at`, as it is now."""
    if since < 0:
        return at - 1
    if at > FAR_OFF:
        return now
    # now + least + (now - since) * again / 1000 <= at, for whoever has outrun his end by then
    late = (1000 * (at - least) + since * again) // (1000 + again)
    return max(late, end - 1) if end > now else late


@compiled
def fits_card(left: I64, card: int, whole: bool, full: int, ask: I32) -> bool:
    """Whether a card with `left` [c, DIMS] has room. A whole one may be without bandwidth of its own."""
    if whole:
        return bool(left[card, 0] >= 1000 and left[card, 1] >= full)
    for dim in range(left.shape[1]):  # noqa: SIM110 - numba compiles loops, not generators
        if left[card, dim] < ask[dim]:
            return False
    return True


@compiled
def first_moments(
    cells: Cells, request: Request, stays: Stays, clock: Clock, rows: I64, out: I64, until: I64
) -> None:
    """Into `out` for `rows` the first moment from `clock.begin` on with enough cards, cpu and host memory.

    `clock.far` where there is none before that. `until`: till which moment of asking that stays so, if
    nothing is booked there and nobody comes or goes (where it is the moment of asking itself: that it is).
    """
    ends, begun, masks, vectors = stays.end, stays.since, stays.mask, stays.vector
    now, least, again = clock.now, clock.least_ms, clock.again_milli
    whole, wanted = request.whole, request.cards
    cards, dims = cells.left.shape[1], cells.left.shape[2]
    times = np.zeros(ends.shape[1], np.int64)
    order = np.zeros(ends.shape[1], np.int64)
    left = np.zeros((cards, dims), np.int64)
    fits = np.zeros(cards, np.bool_)
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
        if wanted > able:
            continue
        ask = request.ask[kind]
        count = stays.used[row]
        for slot in range(count):
            when = expected(ends[row, slot], begun[row, slot], now, least, again)
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
            for dim in range(dims):
                left[card, dim] = cells.left[row, card, dim]
            usable = (allowed >> card) & 1
            fits[card] = usable and fits_card(left, card, whole, cells.full[kind, card, 1], ask)
            free += fits[card]
        at = 0
        moment = clock.begin
        while True:
            while at < count and times[at] <= moment:
                slot = order[at]
                cpu += stays.cpu[row, slot]
                room += stays.host[row, slot]
                held = masks[row, slot]
                for card in range(cards):
                    if (held >> card) & 1:
                        for dim in range(dims):
                            left[card, dim] += vectors[row, slot, dim]
                        usable = (allowed >> card) & 1
                        if usable and not fits[card]:
                            fits[card] = fits_card(left, card, whole, cells.full[kind, card, 1], ask)
                            free += fits[card]
                at += 1
            if free >= wanted and cpu >= request.cpu and room >= request.host:
                out[row] = moment
                for before in range(at):
                    slot = order[before]
                    last = lasting(ends[row, slot], begun[row, slot], now, least, again, moment)
                    until[row] = min(until[row], last)
                break
            if at == count:
                break
            moment = times[at]
            if moment >= clock.far:
                break
