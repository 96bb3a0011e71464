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
from aliquot.core.charging import amounts_of, capacity_of, flavours_of, names_of
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import HOLDING
from aliquot.core.promise import Answer, Crowding, Promise
from aliquot.core.queueing.quota import Book, open_book
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
    quotas = _quotas(world, settings) if configured else {}
    budgets = budget_views(world, settings, now)
    return [
        replace(
            _view(name, settings, own[name], promises, crowding),
            quotas=quotas.get(name, ()),
            is_configured=name in configured,
            budget=budgets.get(name),
        )
        for name in names or [DEFAULT_QUEUE]
    ]


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


def _quotas(world: Frozen, settings: Settings) -> dict[str, tuple[QuotaView, ...]]:
    """Of every configured queue what it has quotas of, and cards."""
    tree = grow_tree(settings.queues, capacity_of(world, settings))
    used = open_book(tree, _used(world, settings, tree))
    waiting = open_book(tree, _waiting(world, settings, tree))
    found = {}
    for queue in settings.queues:
        if queue.name == POOL:
            continue
        node = tree.node_of[queue.name]
        resources = dict.fromkeys([CARDS, *(quota.resource for quota in quotas_of(queue))])
        found[queue.name] = tuple(
            _quota(tree, used, waiting, node, resource) for resource in resources if resource in tree.slot
        )
    return found


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
        job = world.jobs[key[3]].job
        if job.members not in charges:
            flavour = flavours_of(job, world.kinds, tree, settings.rates, names)[0]
            charges[job.members] = {tree.resources[slot]: amount for slot, amount in flavour.charge}
        _add(sums, job.queue, charges[job.members])
    return sums


def _add(sums: _Sums, queue: str, amounts: Mapping[Resource, int]) -> None:
    own = sums[queue]
    for resource, amount in amounts.items():
        own[resource] = own.get(resource, 0) + amount
