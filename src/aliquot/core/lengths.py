"""How long a job is expected to run, and how long it may: what reservations and backfill reckon with.

Three words may be known of a job: its owner's estimate, a guess from jobs like it, and a limit after which it
is ended. Which of the first two counts is the policy's choice; the limit bounds both, and speaks where
neither is known. None is unknown, never now and never for ever.

A word is meant for an elastic job at its first width, and for a gang with all its members: wider it is over
sooner, with fewer members later. The limit is kept at any width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from aliquot.core.jobs import Job, Request
from aliquot.core.settings import Settings, Source
from aliquot.core.tide import asked_milli, milli_of
from aliquot.core.units import FULL

if TYPE_CHECKING:  # records load arrays, and who only reads what a service says has no need of them
    from aliquot.core.records import Asked, JobRecord

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


def at_width(record: JobRecord, width: int) -> JobRecord:
    """The job of `record` as one that has this width for good: cards, or members of a gang.

    What its owner says is meant for the first width of an elastic job (8 h are 2 h where it is four times as
    fast), and for all members of a gang (with 2 of 3 they are 12 h). What jobs like it ran, at whatever width
    they had, counts as it is.
    """
    job = record.job
    if job.elastic is not None:
        slow, fast = job.elastic.speeds_milli[0], job.elastic.speed(width)
    elif 0 < width < len(job.members):
        slow, fast = FULL, max(1, FULL * width // len(job.members))  # as `pace` has it
    else:
        return record
    estimate = None if job.estimate_ms is None else -(-job.estimate_ms * slow // fast)
    return replace(record, job=replace(job.sized(width), elastic=None, estimate_ms=estimate))


def as_charged(record: JobRecord, asked: tuple[Asked, ...]) -> JobRecord:
    """`at_width` of the width for which it is charged `asked`; as it is written where that does not tell."""
    job = record.job
    if job.elastic is None and (len(job.members) == 1 or job.least == len(job.members)):
        return record
    milli = sum(part.milli for part in asked)
    if job.elastic is not None:
        alike = (width for width in job.elastic.widths if asked_milli(job.sized(width)) == milli)
        return at_width(record, next(alike, job.elastic.widths[0]))
    if asked_milli(job) == milli:
        return record
    return at_width(record, _count_for(job.members, milli))


@lru_cache(maxsize=1 << 10)
def _count_for(members: tuple[Request, ...], milli: int) -> int:
    """How many of the first `members` ask for so many milli-cards; 0: none do."""
    sums = accumulate(milli_of((request,)) for request in members)
    return next((at for at, each in enumerate(sums, 1) if each == milli), 0)


def ends_at(record: JobRecord, length: LengthOf) -> int | None:
    """When the attempt under way of `record` is expected to be over, at the width it has; None: nobody knows.

    What it did before its width last changed is reckoned as at its slowest, so it may be over sooner.
    """
    now, ran = length(as_charged(record, record.asked)), record.resized_ms - record.granted_ms
    if now is None:
        return None
    end = record.granted_ms + now
    if ran > 0:
        elastic = record.job.elastic
        slow = length(at_width(record, record.job.least if elastic is None else elastic.widths[0])) or 1
        end = record.resized_ms + now * max(0, slow - ran) // slow
    return end if record.job.limit_ms is None else min(end, record.granted_ms + record.job.limit_ms)


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
