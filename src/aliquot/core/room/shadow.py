"""When a blocked job could start, and where: the shadow it throws on those behind it.

The running jobs' expected ends are replayed in order on a copy of what is free, until the job fits; the nodes
it then gets are concrete, so a later job knows exactly what to leave alone. `earliest_start` does this on any
board (the ledger's draft, with cards, memory and wiring); `replay` on counts of free cards per node.

Expected ends are guesses. A job that has outrun its estimate is expected to need as long again as it has run
so far, plus a minute: with estimates wrong by up to ten times this halves the worst wait against a fixed
minute. Unknown is FAR, never now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

import numpy as np

from aliquot.core.columns import I64
from aliquot.core.ids import JobId
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.settings import Overrun

FAR: Final = 2**60
"""An end that nobody knows, in ms."""

T = TypeVar("T")


class Running(NamedTuple):
    """What runs: expected ends in ms (FAR: unknown), and cards per row; unused parts have 0 cards."""

    end: I64  # [jobs]
    rows: I64  # [jobs, parts]
    cards: I64  # [jobs, parts]


class Kept(NamedTuple):
    """Reservations by counts: from `at` on `cards` of each node are kept, and `spare` are left to others."""

    at: I64  # [reservations] ms
    cards: I64  # [reservations, nodes]
    spare: I64  # [reservations, nodes]


class Hold(NamedTuple):
    """Cards (bits of `mask`) of one row, kept from `at_ms` on for a job, or for maintenance: `job` None."""

    row: int
    mask: int
    at_ms: int
    job: JobId | None = None


def expected_end(started_ms: int, estimate_ms: int | None, now: int, overrun: Overrun = Overrun()) -> int:  # noqa: B008 - a frozen value
    """When a job that runs since `started_ms` is expected to be over: after `now`, FAR where unknown."""
    if estimate_ms is None:
        return FAR
    end = started_ms + estimate_ms
    if end > now:
        return end
    return now + overrun.least_ms + (now - started_ms) * overrun.again_milli // 1000


def earliest_start(
    ends: Iterable[tuple[int, JobId]],
    give_back: Callable[[JobId], None],
    try_seat: Callable[[], T | None],
) -> tuple[int, T] | None:
    """(ms, seat) of the first end after which `try_seat` finds one; None if it never does.

    `ends` are the running jobs' expected ends. `give_back` frees what a job holds on the caller's copy; jobs
    that end at one moment are given back together. The caller rolls its copy back afterwards.
    """
    waiting = sorted(ends)
    for at, (end, job) in enumerate(waiting):
        give_back(job)
        if at + 1 < len(waiting) and waiting[at + 1][0] == end:
            continue
        seat = try_seat()
        if seat is not None:
            return end, seat
    return None


def closed_cards(holds: Iterable[Hold], row: int, until_ms: int | None) -> int:
    """The cards of `row` that a job which ends at `until_ms` must leave alone (None: its end is unknown)."""
    mask = 0
    for hold in holds:
        if hold.row == row and (until_ms is None or until_ms > hold.at_ms):
            mask |= hold.mask
    return mask


@compiled
def choose_nodes(room: I64, size: I64, clear: I64, cards: int, until: int, rows: I64, parts: I64) -> int:
    """Where `cards` go: writes row and cards of each part, returns how many parts; 0 if they do not fit.

    Up to a node's size on one node: where the job keeps the node busy least beyond `clear`, the end of all
    that runs there, and then where least is left. More on whole empty nodes, the last of them in part.
    """
    nodes = room.shape[0]
    best = -1
    longer = 0
    for row in range(nodes):
        if room[row] < cards:
            continue
        extra = max(until - clear[row], 0)
        if best < 0 or extra < longer or (extra == longer and room[row] < room[best]):
            best = row
            longer = extra
    if best >= 0:
        rows[0] = best
        parts[0] = cards
        return 1
    count = 0
    left = cards
    for row in range(nodes):
        if count == rows.shape[0]:
            break
        if size[row] > 0 and room[row] == size[row] and size[row] < cards:
            rows[count] = row
            parts[count] = min(left, size[row])
            left -= parts[count]
            count += 1
            if left == 0:
                return count
    parts[:] = 0
    return 0


@compiled
def replay(
    free: I64,
    size: I64,
    running: Running,
    count: int,
    kept: Kept,
    known: int,
    cards: int,
    span: int,
    rows: I64,
    parts: I64,
) -> tuple[int, int]:
    """(ms, parts) of the earliest start of `cards` for `span` ms beside `known` reservations; else (0, 0).

    `free` [nodes] becomes what is free then, reservations not counted. Of `running` the first `count` run.
    """
    room = free.copy()
    idle = np.zeros_like(free)  # with an end of 0 no node is kept busy any longer: only the fit counts
    order = np.argsort(running.end[:count])
    at = 0
    while at < count:
        now = running.end[order[at]]
        helps = False
        while at < count and running.end[order[at]] == now:
            job = order[at]
            for part in range(running.rows.shape[1]):
                row = running.rows[job, part]
                free[row] += running.cards[job, part]
                if running.cards[job, part] > 0 and free[row] >= min(cards, size[row]):
                    helps = True
            at += 1
        if not helps:
            continue
        room[:] = free
        leave_alone(room, kept, known, now, span)
        found = choose_nodes(room, size, idle, cards, 0, rows, parts)
        if found > 0:
            return now, found
    return 0, 0


@compiled
def leave_alone(room: I64, kept: Kept, known: int, now: int, span: int) -> None:
    """Take from `room`, what is free at `now`, what reservations need of it until `now` + `span`."""
    for other in range(known):
        if kept.at[other] <= now:
            room -= kept.cards[other]
    for other in range(known):
        if now < kept.at[other] < now + span:
            room[:] = np.minimum(room, kept.spare[other])
