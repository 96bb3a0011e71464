"""Whether a waiting job is ready for a turn at all, and which jobs get the same answer in theirs."""

from __future__ import annotations

from aliquot.core.jobs import Job
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Settings
from aliquot.core.steps import Gate, Short, Wait, Withdraw


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
            return Wait(job.id, Gate.ARRAY, short=Short("array", array.width, under_way))
    return None


def alike(job: Job) -> tuple[object, ...]:
    """Jobs for which this is equal fit in the same places."""
    how = (job.scatter, job.spread, job.elastic, job.minimum, job.groups, job.wish, job.together)
    return (job.members, *how)


def may_refuse_alike(job: Job, rules: Settings) -> bool:
    """Whether jobs like `job`, for which there is no room, cannot start in the same pass either.

    Where nothing is kept from some of them and not from others.
    """
    plain = rules.backfill is None and rules.preemption is None and rules.defrag is None
    plain = plain and (rules.colocation is None or job.together is None)
    movable = rules.rescue.share > 0 or (rules.scatter and job.scatter) or job.elastic is not None
    return plain and not movable and job.least == len(job.members) and not job.is_sited
