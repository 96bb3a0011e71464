"""The ids of a live site's jobs: `12`, and `12_3` for the job of index 3 in the array `12`.

An array's number is that of its first job, so numbers go on behind its last. What is stored beside the jobs
of an array is the same for all, and is kept once, under the array's own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from aliquot.control.views import JobSummary
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.outlook import Expected

SEPARATOR: Final = "_"
_FURTHEST: Final = ("running", "stopping", "starting", "pending", "failed", "cancelled", "succeeded")


def task_id(array: str, index: int) -> JobId:
    """The id of the job of `index` in `array`."""
    return JobId(f"{array}{SEPARATOR}{index}")


def array_of(job: str) -> str:
    """The array of a job by its id; "" for a job of none."""
    array, separator, _ = job.partition(SEPARATOR)
    return array if separator else ""


def index_of(job: str) -> int | None:
    """Its index there; None for a job of none."""
    _, _, index = job.partition(SEPARATOR)
    return int(index) if index.isdigit() else None


def body_id(job: JobId) -> JobId:
    """Under which id what lies beside `job` is kept."""
    return JobId(array_of(job) or job)


def numbered(job: Job, number: int, array: str, index: int | None, now: int) -> Job:
    """`job`, accepted at `now` as the `number`-th, in `array` where it has an `index`."""
    if index is None or job.array is None:
        return replace(job, id=JobId(str(number)), seq=number, submitted_ms=now)
    own = replace(job.array, name=array)
    return replace(job, id=task_id(array, index), seq=number, submitted_ms=now, array=own, replica_of=array)


def fold(rows: Sequence[JobSummary]) -> list[JobSummary]:
    """The same rows with one for each array, where its first job stood."""
    of_array: dict[str, list[JobSummary]] = {}
    for row in rows:
        if row.array:
            of_array.setdefault(row.array, []).append(row)
    folded, done = [], set()
    for row in rows:
        if not row.array:
            folded.append(row)
        elif row.array not in done:
            done.add(row.array)
            folded.append(_fold(row.array, of_array[row.array]))
    return folded


def _fold(array: str, rows: Sequence[JobSummary]) -> JobSummary:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.phase] = counts.get(row.phase, 0) + 1
    over = [row.over_ms for row in rows if row.over_ms is not None]
    is_over = len(over) == len(rows)
    codes = [row.exit_status for row in rows if row.exit_status is not None]
    failed = next((row for row in rows if row.exit_status or row.phase == Phase.FAILED.value), None)
    reasons = [row.reason for row in rows if row.reason] if failed is None else [failed.reason]
    expected = [row.expected for row in rows if row.expected is not None and row.expected.at_ms is not None]
    return replace(
        rows[0],
        id=array,
        phase=next(phase for phase in _FURTHEST if phase in counts),
        counts=counts,
        started_ms=min((row.started_ms for row in rows if row.started_ms is not None), default=None),
        over_ms=max(over) if is_over else None,
        exit_status=(0 if failed is None else failed.exit_status) if is_over and codes else None,
        reason=next(iter(reasons), "") if is_over else "",
        expected=min(expected, key=_at, default=None) if Phase.PENDING.value in counts else None,
    )


def _at(expected: Expected) -> int:
    return expected.at_ms or 0
