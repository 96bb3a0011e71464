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

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.counts import Kept, Running, choose_nodes, replay
from aliquot.core.room.shadow import FAR
from aliquot.core.settings import Backfill


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
    rules: Backfill = Backfill(),  # noqa: B008 - a frozen value
    windows: Windows | None = None,
) -> Decision:
    """One pass over `waiting` on nodes of `size` cards of which `free` are free [nodes]. Changes nothing.

    A job may have as many parts as `running.rows` has columns.
    """
    jobs, parts = len(waiting.cards), running.rows.shape[1]
    overdue = find_overdue(now, waiting, int(size.max(initial=0)), rules)
    unknown = waiting.estimate < 0
    line = _Line(
        order=line_up(waiting, overdue, rules),
        cards=waiting.cards,
        span=np.where(unknown, FAR, waiting.estimate),
        until=np.where(unknown, FAR + 1, now + waiting.estimate * rules.doubt_milli // 1000),
        overdue=overdue,
    )
    kept = _kept(windows, len(size), rules.reservations)
    decision = Decision(
        started=np.zeros(jobs, np.bool_),
        at=np.full(jobs, -1, np.int64),
        rows=np.zeros((jobs, parts), np.int64),
        cards=np.zeros((jobs, parts), np.int64),
    )
    table = _room_for_more(running, jobs)
    standing = 0 if windows is None else len(windows.at)
    site = _Site(size, free.copy(), np.full(len(size), now))
    _walk(now, site, table, len(running.end), line, kept, standing, _Bounds(*_bounds(rules)), decision)
    return decision


def find_overdue(now: int, waiting: Waiting, widest: int, rules: Backfill) -> npt.NDArray[np.bool_]:
    """[jobs] who has waited so long that size no longer counts; a node's `widest` cards and more are wide."""
    patience = np.where(waiting.cards >= widest, rules.overdue_wide_ms, rules.overdue_ms)
    return now - waiting.submitted >= patience


def line_up(waiting: Waiting, overdue: npt.NDArray[np.bool_], rules: Backfill) -> I64:
    """[jobs] indices in line; equal jobs in the order given. Unknown sizes stand behind known ones."""
    if not rules.by_size:
        return np.argsort(waiting.submitted, kind="stable")
    return np.lexsort((np.where(overdue, waiting.submitted, work_of(waiting)), ~overdue))


def work_of(waiting: Waiting) -> I64:
    """[jobs] estimate x cards, ms; FAR where it is unknown."""
    return np.where(waiting.estimate < 0, FAR, np.maximum(waiting.estimate, 1) * waiting.cards)


class _Site(NamedTuple):
    """The nodes during a pass: cards, free cards, and when all that runs there is expected to be over."""

    size: I64
    free: I64
    clear: I64


class _Line(NamedTuple):
    """The waiting jobs: in which order, what they want, for how long, until when at the latest."""

    order: I64
    cards: I64
    span: I64
    until: I64
    overdue: npt.NDArray[np.bool_]


class _Bounds(NamedTuple):
    first: int
    pass_blocked: bool
    by_end: bool


def _bounds(rules: Backfill) -> tuple[int, bool, bool]:
    return rules.first, rules.pass_blocked, rules.by_end


def _kept(windows: Windows | None, nodes: int, more: int) -> Kept:
    """The standing reservations, with room for `more`; what they leave is counted in the pass."""
    standing = 0 if windows is None else len(windows.at)
    size = standing + more
    kept = Kept(np.zeros(size, np.int64), *np.zeros((2, size, nodes), np.int64))
    if windows is not None:
        kept.at[:standing], kept.cards[:standing] = windows.at, windows.cards
    return kept


def _room_for_more(running: Running, jobs: int) -> Running:
    """`running` with `jobs` empty lines behind it, for what starts in this pass."""
    return Running(*(np.concatenate((old, np.zeros((jobs, *old.shape[1:]), np.int64))) for old in running))


@compiled
def _walk(
    now: int,
    site: _Site,
    running: Running,
    count: int,
    line: _Line,
    kept: Kept,
    known: int,
    bounds: _Bounds,
    decision: Decision,
) -> None:
    """The pass itself: `decision` is its result, everything else its scratch."""
    for job in range(count):
        for part in range(running.rows.shape[1]):
            if running.cards[job, part] > 0:
                row = running.rows[job, part]
                site.clear[row] = max(site.clear[row], running.end[job])
    _spare_standing(site, running, count, kept, known)
    standing = known
    room = np.zeros_like(site.free)
    left = site.free.sum()
    for job in line.order:
        if left == 0 and known == kept.at.shape[0]:
            break
        rows, cards = decision.rows[job], decision.cards[job]
        found = 0
        if line.cards[job] <= left:
            room[:] = site.free
            for other in range(known):
                if line.until[job] > kept.at[other]:
                    room[:] = np.minimum(room, kept.spare[other])
            until = line.until[job] if bounds.by_end else 0
            found = choose_nodes(room, site.size, site.clear, line.cards[job], until, rows, cards)
        if found > 0:
            decision.started[job] = True
            left -= line.cards[job]
            running.end[count] = min(now + line.span[job], FAR)
            running.rows[count] = rows
            running.cards[count] = cards
            _start(site, running, count, kept, known, line.until[job])
            count += 1
        elif not bounds.pass_blocked:
            break
        elif known < kept.at.shape[0] and (line.overdue[job] or known - standing < bounds.first):
            later = site.free.copy()
            when, found = replay(
                later, site.size, running, count, kept, known, line.cards[job], line.span[job], rows, cards
            )
            if found > 0:
                decision.at[job] = when
                reserve(site.size, later, kept, known, when, line.span[job], rows[:found], cards[:found])
                known += 1


@compiled
def _spare_standing(site: _Site, running: Running, count: int, kept: Kept, known: int) -> None:
    """What each standing reservation leaves to others at its time."""
    for one in range(known):
        spare = kept.spare[one]
        spare[:] = site.free
        for job in range(count):
            if running.end[job] <= kept.at[one]:
                for part in range(running.rows.shape[1]):
                    spare[running.rows[job, part]] += running.cards[job, part]
        for other in range(known):
            if kept.at[other] <= kept.at[one]:
                spare -= kept.cards[other]


@compiled
def _start(site: _Site, running: Running, job: int, kept: Kept, known: int, until: int) -> None:
    """Book the started `job`; reservations that begin before it must be over have that much less to spare."""
    for part in range(running.rows.shape[1]):
        cards = running.cards[job, part]
        if cards > 0:
            row = running.rows[job, part]
            site.free[row] -= cards
            site.clear[row] = max(site.clear[row], running.end[job])
            for other in range(known):
                if until > kept.at[other]:
                    kept.spare[other, row] -= cards


@compiled
def reserve(size: I64, later: I64, kept: Kept, new: int, when: int, span: int, rows: I64, cards: I64) -> None:
    """Write reservation `new` from `when`, where `later` is free. Of several nodes each has to be empty."""
    kept.at[new] = when
    for part in range(rows.shape[0]):
        kept.cards[new, rows[part]] = cards[part] if rows.shape[0] == 1 else size[rows[part]]
    kept.spare[new] = later - kept.cards[new]
    for other in range(new):
        if kept.at[other] <= when:
            kept.spare[new] -= kept.cards[other]
        elif when + span > kept.at[other]:
            kept.spare[other] -= kept.cards[new]
