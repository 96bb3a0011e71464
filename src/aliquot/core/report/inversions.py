"""Priority inversions: a job starts while an equal request of higher priority in its own queue waits.

Only requests that are equal in every member are compared, so whoever passes could not have been let through
for being smaller. It is a count of facts: ageing and a wait after a refusal are good reasons for some.
"""

from __future__ import annotations

from aliquot.core.jobs import Job, Request

Alike = tuple[str, tuple[Request, ...]]


class Inversions:
    """The waiting jobs, by queue and request, as counts of their priorities."""

    def __init__(self) -> None:
        self._waiting: dict[Alike, dict[int, int]] = {}

    def enter(self, job: Job) -> None:
        """`job` waits for its turn."""
        priorities = self._waiting.setdefault((job.queue, job.members), {})
        priorities[job.priority] = priorities.get(job.priority, 0) + 1

    def leave(self, job: Job) -> None:
        """`job`, which entered, waits no more."""
        alike = (job.queue, job.members)
        priorities = self._waiting[alike]
        priorities[job.priority] -= 1
        if not priorities[job.priority]:
            del priorities[job.priority]
            if not priorities:
                del self._waiting[alike]

    def passes(self, job: Job) -> bool:
        """Whether an equal request of higher priority in the queue of `job` waits."""
        priorities = self._waiting.get((job.queue, job.members))
        return priorities is not None and max(priorities) > job.priority
