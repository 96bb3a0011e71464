"""Which jobs wait for which others to end, and what one end changes."""

from __future__ import annotations

from typing import NamedTuple

from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Job, When


class Freed(NamedTuple):
    """An edge of `job` that came true, or never can (`doomed`)."""

    job: JobId
    edge: After
    doomed: bool


class Edges:
    """How jobs ended, and who waits for those that have not."""

    def __init__(self) -> None:
        self.over: dict[JobId, bool] = {}  # ended: whether it succeeded
        self._behind: dict[JobId, list[tuple[JobId, After]]] = {}

    def add(self, job: Job) -> tuple[tuple[After, ...], JobId | None]:
        """(what still holds `job`, the job whose end dooms it)."""
        held, doomed = [], None
        for edge in job.after:
            succeeded = self.over.get(edge.on)
            if succeeded is None:
                held.append(edge)
            elif edge.when is When.SUCCEEDED and not succeeded:
                held.append(edge)
                doomed = doomed or edge.on
        self.hold(job.id, tuple(edge for edge in held if edge.on not in self.over))
        return tuple(held), doomed

    def hold(self, job: JobId, edges: tuple[After, ...]) -> None:
        """Note that `job` waits for the ends of `edges`."""
        for edge in edges:
            self._behind.setdefault(edge.on, []).append((job, edge))

    def end(self, job: JobId, *, succeeded: bool) -> list[Freed]:
        """`job` is over: the edges on it, in the order they were added."""
        self.over[job] = succeeded
        return [
            Freed(waiting, edge, edge.when is When.SUCCEEDED and not succeeded)
            for waiting, edge in self._behind.pop(job, ())
        ]
