"""Whether a waiting job is ready for a turn at all, and which jobs get the same answer in theirs."""

from __future__ import annotations

from aliquot.core.jobs import Job
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.steps import Gate, Wait, Withdraw


def hold_back(
    record: JobRecord, world: Frozen, now: int, started: dict[str, int] | None = None
) -> Wait | Withdraw | None:
    """What keeps a job from having a turn. `started` counts jobs of arrays that start in this pass."""
    job = record.job
    if record.doomed is not None:
        return Withdraw(job.id, f"job {record.doomed} did not succeed", (record.doomed,))
    if record.not_before_ms > now:
        return Wait(job.id, Gate.BACKOFF, until_ms=record.not_before_ms)
    if record.waits_for:
        return Wait(job.id, Gate.DEPENDENCY, others=tuple(edge.on for edge in record.waits_for))
    array = job.array
    if array is not None and array.width is not None:
        under_way = world.arrays.get(array.name, 0) + (started or {}).get(array.name, 0)
        if under_way >= array.width:
            return Wait(job.id, Gate.ARRAY)
    return None


def alike(job: Job) -> tuple[object, ...]:
    """Jobs for which this is equal fit in the same places."""
    how = (job.scatter, job.spread, job.elastic, job.minimum, job.groups, job.wish, job.together)
    return (job.members, *how)
