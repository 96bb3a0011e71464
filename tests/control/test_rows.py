"""A row of a list of jobs says what the whole summary says, as far as it goes."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import fields

from aliquot.control.rows import JobRow, ResizeRow, StartRow, decode_rows
from aliquot.control.views import JobSummary, ResizeView
from aliquot.core.queueing.outlook import Expected, Unsaid
from aliquot.interfaces.cli.job_rows import job_lines

WAITS = JobSummary("7", "train", 1000, "ann", "lab/a", 3, "pending", 8, 1, 60_000)
JOBS = [
    WAITS,
    msgspec.structs.replace(WAITS, expected=Expected(at_ms=None, unsaid=Unsaid.TOO_FAR)),
    msgspec.structs.replace(WAITS, expected=Expected(90_000, low_ms=80_000, middle_ms=90_000, high_ms=10**7)),
    msgspec.structs.replace(WAITS, phase="running", started_ms=70_000, width=4),
    msgspec.structs.replace(WAITS, phase="stopping", started_ms=70_000, resizing=ResizeView(8, 4, 5, "9")),
    msgspec.structs.replace(WAITS, phase="failed", started_ms=1, over_ms=80_000, exit_status=3),
    msgspec.structs.replace(WAITS, phase="failed", over_ms=80_000, exit_status=143, reason="time-limit"),
    msgspec.structs.replace(WAITS, phase="running", counts={"running": 3, "pending": 97}),
]


@pytest.mark.parametrize("jobs", [JOBS, JOBS[:1], JOBS[3:], []], ids=["all", "one", "none waits", "none"])
def test_rows_print_as_summaries_do(jobs: list[JobSummary]) -> None:
    lines = job_lines(decode_rows(msgspec.json.encode(jobs)))
    assert lines == job_lines(jobs)
    assert len(lines) == (len(jobs) + 1 if jobs else 1)


@pytest.mark.parametrize(
    ("part", "whole"), [(JobRow, JobSummary), (StartRow, Expected), (ResizeRow, ResizeView)], ids=str
)
def test_a_row_is_a_part_of_what_the_service_says(
    part: type[msgspec.Struct], whole: type[msgspec.Struct]
) -> None:
    said = {field.name for field in fields(whole)}
    assert {field.name for field in fields(part)} <= said
