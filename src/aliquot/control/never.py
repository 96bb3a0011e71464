"""Jobs that can't start on what is here now, however long they wait: told at once, though they are kept.

A card may come, and a quota may be raised, so such a job is no mistake. But whoever asks for nine cards of
eight wants to know it when he submits it. What is only in use by others is none of this.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from aliquot.core.jobs import Job
from aliquot.core.memo import Memo
from aliquot.core.never import find_never as never_held
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.steps import Lack, Never

MOST_KNOWN: Final = 1000  # kinds of jobs whose answer is remembered


class Nevers:
    """Answers by what is asked for, as long as nodes and settings stay what they were.

    `known` may be asked from any thread; `find` by the one that `memo` belongs to.
    """

    def __init__(self) -> None:
        self._of: tuple[object, object] = (None, None)
        self._found: dict[Hashable, Never | None] = {}

    def is_known(self, job: Job, world: Frozen, settings: Settings) -> bool:
        """Whether `find` would look nothing up."""
        return self._is_of(world, settings) and _likeness(job) in self._found

    def find(self, job: Job, world: Frozen, settings: Settings, memo: Memo, now: int) -> Never | None:
        """Why `job`, which waits in `world`, can't start as things are; None: it can, or nobody knows."""
        key = _likeness(job)
        if not self._is_of(world, settings) or len(self._found) >= MOST_KNOWN:
            self._found, self._of = {}, (world.nodes, settings)
        if key not in self._found:
            self._found[key] = find_never(job, world, settings, memo, now)
        return self._found[key]

    def _is_of(self, world: Frozen, settings: Settings) -> bool:
        nodes, of = self._of
        return nodes is world.nodes and of is settings


def find_never(job: Job, world: Frozen, settings: Settings, memo: Memo, now: int) -> Never | None:
    """The same, looked up: room first, then quota."""
    if not world.nodes:
        return None
    found = never_held(Desk(world, settings, memo), job)
    if found is not None or job.elastic is not None or job.least < len(job.members):
        return found  # what it is charged for at its least is known once it has it
    return _of_quota(job, world, settings, memo, now)


def _likeness(job: Job) -> Hashable:
    return job.members, job.queue, job.elastic, job.minimum, job.groups, job.wish, job.scatter


def _of_quota(job: Job, world: Frozen, settings: Settings, memo: Memo, now: int) -> Never | None:
    """Its queue can never have so much, whatever else runs or ends; None where it may, or nobody knows."""
    record = world.jobs.get(job.id)
    if record is None or not settings.queues or all(key[3] != job.id for key in world.pending):
        return None
    lack = memo.standing.turns(world, settings, now).flavour(record)
    if not isinstance(lack, Lack):
        return None
    return Never("quota", lack.need, lack.most, lack=lack) if lack.is_for_ever else None
