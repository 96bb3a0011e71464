"""Backfill played forward on counts: when each waiting job would start if nobody else came.

The same pass as `backfill.decide`, made again at every expected end until all who are asked for have started,
but nothing is built anew between two passes: who runs stays sorted by its end, who waits in both of its
orders, and a moment at which nobody who waits could fit is passed over. A loop around `decide` is its plain
twin, and finds the same starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.placement.kernels.jit import compiled
from aliquot.core.room.backfill import Waiting, reserve, work_of
from aliquot.core.room.counts import Kept, Running, choose_nodes, leave_alone
from aliquot.core.room.shadow import FAR
from aliquot.core.settings import Backfill

_BREATH: Final = 32  # moments between two looks at whether to stop


class _Crowd(NamedTuple):
    """Who waits, all at once and in both orders; `asked` are those it is played for."""

    submitted: I64  # [jobs] ms
    cards: I64  # [jobs]
    told: I64  # [jobs] ms; -1: unknown
    length: I64  # [jobs] ms that it will really run; -1: for ever
    asked: npt.NDArray[np.bool_]  # [jobs]
    by_time: I64  # [jobs] those still waiting come first
    by_work: I64  # [jobs]
    counts: I64  # [cards] how many still wait for so many cards


class _Ground(NamedTuple):
    """What runs, on which nodes. `order`: by end, from `state.head` to `state.tail`."""

    size: I64  # [nodes]
    free: I64  # [nodes]
    clear: I64  # [nodes] when all that runs there is over
    end: I64  # [runs]
    rows: I64  # [runs, parts]
    cards: I64  # [runs, parts]
    order: I64  # [runs]


class _Rules(NamedTuple):
    by_size: bool
    overdue: int
    overdue_wide: int
    widest: int
    reservations: int
    first: int
    doubt: int
    pass_blocked: bool
    by_end: bool


_NOW, _HEAD, _TAIL, _RUNS, _WAITING, _ASKED, _OVER = range(7)


def foresee(
    now: int,
    size: I64,
    free: I64,
    running: Running,
    waiting: Waiting,
    rules: Backfill = Backfill(),  # noqa: B008 - a frozen value
    wanted: I64 | None = None,
    stop: Callable[[], bool] = lambda: False,
    lengths: I64 | None = None,
) -> I64:
    """[jobs] when each waiting job would start if nobody else came and all ended as expected; -1 if never.

    The pass of `now` included. A first guess for `queueing.outlook`, not a promise: newcomers may pass.
    `wanted`: only these jobs are asked for, and the others may be left at -1. So are those that are not
    reached before `stop` says so, which is asked every few moments. `lengths` [jobs]: how long each will run,
    in ms, where that is not what was told of it (None); order and shadows go by what was told.
    """
    jobs, live = len(waiting.cards), len(running.end)
    starts = np.full(jobs, -1, np.int64)
    if not jobs or not len(size):
        return starts
    asked = np.ones(jobs, np.bool_) if wanted is None else np.isin(np.arange(jobs), wanted)
    crowd = _crowd_of(waiting, waiting.estimate if lengths is None else lengths, asked)
    ground = _ground_of(now, size, free, running, jobs)
    _note_ends(ground, live)
    kind = _rules_of(rules, int(size.max(initial=0)))
    state = np.array([now, 0, live, live, jobs, int(asked.sum()), 0], np.int64)
    while state[_ASKED] and not state[_OVER] and not stop():
        _play(crowd, ground, kind, state, starts, _BREATH)
    return starts


def _crowd_of(waiting: Waiting, lengths: I64, asked: npt.NDArray[np.bool_]) -> _Crowd:
    return _Crowd(
        *waiting,
        lengths,
        asked,
        np.argsort(waiting.submitted, kind="stable"),
        np.argsort(work_of(waiting), kind="stable"),
        np.bincount(waiting.cards).astype(np.int64),
    )


def _ground_of(now: int, size: I64, free: I64, running: Running, jobs: int) -> _Ground:
    """With room for so many `jobs` behind what runs."""
    more = ((0, jobs), (0, 0))
    return _Ground(
        size,
        free.copy(),
        np.full(len(size), now),
        np.pad(running.end, more[:1]),
        np.pad(running.rows, more),
        np.pad(running.cards, more),
        np.pad(np.argsort(running.end, kind="stable"), more[:1]),
    )


def _rules_of(rules: Backfill, widest: int) -> _Rules:
    return _Rules(
        rules.by_size,
        rules.overdue_ms,
        rules.overdue_wide_ms,
        widest,
        rules.reservations,
        rules.first,
        rules.doubt_milli,
        rules.pass_blocked,
        rules.by_end,
    )


@compiled
def _note_ends(ground: _Ground, live: int) -> None:
    """When each node is clear of what runs there."""
    for run in range(live):
        for part in range(ground.rows.shape[1]):
            if ground.cards[run, part] > 0:
                row = ground.rows[run, part]
                ground.clear[row] = max(ground.clear[row], ground.end[run])


@compiled
def _play(crowd: _Crowd, ground: _Ground, rules: _Rules, state: I64, starts: I64, moments: int) -> None:
    """So many moments more; `state` is where it stands."""
    for _ in range(moments):
        now = state[_NOW]
        if _may_start(ground, crowd.counts):
            for row in range(ground.clear.shape[0]):
                ground.clear[row] = max(ground.clear[row], now)
            before = state[_RUNS]
            _pass(crowd, ground, rules, state, starts)
            if state[_RUNS] > before:
                _close_up(crowd, state, starts)
        if state[_ASKED] == 0:
            return
        head, tail = state[_HEAD], state[_TAIL]
        if head == tail or ground.end[ground.order[head]] >= FAR:
            state[_OVER] = 1
            return
        now = max(now, ground.end[ground.order[head]])
        while head < tail and ground.end[ground.order[head]] <= now:
            run = ground.order[head]
            for part in range(ground.rows.shape[1]):
                ground.free[ground.rows[run, part]] += ground.cards[run, part]
            head += 1
        state[_NOW], state[_HEAD] = now, head


@compiled
def _may_start(ground: _Ground, counts: I64) -> bool:
    """Whether any of the widths that are waited for could fit, reservations not counted."""
    most, empty = 0, 0
    for row in range(ground.free.shape[0]):
        most = max(most, ground.free[row])
        if ground.free[row] == ground.size[row]:
            empty += ground.size[row]
    reach = max(most, empty)
    for cards in range(min(reach, counts.shape[0] - 1) + 1):  # noqa: SIM110 - numba compiles loops, not generators
        if counts[cards] > 0:
            return True
    return False


@compiled
def _is_overdue(crowd: _Crowd, job: int, now: int, rules: _Rules) -> bool:
    patience = rules.overdue_wide if crowd.cards[job] >= rules.widest else rules.overdue
    return bool(now - crowd.submitted[job] >= patience)


@compiled
def _line_up(crowd: _Crowd, waiting: int, now: int, rules: _Rules) -> I64:
    """Those still waiting, in line."""
    if not rules.by_size:
        return crowd.by_time[:waiting].copy()
    line = np.empty(waiting, np.int64)
    count = 0
    for at in range(waiting):
        if _is_overdue(crowd, crowd.by_time[at], now, rules):
            line[count] = crowd.by_time[at]
            count += 1
    for at in range(waiting):
        if not _is_overdue(crowd, crowd.by_work[at], now, rules):
            line[count] = crowd.by_work[at]
            count += 1
    return line


@compiled
def _pass(crowd: _Crowd, ground: _Ground, rules: _Rules, state: I64, starts: I64) -> None:
    """One pass, as `backfill` makes it; it ends once nobody behind could start."""
    now, nodes, parts = state[_NOW], ground.size.shape[0], ground.rows.shape[1]
    most = rules.reservations
    kept = Kept(
        np.zeros(most, np.int64), np.zeros((most, nodes), np.int64), np.zeros((most, nodes), np.int64)
    )
    room = np.zeros(nodes, np.int64)
    idle = np.zeros(nodes, np.int64)
    rows, cards = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    behind = crowd.counts.copy()
    left = ground.free.sum()
    known = 0
    for job in _line_up(crowd, state[_WAITING], now, rules):
        want, told = crowd.cards[job], crowd.told[job]
        behind[want] -= 1
        until = FAR + 1 if told < 0 else now + told * rules.doubt // 1000
        found = 0
        if want <= left:
            room[:] = ground.free
            for other in range(known):
                if until > kept.at[other]:
                    room[:] = np.minimum(room, kept.spare[other])
            clear = ground.clear if rules.by_end else idle
            found = choose_nodes(room, ground.size, clear, want, until if rules.by_end else 0, rows, cards)
        if found > 0:
            starts[job] = now
            crowd.counts[want] -= 1
            left -= want
            length = crowd.length[job]
            _start(ground, state, FAR if length < 0 else min(now + max(length, 1), FAR), rows, cards, found)
            for other in range(known):
                if until > kept.at[other]:
                    for part in range(found):
                        kept.spare[other, rows[part]] -= cards[part]
            if crowd.asked[job]:
                state[_ASKED] -= 1
            if state[_ASKED] == 0 or not _may_start(ground, behind):
                return
        elif not rules.pass_blocked:
            return
        elif known < rules.reservations and (known < rules.first or _is_overdue(crowd, job, now, rules)):
            if not _may_start(ground, behind):
                return
            span = FAR if told < 0 else told
            later = ground.free.copy()
            when, found = _replay(later, ground, state, kept, known, want, span, rows, cards)
            if found > 0:
                reserve(ground.size, later, kept, known, when, span, rows[:found], cards[:found])
                known += 1


@compiled
def _start(ground: _Ground, state: I64, end: int, rows: I64, cards: I64, found: int) -> None:
    """Book one that runs until `end`, in its place among those who run."""
    run = state[_RUNS]
    ground.end[run] = end
    for part in range(found):
        row = rows[part]
        ground.rows[run, part], ground.cards[run, part] = row, cards[part]
        ground.free[row] -= cards[part]
        ground.clear[row] = max(ground.clear[row], end)
    low, high = state[_HEAD], state[_TAIL]
    while low < high:
        middle = (low + high) // 2
        if ground.end[ground.order[middle]] <= end:
            low = middle + 1
        else:
            high = middle
    for place in range(state[_TAIL], low, -1):
        ground.order[place] = ground.order[place - 1]
    ground.order[low] = run
    state[_RUNS] += 1
    state[_TAIL] += 1


@compiled
def _replay(
    later: I64,
    ground: _Ground,
    state: I64,
    kept: Kept,
    known: int,
    want: int,
    span: int,
    rows: I64,
    cards: I64,
) -> tuple[int, int]:
    """(ms, parts) of the earliest start of `want` cards for `span` ms beside `known` reservations, or (0, 0).

    As `counts.replay`, with ends that are sorted already. `later` becomes what is free then.
    """
    room, idle = np.zeros_like(later), np.zeros_like(later)
    place, tail = state[_HEAD], state[_TAIL]
    while place < tail:
        now = ground.end[ground.order[place]]
        helps = False
        while place < tail and ground.end[ground.order[place]] == now:
            run = ground.order[place]
            for part in range(ground.rows.shape[1]):
                if ground.cards[run, part] == 0:
                    continue
                row = ground.rows[run, part]
                later[row] += ground.cards[run, part]
                if later[row] >= min(want, ground.size[row]):
                    helps = True
            place += 1
        if not helps:
            continue
        room[:] = later
        leave_alone(room, kept, known, now, span)
        found = choose_nodes(room, ground.size, idle, want, 0, rows, cards)
        if found > 0:
            return now, found
    return 0, 0


@compiled
def _close_up(crowd: _Crowd, state: I64, starts: I64) -> None:
    """Who has started leaves both orders."""
    kept, other = 0, 0
    for at in range(state[_WAITING]):
        if starts[crowd.by_time[at]] < 0:
            crowd.by_time[kept] = crowd.by_time[at]
            kept += 1
        if starts[crowd.by_work[at]] < 0:
            crowd.by_work[other] = crowd.by_work[at]
            other += 1
    state[_WAITING] = kept
