"""How long a job is expected to run, and how long it may: what reservations and backfill reckon with.

Three words may be known of a job: its owner's estimate, a guess from jobs like it, and a limit after which it
is ended. Which of the first two counts is the policy's choice; the limit bounds both, and speaks where
neither is known. None is unknown, never now and never for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from aliquot.core.jobs import Job
from aliquot.core.settings import Settings, Source

if TYPE_CHECKING:  # records load arrays, and who only reads what a service says has no need of them
    from aliquot.core.records import JobRecord

LengthOf: TypeAlias = "Callable[[JobRecord], int | None]"


def length_by(settings: Settings) -> LengthOf:
    """How long a job is expected to run in ms, as the policy has it; None where nobody knows."""
    return _BY_SOURCE[settings.estimates.source]


def told(job: Job) -> int | None:
    """What its owner says: his estimate, bounded by the limit, which also speaks where he says nothing."""
    return _bounded(job.estimate_ms, job.limit_ms)


def must_end(record: JobRecord, length: LengthOf) -> int | None:
    """The longest that the job of `record` is reckoned to hold what it gets, in ms; None: no end is known.

    A limit is kept by whoever runs the job, so it counts before any estimate. A gang that starts with fewer
    members than it has takes longer in proportion; one that was stopped before begins with its restart.
    """
    job = record.job
    found = job.limit_ms
    if found is None:
        found = length(record)
        if found is not None and job.elastic is None and job.least < len(job.members):
            found = -(-found * len(job.members) // job.least)
    if found is None:
        return None
    return found + (job.stop.restart_ms if record.attempt > 1 and job.limit_ms is None else 0)


def _told(record: JobRecord) -> int | None:
    return told(record.job)


def _guessed(record: JobRecord) -> int | None:
    job, guess = record.job, record.guess_ms
    return _bounded(job.estimate_ms if guess is None else guess, job.limit_ms)


def _best(record: JobRecord) -> int | None:
    job = record.job
    return _bounded(record.guess_ms if job.estimate_ms is None else job.estimate_ms, job.limit_ms)


def _bounded(found: int | None, limit: int | None) -> int | None:
    if found is None or limit is None:
        return limit if found is None else found
    return min(found, limit)


_BY_SOURCE: dict[Source, LengthOf] = {Source.USER: _told, Source.HISTORY: _guessed, Source.BEST: _best}
