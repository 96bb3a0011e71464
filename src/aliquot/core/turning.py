"""Which turns a pass is given: the plain order, or those of a queue tree that is kept from plan to plan."""

from __future__ import annotations

from aliquot.core.charging import capacity_of
from aliquot.core.ids import JobId
from aliquot.core.queueless import PlainTurns
from aliquot.core.queues import Resource
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.standing import Standing
from aliquot.core.turns import TreeTurns, Turns


class StandingMemo:
    """The one `Standing` a memo keeps."""

    def __init__(self) -> None:
        self._standing: Standing | None = None
        self._nodes: object = None
        self._capacity: dict[Resource, int] = {}

    def turns(self, world: Frozen, settings: Settings, now: int) -> Turns:
        """Turns for one pass over `world`."""
        if not needs_tree(settings):
            return PlainTurns(world, settings)
        known = self._standing is not None and _same(self._standing.settings, settings)
        if self._nodes is not world.nodes or not known:
            self._capacity = capacity_of(world, settings)
            self._nodes = world.nodes
        standing = self._standing
        if (
            standing is None
            or not _same(standing.settings, settings)
            or standing.capacity != self._capacity
            or standing.kinds != world.kinds
            or now < standing.now
        ):
            standing = Standing(world, settings, self._capacity)
            self._standing = standing
        standing.book.rollback(0)
        standing.sync(world, now)
        return TreeTurns(world, standing)


def _same(one: Settings, other: Settings) -> bool:
    return one is other or one == other


def needs_tree(settings: Settings) -> bool:
    """Whether more than priority and submission decides who goes next."""
    ordered = settings.order.by_size or settings.order.aging_ms
    return bool(settings.queues or settings.backfill or settings.preemption or ordered)


def line_up(turns: Turns) -> list[JobId]:
    """All who wait, in the order a pass looks at them while none of them starts. Uses `turns` up."""
    line = []
    while (record := turns.first()) is not None:
        line.append(record.job.id)
        turns.pass_over(record)
    return line
