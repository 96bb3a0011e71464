"""Jobs that can't start on what is here now, however long they wait: told at once, though they are kept.

A card may come, and a quota may be raised, so such a job is no mistake. But whoever asks for nine cards of
eight wants to know it when he submits it. What is only in use by others is none of this.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from msgspec.structs import replace

from aliquot.control.views import Never
from aliquot.core.inventory import NodeKind, accepts
from aliquot.core.jobs import Job, Link, Request
from aliquot.core.memo import Memo
from aliquot.core.nearness import find_never_near
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.steps import Lack

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
    narrow = _narrowest(job)
    desk = Desk(world, settings, memo)
    barred = [request for request in narrow.members if desk.never(request)]
    if len(narrow.members) - len(barred) < narrow.least:
        return _of_node(barred[0], world.kinds)
    most = max((desk.cards_for(request) for request in narrow.members if request.whole), default=0)
    asked = sum(sorted(request.cards if request.whole else 0 for request in narrow.members)[: narrow.least])
    if asked > most:
        return Never("all cards", asked, most)
    if (near := find_never_near(desk, narrow)) is not None:
        return Never("near", near.need, near.most, near=near)
    if narrow is not job or narrow.least < len(job.members):
        return None  # what it is charged for at its least is known once it has it
    return _of_quota(job, world, settings, memo, now)


def _likeness(job: Job) -> Hashable:
    return job.members, job.queue, job.elastic, job.minimum, job.groups, job.wish


def _narrowest(job: Job) -> Job:
    """An elastic job of one member at its first width."""
    if job.elastic is None or len(job.members) > 1:
        return job
    return replace(job.sized(job.elastic.widths[0]), elastic=None)


def _of_node(request: Request, kinds: Sequence[NodeKind]) -> Never:
    """What every node lacks of `request`, the first that alone is enough to say no."""
    models = [model for kind in kinds for model in kind.cards]
    right = [[model for model in kind.cards if accepts(request.profile, model)] for kind in kinds]
    if request.cards and not any(right):
        names = tuple(dict.fromkeys(model.name for model in models))
        return Never("model", wanted=request.profile.models, have=names)
    wide = max(map(len, right), default=0)
    memory = max((model.usable_mib for each in right for model in each), default=0)
    needs = (
        ("memory", request.ask.memory_mib or 0, memory),
        ("cards", request.cards if request.distinct or request.whole else 0, wide),
        ("cpu", request.cpu_milli, max(kind.cpu_milli for kind in kinds)),
        ("host", request.host_mib, max(kind.host_mib for kind in kinds)),
    )
    lacks, need, most = next((part for part in needs if part[1] > part[2]), ("together", 0, 0))
    if lacks == "together" and request.link is Link.REQUIRED:
        return Never("links", request.cards)
    return Never(lacks, need, most) if need else Never(lacks)


def _of_quota(job: Job, world: Frozen, settings: Settings, memo: Memo, now: int) -> Never | None:
    """Its queue can never have so much, whatever else runs or ends; None where it may, or nobody knows."""
    record = world.jobs.get(job.id)
    if record is None or not settings.queues or all(key[3] != job.id for key in world.pending):
        return None
    lack = memo.standing.turns(world, settings, now).flavour(record)
    if not isinstance(lack, Lack):
        return None
    return Never("quota", lack.need, lack.most, lack=lack) if lack.is_for_ever else None
