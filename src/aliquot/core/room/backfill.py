"""Backfill: who may start now without making those wait longer who have waited long enough.

Jobs are looked at in line. One that fits starts. One that does not, and is entitled to it, gets a reservation
on concrete nodes at its shadow time; whoever comes later may start only if it is over by then or touches
nothing that is reserved. This is EASY backfill, with more than one reservation and a line that is not FIFO:

    overdue   jobs that have waited `overdue_ms` (`overdue_wide_ms` if they need a whole node): oldest first,
              each with a reservation while there are any left
    the rest  shortest work (estimate x cards) first; the first of them that does not fit is reserved for too

So short jobs wait little, and nobody waits without a date. Counts of free cards per node stand for the site:
exact where cards are alike and asked for whole, as in published traces. Estimates may be wrong: a backfilled
job must be over by the shadow even if it takes `doubt_milli` / 1000 times its estimate.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.shadow import FAR, choose_nodes, replay

HOUR_MS = 3_600_000


class Backfill(msgspec.Struct, frozen=True):
    """The rules. `EASY` and `FIFO` below are the textbook's two."""

    by_size: bool = True  # False: the line is by submit time
    overdue_ms: int = 18 * HOUR_MS
    overdue_wide_ms: int = 9 * HOUR_MS
    reservations: int = 8  # at most, in one pass
    first: int = 1  # of them, this many also for jobs not overdue
    doubt_milli: int = 3000
    pass_blocked: bool = True  # False: nothing starts behind a job that does not fit
    by_end: bool = True  # nodes where jobs end together, then best fit; False: best fit only


EASY = Backfill(
    by_size=False, overdue_ms=0, overdue_wide_ms=0, reservations=1, doubt_milli=1000, by_end=False
)
FIFO = Backfill(by_size=False, reservations=0, first=0, pass_blocked=False, by_end=False)
SKIP = Backfill(by_size=False, reservations=0, first=0, by_end=False)


class Running(NamedTuple):
    """What runs: expected ends in ms (FAR: unknown), and cards per row; unused parts have 0 cards."""

    end: I64  # [jobs]
    rows: I64  # [jobs, parts]
    cards: I64  # [jobs, parts]


class Waiting(NamedTuple):
    """Who waits, in any order. An estimate of -1 is unknown."""

    submitted: I64  # [jobs] ms
    cards: I64  # [jobs]
    estimate: I64  # [jobs] ms


class Decision(NamedTuple):
    """Per waiting job: started or not, or reserved from `at` on (-1: not), and the nodes of either."""

    started: npt.NDArray[np.bool_]  # [jobs]
    at: I64  # [jobs]
    rows: I64  # [jobs, parts]
    cards: I64  # [jobs, parts]


class Windows(NamedTuple):
    """Reservations that stand already, such as maintenance: cards per node from a time on, for good."""

    at: I64  # [windows] ms
    cards: I64  # [windows, nodes]


