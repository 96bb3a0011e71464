"""Where blocked jobs start, on counts of free cards per node: kernels for histories of many thousand jobs.

Apart from `shadow`, which a service of one machine needs, so that it need not load a compiler for these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from aliquot.core.columns import I64
from aliquot.core.placement.kernels.jit import compiled


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
