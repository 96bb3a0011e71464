"""Jobs as rows. Ten thousand of them are to be there before a person wonders, so each takes little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aliquot.interfaces.cli.plain import age, lay_out, now_ms
from aliquot.interfaces.cli.rough import starts_in

if TYPE_CHECKING:
    from aliquot.control.rows import JobRow
    from aliquot.control.views import JobSummary

    Job = JobSummary | JobRow


def job_lines(jobs: Sequence[Job]) -> list[str]:
    """One row per job; the last column where a start is expected of any."""
    if not jobs:
        return ["no jobs"]
    now = now_ms()
    table = {
        "ID": [job.id for job in jobs],
        "NAME": [job.name for job in jobs],
        "USER": [job.user for job in jobs],
        "QUEUE": [job.queue for job in jobs],
        "PRIORITY": [str(job.priority) for job in jobs],
        "CARDS": [cards_of(job) for job in jobs],
        "PHASE": [counts_of(job) for job in jobs],
        "FOR": [age(now - (job.over_ms or job.started_ms or job.submitted_ms)) for job in jobs],
        "EXIT": [exit_of(job) for job in jobs],
    }
    if any(job.expected is not None for job in jobs):
        table["STARTS IN"] = [starts_in(job.expected, now) for job in jobs]
    return lay_out([[head, *cells] for head, cells in table.items()])


def counts_of(job: Job) -> str:
    """Its phase; of an array how many are how far, such as `3 running, 97 pending`."""
    if job.resizing is not None:
        return f"{job.phase} ({job.resizing.was} to {job.resizing.width})"
    if job.counts is None:
        return job.phase
    return ", ".join(f"{count} {phase}" for phase, count in job.counts.items())


def exit_of(job: Job) -> str:
    """Its exit code once it is over, and what ended it where that is known, such as `143 time-limit`."""
    code = "" if job.exit_status is None else str(job.exit_status)
    return f"{code} {job.reason}".strip()


def cards_of(job: Job) -> str:
    """The cards it holds, of those it asks for, where it is narrower; else those it asks for."""
    if job.width is None:
        return str(job.cards)
    held = job.width if job.members == 1 else job.cards * job.width // job.members
    return str(job.cards) if held == job.cards else f"{held} of {job.cards}"
