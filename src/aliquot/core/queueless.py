"""Turns on a site without queues: the order of priority and submission."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from aliquot.core.charging import Flavour
from aliquot.core.ids import JobId
from aliquot.core.queues import Discipline
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Settings
from aliquot.core.steps import Lack

ANY_MODEL = Flavour("", ())


class PlainTurns:
    """By priority and submission; one queue for all."""

    budgets = None

    def __init__(self, world: Frozen, settings: Settings) -> None:
        self._jobs = world.jobs
        self._order = _ordered(world, by_priority=settings.by_priority)
        self._next = next(self._order, None)
        self._strict = settings.discipline is Discipline.STRICT
        self.is_closed = False

    def first(self) -> JobRecord | None:
        """Who goes next."""
        return None if self._next is None else self._jobs[self._next]

    def flavour(self, record: JobRecord) -> Flavour | Lack:
        """There are no quotas."""
        return ANY_MODEL

    def first_flavour(self, record: JobRecord) -> Flavour:
        """There are no quotas."""
        return ANY_MODEL

    def other_flavours(self, record: JobRecord, flavour: Flavour) -> Sequence[Flavour]:
        """There are no quotas."""
        return ()

    def admit(self, record: JobRecord, flavour: Flavour) -> None:
        """It starts."""
        self._next = next(self._order, None)

    def promise(self, record: JobRecord, flavour: Flavour) -> None:
        """It will start; room is made for those behind it too, in their order."""
        self._next = next(self._order, None)

    def charge(self, record: JobRecord, flavour: Flavour) -> None:
        """There are no quotas."""

    def hold(self, record: JobRecord) -> bool:
        """Nothing is promised."""
        return False

    def leave(self, record: JobRecord) -> None:
        """The next, or nobody."""
        if self._strict:
            self.close(record)
        else:
            self.pass_over(record)

    def pass_over(self, record: JobRecord) -> None:
        """The next."""
        self._next = next(self._order, None)

    def pass_over_alike(self, record: JobRecord) -> None:
        """The next: those alike are asked too, and refused by what the desk remembers."""
        self._next = next(self._order, None)

    def pass_over_charged(self, record: JobRecord) -> None:
        """The next: there are no quotas."""
        self._next = next(self._order, None)

    def drop(self, record: JobRecord, may_pass: Callable[[JobId | None, Hashable], bool]) -> None:
        """Those like it are asked too, to be told why they wait."""

    def restore(self) -> None:
        """Nobody was dropped."""

    def close(self, record: JobRecord) -> None:
        """All the others are given still, to be told why they wait."""
        self.is_closed = True
        self._next = next(self._order, None)

    def is_strict(self, record: JobRecord) -> bool:
        """As the policy says."""
        return self._strict

    def likeness(self, record: JobRecord) -> tuple[Hashable, bool]:
        """By what it asks; nobody is overdue where there are no reservations."""
        job = record.job
        return (job.members, job.minimum, job.groups, job.wish), False


def _ordered(world: Frozen, *, by_priority: bool) -> Iterator[JobId]:
    if by_priority:
        return (key[3] for key in world.pending)
    return (key[3] for key in sorted(world.pending, key=lambda key: key[1:]))