def decide(
    now: int,
    size: I64,
    free: I64,
    running: Running,
    waiting: Waiting,
    rules: Backfill = Backfill(),  # noqa: B008 - frozen
    windows: Windows | None = None,
) -> Decision:
    """One pass over `waiting` on nodes of `size` cards of which `free` are free [nodes]. Changes nothing.

    A job may have as many parts as `running.rows` has columns.
    """
    jobs, parts, nodes = len(waiting.cards), running.rows.shape[1], len(size)
    overdue = find_overdue(now, waiting, int(size.max(initial=0)), rules)
    order = line_up(waiting, overdue, rules)
    standing = 0 if windows is None else len(windows.at)
    room = standing + rules.reservations
    kept_at, kept = np.zeros(room, np.int64), np.zeros((room, nodes), np.int64)
    if windows is not None:
        kept_at[:standing], kept[:standing] = windows.at, windows.cards
    decision = Decision(
        np.zeros(jobs, np.bool_),
        np.full(jobs, -1, np.int64),
        np.zeros((jobs, parts), np.int64),
        np.zeros((jobs, parts), np.int64),
    )
    unknown = waiting.estimate < 0
    span = np.where(unknown, FAR, waiting.estimate)
    until = np.where(unknown, FAR + 1, now + waiting.estimate * rules.doubt_milli // 1000)
    _walk(
        now,
        size,
        free.copy(),
        running.end,
        running.rows,
        running.cards,
        order,
        waiting.cards,
        span,
        until,
        overdue,
        rules.first,
        rules.pass_blocked,
        rules.by_end,
        standing,
        kept_at,
        kept,
        *decision,
    )
    return decision


def find_overdue(now: int, waiting: Waiting, widest: int, rules: Backfill) -> npt.NDArray[np.bool_]:
    """[jobs] who has waited so long that size no longer counts; a node's `widest` cards and more are wide."""
    patience = np.where(waiting.cards >= widest, rules.overdue_wide_ms, rules.overdue_ms)
    return now - waiting.submitted >= patience


def line_up(waiting: Waiting, overdue: npt.NDArray[np.bool_], rules: Backfill) -> I64:
    """[jobs] indices in line; equal jobs in the order given. Unknown sizes stand behind known ones."""
    if not rules.by_size:
        return np.argsort(waiting.submitted, kind="stable")
    work = np.where(waiting.estimate < 0, FAR, np.maximum(waiting.estimate, 1) * waiting.cards)
    return np.lexsort((np.where(overdue, waiting.submitted, work), ~overdue))


@compiled
def _walk(
    now: int,
    size: I64,
    free: I64,
    end: I64,
    rows: I64,
    cards: I64,
    order: I64,
    want: I64,
    span: I64,
    until: I64,
    overdue: npt.NDArray[np.bool_],
    first: int,
    pass_blocked: bool,
    by_end: bool,
    known: int,
    kept_at: I64,
    kept: I64,
    started: npt.NDArray[np.bool_],
    at: I64,
    out_rows: I64,
    out_cards: I64,
) -> None:
    """The pass itself; `started`, `at`, `out_rows` and `out_cards` are its results."""
    nodes = size.shape[0]
    parts = out_rows.shape[1]
    runs = end.shape[0]
    ends = np.empty(runs + order.shape[0], np.int64)
    where = np.zeros((runs + order.shape[0], parts), np.int64)
    what = np.zeros((runs + order.shape[0], parts), np.int64)
    clear = np.full(nodes, now)
    ends[:runs] = end
    where[:runs] = rows
    what[:runs] = cards
    left = 0
    for row in range(nodes):
        left += free[row]
    for job in range(runs):
        for part in range(parts):
            if what[job, part] > 0:
                clear[where[job, part]] = max(clear[where[job, part]], end[job])
    spare = np.zeros(kept.shape, np.int64)
    for other in range(known):
        for row in range(nodes):
            spare[other, row] = free[row] - kept[other, row]
        for job in range(runs):
            if end[job] <= kept_at[other]:
                for part in range(parts):
                    spare[other, where[job, part]] += what[job, part]
        for earlier in range(known):
            if earlier != other and kept_at[earlier] <= kept_at[other]:
                for row in range(nodes):
                    spare[other, row] -= kept[earlier, row]
    room = np.zeros(nodes, np.int64)
    spots = np.zeros(parts, np.int64)
    sizes = np.zeros(parts, np.int64)
    standing = known
    for index in range(order.shape[0]):
        if left == 0 and known == kept_at.shape[0]:
            break
        job = order[index]
        count = 0
        if want[job] <= left:
            for row in range(nodes):
                room[row] = free[row]
                for other in range(known):
                    if until[job] > kept_at[other] and spare[other, row] < room[row]:
                        room[row] = spare[other, row]
            count = choose_nodes(room, size, clear, want[job], until[job] if by_end else 0, spots, sizes)
        if count > 0:
            started[job] = True
            left -= want[job]
            over = min(now + span[job], FAR)
            ends[runs] = over
            for part in range(count):
                row = spots[part]
                out_rows[job, part] = row
                out_cards[job, part] = sizes[part]
                where[runs, part] = row
                what[runs, part] = sizes[part]
                free[row] -= sizes[part]
                clear[row] = max(clear[row], over)
                for other in range(known):
                    if until[job] > kept_at[other]:
                        spare[other, row] -= sizes[part]
            runs += 1
            continue
        if not pass_blocked:
            break
        if known == kept_at.shape[0] or not (overdue[job] or known - standing < first):
            continue
        later = free.copy()
        when, count = replay(
            later,
            size,
            ends[:runs],
            np.argsort(ends[:runs]),
            where[:runs],
            what[:runs],
            kept_at,
            kept,
            spare,
            known,
            want[job],
            span[job],
            spots,
            sizes,
        )
        if count == 0:
            continue
        at[job] = when
        kept_at[known] = when
        for part in range(count):
            out_rows[job, part] = spots[part]
            out_cards[job, part] = sizes[part]
            # of several nodes each has to be empty, the last one too
            kept[known, spots[part]] = sizes[part] if count == 1 else size[spots[part]]
        for row in range(nodes):
            spare[known, row] = later[row] - kept[known, row]
        for other in range(known):
            for row in range(nodes):
                if kept_at[other] <= when:
                    spare[known, row] -= kept[other, row]
                elif when + span[job] > kept_at[other]:
                    spare[other, row] -= kept[known, row]
        known += 1
