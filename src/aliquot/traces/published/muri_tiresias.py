"""Tiresias-L as the Muri authors simulate it: three queues by attained card-time, node fit ignored.

Inside a queue the first comes first. A job goes to the end of the next queue when its time so far x cards
passes 3,250 and 7,200 card-seconds; a running job's passing is an event of its own. Cards are counted over
the whole cluster. After each event the pending jobs of a queue stand behind its running ones.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.errors import SpecError
from aliquot.core.placement.kernels.jit import compiled
from aliquot.traces.published.muri_model import CARDS, F64, Columns

LIMITS_CARD_S = (3250, 7200)
ROUNDING_CARD_S = 1e-6
Flags = npt.NDArray[np.bool_]


def replay_tiresias(columns: Columns, capacity: int = CARDS) -> F64:
    """[jobs] seconds from submission to the end of each."""
    jobs = len(columns.cards)
    left, had, ended = columns.iterations.copy(), np.zeros(jobs), np.zeros(jobs)
    level, runs = np.zeros(jobs, np.int64), np.zeros(jobs, np.bool_)
    queues: list[I64] = [np.empty(0, np.int64) for _ in range(len(LIMITS_CARD_S) + 1)]
    arrived, now, jump = 0, 0.0, math.inf
    while arrived < jobs or any(len(queue) for queue in queues):
        active = np.sort(np.concatenate(queues))
        running = active[runs[active]]
        ends = now + left[running] * columns.alone_s[running]
        first_end = ends.min(initial=np.inf)
        first_start = columns.submitted_s[arrived] if arrived < jobs else np.inf
        at = min(first_end, first_start, jump)
        if math.isinf(at):
            raise SpecError("a job is wider than the cluster", field="capacity", value=capacity)
        jumps = jump < min(first_end, first_start)
        if not jumps and first_end <= first_start:
            gone = running[ends == at]
            ended[gone], runs[gone] = at, False
            queues = [queue[~np.isin(queue, gone)] for queue in queues]
            running = running[ends != at]
        left[running] -= np.maximum(at - now - columns.overhead_s[running], 0.0) / columns.alone_s[running]
        had[running] += at - now
        if not jumps and first_start <= first_end:
            last = int(np.searchsorted(columns.submitted_s, at, side="right"))
            queues[0] = np.concatenate([queues[0], np.arange(arrived, last)])
            arrived = last
        _demote(queues, running, level, had * columns.cards)
        now = at
        _run(queues, columns.cards, runs, capacity)
        jump = _next_jump(queues, runs, had, columns.cards, now)
    return ended - columns.submitted_s


def _demote(queues: list[I64], running: I64, level: I64, card_s: F64) -> None:
    """Move running jobs that passed their queue's limit to the end of the next, one queue at a time."""
    for job in running:
        at = int(level[job])
        if at < len(LIMITS_CARD_S) and card_s[job] >= LIMITS_CARD_S[at] - ROUNDING_CARD_S:
            queues[at] = queues[at][queues[at] != job]
            queues[at + 1] = np.append(queues[at + 1], job)
            level[job] = at + 1


def _run(queues: list[I64], cards: I64, runs: Flags, capacity: int) -> None:
    """Who runs now, and the order in each queue afterwards."""
    free = capacity
    for at, queue in enumerate(queues):
        free = _pass(queue, cards, runs, free)
        queues[at] = np.concatenate([queue[runs[queue]], queue[~runs[queue]]])


@compiled
def _pass(queue: I64, cards: I64, runs: Flags, free: int) -> int:
    for job in queue:
        runs[job] = cards[job] <= free
        if runs[job]:
            free -= cards[job]
    return free


def _next_jump(queues: list[I64], runs: Flags, had: F64, cards: I64, now: float) -> float:
    """When the next running job passes its limit, rounded up to whole seconds of its run time."""
    found = math.inf
    for queue, limit in zip(queues, LIMITS_CARD_S, strict=False):
        running = queue[runs[queue]]
        due = np.ceil(limit / cards[running]) - had[running] + now
        found = min(found, float(due.min(initial=np.inf)))
    return found
