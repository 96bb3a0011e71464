"""Idle jobs: who holds cards and does not use them is warned, and then stopped.

That cards are idle is measured, never guessed: without a measurement nothing happens. One that makes
checkpoints goes back to its queue and may go on later; one that makes none would lose everything each time,
so its end is final, with the reason told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen
from aliquot.core.settings import Idling
from aliquot.core.steps import Cause, Evict, Warn, Withdraw


class Judged(NamedTuple):
    """Steps, and when to look again (ms), or None."""

    steps: tuple[Warn | Evict | Withdraw, ...]
    wake_ms: int | None


def judge_idle(world: Frozen, rules: Idling | None, now: int, is_stopped: Callable[[JobId], bool]) -> Judged:
    """What is due for each idle job: nothing, a warning, or its end. Who must not be stopped is warned.

    Nothing without `rules`; nobody ends who `is_stopped` or changed by the same plan anyway.
    """
    steps: list[Warn | Evict | Withdraw] = []
    wakes: list[int] = []
    for job_id in world.idle if rules is not None else ():
        assert rules is not None
        record = world.jobs[job_id]
        if record.idle_ms is None or record.phase is not Phase.RUNNING:
            continue
        warn_at = record.idle_ms + rules.warn_after_ms
        if record.warned_ms is None:
            if now >= warn_at:
                steps.append(Warn(job_id, record.attempt))
            wakes.append(max(warn_at, now + 1))
            continue
        stop_at = max(
            record.idle_ms + rules.stop_after_ms,
            record.warned_ms + rules.stop_after_ms - rules.warn_after_ms,
        )
        if now < stop_at:
            wakes.append(stop_at)
        elif not record.job.stop.preemptible or is_stopped(job_id):
            continue
        elif record.job.stop.checkpoint_ms is not None:
            steps.append(Evict(job_id, record.attempt, Cause.IDLE, grace_ms=rules.grace_ms))
        else:
            minutes = (now - record.idle_ms) // 60_000
            steps.append(Withdraw(job_id, f"its cards were not used for {minutes} min"))
    return Judged(tuple(steps), min(wakes, default=None))
