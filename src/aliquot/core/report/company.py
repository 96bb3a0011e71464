"""Who shares cards with whom as the meter sees it: the world's own division of them, and who works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from aliquot.core.company import Companies, Held, divide
from aliquot.core.events import Granted
from aliquot.core.grants import NOTHING, Placement
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.report.lives import Life, Lives

Places = Mapping[JobId, Sequence[Placement]]


class Company:
    """All companies of one run."""

    def __init__(self) -> None:
        self._companies = Companies()

    def join(self, event: Granted, places: Places, lives: Lives) -> Held:
        """What those hold from now on to whom the job of `event` comes; all are counted as sharing."""
        held = {job: tuple(places[job]) for job in event.beside}
        held[event.job] = tuple(replace(place, vector=NOTHING) for place in event.placements)
        self._companies.join(event.job, event.beside)
        for job in held:
            life = lives.open[job]
            life.cell.together += not life.together
            life.together = True
        parts = divide(held, _memories(held, lives))
        return {job: parts[job] for job in event.beside}

    def leave(self, job: JobId, places: Places, lives: Lives) -> Held:
        """What those hold from now on who stay where `job` was."""
        rest = self._companies.leave(job)
        held = {other: tuple(places[other]) for other in rest}
        return divide(held, _memories(held, lives), places[job]) if held else {}

    def workers(self, job: Job, lives: Lives) -> list[Job]:
        """Who runs on the cards of `job`, itself included."""
        group = self._companies.groups.get(job.id)
        return [] if group is None else [life.job for life in _running(group, lives)]

    def others(self, job: JobId, lives: Lives) -> list[Life]:
        """Who else runs on the cards of `job`."""
        group = self._companies.groups.get(job, ())
        return [life for life in _running(group, lives) if life.job.id != job]


def _running(group: Sequence[JobId], lives: Lives) -> list[Life]:
    return [life for job in group if (life := lives.open[job]).phase is Phase.RUNNING]


def _memories(held: Held, lives: Lives) -> dict[JobId, int]:
    found = {job: lives.open[job].job.together for job in held}
    return {job: together.memory_mib for job, together in found.items() if together is not None}
