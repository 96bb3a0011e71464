"""Queues as people see them: what each may have, what it uses and borrows, what waits and runs in it.

A queue counts with all below it. What quotas are about is worked out as the planner does it, from the same
world; without configured queues there are only names that jobs gave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from aliquot.control.chronicle import Life
from aliquot.control.purses import budget_views
from aliquot.control.views import QueueView, QuotaView
from aliquot.core.charging import amounts_of, at_least, capacity_of, flavours_of, names_of
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import HOLDING
from aliquot.core.promise import Answer, Crowding, Promise
from aliquot.core.queueing.overcommit import Excess, Overcommit, overcommit_sentence
from aliquot.core.queueing.quota import Book, concerning, find_overcommits, open_book
from aliquot.core.queueing.tree import UNBOUNDED, QueueTree, grow_tree
from aliquot.core.queues import CARDS, POOL, Queue, Resource, ancestors_by_path, parent_of, quotas_of
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings

DEFAULT_QUEUE: Final = "default"
_Sums = dict[str, dict[Resource, int]]


def queue_views(
    world: Frozen,
    settings: Settings,
    lives: Sequence[Life],
    now: int,
    promises: Mapping[JobId, Promise] = MappingProxyType({}),
    crowding: Crowding | None = None,
) -> list[QueueView]:
    """Configured queues in their order, then others that are in use; `promises` of those that wait.

    `now` in ms of the engine's time, for what is counted by the month.
    """
    living = [life for life in lives if life.over_ms is None]
    configured = {queue.name: queue for queue in settings.queues}
    own: dict[str, list[Life]] = defaultdict(list)
    for life in living:
        for name in _line_of(life.job.queue or DEFAULT_QUEUE, configured):
            own[name].append(life)
    names = [name for name in configured if name != POOL]
    names += sorted(name for name in own if name not in configured)
    books = _Books(world, settings) if configured else None
    over = find_overcommits(books.used) if books is not None else ()
    budgets = budget_views(world, settings, now)
    return [
        replace(
            _view(name, settings, own[name], promises, crowding),
            quotas=books.quotas(configured[name]) if books is not None and name in configured else (),
            is_configured=name in configured,
            budget=budgets.get(name),
            overcommits=concerning(over, books.tree, name) if books is not None else (),
        )
        for name in names or [DEFAULT_QUEUE]
    ]


def overcommits_of(world: Frozen, settings: Settings, queue: str) -> tuple[Overcommit, ...]:
    """What jobs of `queue` feel of too much being promised or used: in it, above it, or in the pool."""
    if not settings.queues:
        return ()
    tree = grow_tree(settings.queues, capacity_of(world, settings))
    return concerning(find_overcommits(open_book(tree, _used(world, settings, tree))), tree, queue)


def notes_on_queues(world: Frozen, settings: Settings) -> list[str]:
    """What a person should know of what runs and waits once `settings` are in force, one sentence each.

    What is promised too much is no part of it: that is known of the documents, whatever runs.
    """
    if not settings.queues:
        return []
    tree = grow_tree(settings.queues, capacity_of(world, settings))
    found = find_overcommits(open_book(tree, _used(world, settings, tree)))
    used = [overcommit_sentence(over) for over in found if over.excess is Excess.USED]
    return [*lost_queues(world, settings), *used]


def lost_queues(world: Frozen, settings: Settings) -> list[str]:
    """What becomes of jobs whose queue is in no document any more, one sentence for each such queue."""
    known = {queue.name for queue in settings.queues}
    known |= {above for name in known for above in ancestors_by_path(name)}
    named = {record.job.queue for record in world.jobs.values()}
    return [
        f"queue {name} is in no document any more: its jobs stay, and count in {_home(name, known)}"
        for name in sorted(named - known if settings.queues else ())
    ]


def _home(name: str, known: Container[str]) -> str:
    above = next(above for above in ancestors_by_path(name) if above == POOL or above in known)
    return f"queue {above}" if above else "the pool, behind all quotas"


def _line_of(name: str, configured: Mapping[str, Queue]) -> Iterator[str]:
    """The queue itself and those configured ones that are above it."""
    yield name
    at = name
    while at != POOL and (at in configured or "/" in at):
        at = parent_of(configured.get(at, Queue(at)))
        if at != POOL and at in configured:
            yield at


def _view(
    name: str,
    settings: Settings,
    lives: Sequence[Life],
    promises: Mapping[JobId, Promise],
    crowding: Crowding | None,
) -> QueueView:
    holding = [life for life in lives if life.phase in HOLDING]
    held = sum(
        len(hold.cards) * hold.compute_milli
        for life in holding
        for hold in (life.attempts[-1].holds if life.attempts else ())
    )
    answers = [promises[life.job.id].answer for life in lives if life.job.id in promises]
    return QueueView(
        name=name,
        priority=settings.queue_priority(name),
        waiting=len(lives) - len(holding),
        running=len(holding),
        cards_milli=held,
        at_risk=answers.count(Answer.AT_RISK),
        cannot=answers.count(Answer.CANNOT),
        crowding=crowding,
    )


class _Books:
    """The configured queues as the planner compiles them, with what is used and asked for in each."""

    def __init__(self, world: Frozen, settings: Settings) -> None:
        self.tree = grow_tree(settings.queues, capacity_of(world, settings))
        self.used = open_book(self.tree, _used(world, settings, self.tree))
        self.waiting = open_book(self.tree, _waiting(world, settings, self.tree))

    def quotas(self, queue: Queue) -> tuple[QuotaView, ...]:
        """What `queue` has quotas of, and cards."""
        node = self.tree.node_of[queue.name]
        resources = dict.fromkeys([CARDS, *(quota.resource for quota in quotas_of(queue))])
        return tuple(
            _quota(self.tree, self.used, self.waiting, node, resource)
            for resource in resources
            if resource in self.tree.slot
        )


def _quota(tree: QueueTree, used: Book, waiting: Book, node: int, resource: Resource) -> QuotaView:
    slot = tree.slot[resource]
    nominal, total = tree.entitled[node][slot], used.total[node][slot]
    most = nominal + tree.headroom[node][slot]
    return QuotaView(
        resource=str(resource),
        nominal=nominal,
        used=total,
        borrowed=max(0, total - nominal),
        waiting=waiting.total[node][slot],
        maximum=None if most >= UNBOUNDED else most,
    )


def _used(world: Frozen, settings: Settings, tree: QueueTree) -> _Sums:
    names = names_of(world.kinds, tree)
    sums: _Sums = defaultdict(dict)
    for (queue, _), asked in world.usage.items():
        _add(sums, queue, amounts_of([asked], tree, settings.rates, names))
    return sums


def _waiting(world: Frozen, settings: Settings, tree: QueueTree) -> _Sums:
    """What those who wait would be charged on the first cards that would do; once for jobs alike."""
    names = names_of(world.kinds, tree)
    charges: dict[object, dict[Resource, int]] = {}
    sums: _Sums = defaultdict(dict)
    for key in world.pending:
        job = at_least(world.jobs[key[3]].job)
        if job.members not in charges:
            flavour = flavours_of(job, world.kinds, tree, settings.rates, names)[0]
            charges[job.members] = {tree.resources[slot]: amount for slot, amount in flavour.charge}
        _add(sums, job.queue, charges[job.members])
    return sums


def _add(sums: _Sums, queue: str, amounts: Mapping[Resource, int]) -> None:
    own = sums[queue]
    for resource, amount in amounts.items():
        own[resource] = own.get(resource, 0) + amount
