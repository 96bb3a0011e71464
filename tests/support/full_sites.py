"""Sites full of running jobs, told by hand, and what a clearing finds there for one that waits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aliquot.core.charging import capacity_of
from aliquot.core.clearing import Cleared, Clearing
from aliquot.core.events import Evicting, Outcome
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.jobs import Request
from aliquot.core.memo import Memo
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Preemption, Settings
from aliquot.core.siting import Desk
from aliquot.core.slices import Vector
from aliquot.core.standing import Standing
from aliquot.core.steps import Resize
from aliquot.core.turning import needs_tree
from tests.support.build import a_request, node_id
from tests.support.planning import settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE
ANY_TIME = Preemption()


def at_place(
    site: WorldBuilder,
    node: str,
    slots: Iterable[int] = (),
    vector: Vector | None = None,
    *,
    cpu: int = 0,
    host: int = 0,
) -> Placement:
    """Cards in `slots` of a node of `site`, whole where no vector is given."""
    cards = tuple(site.world.nodes[node_id(node)].node.cards[at] for at in slots)
    booked = vector or (Vector(1000, cards[0].model.usable_mib, 1000) if cards else Vector(0, 0, 0))
    whole = vector is None and bool(cards)
    return Placement(node_id(node), tuple(card.uuid for card in cards), booked, whole, cpu, host)


def runs(
    site: WorldBuilder,
    name: str,
    *places: tuple[str, Iterable[int]] | Placement,
    request: Request | None = None,
    **job: Any,
) -> None:
    """A job that has been running since now: whole cards of nodes, or placements as given."""
    there = [place if isinstance(place, Placement) else at_place(site, *place) for place in places]
    members = [request or a_request(len(place.cards)) for place in there]
    site.submit(name, members, **job).granted(name, *there).started(name)


def singles(site: WorldBuilder, node: str, cards: int = 8, **job: Any) -> list[str]:
    """A one-card job on each card of a node, named after it."""
    names = [f"{node}-{at}" for at in range(cards)]
    for at, name in enumerate(names):
        runs(site, name, (node, [at]), **job)
    return names


def a_quota(name: str, nominal: int, **more: Any) -> Queue:
    """A queue with so many whole cards of its own."""
    limits = {key: more.pop(key) * 1000 for key in ("borrowing", "lending", "maximum") if key in more}
    return Queue(name, quotas=(Quota(CARDS, nominal=nominal * 1000, **limits),), **more)


def clearing(
    site: WorldBuilder, rules: Preemption = ANY_TIME, queues: tuple[Queue, ...] = (), **how: Any
) -> Clearing:
    """What one plan could clear now."""
    return clearing_at(site, rules, queues, **how)[0]


def clearing_at(
    site: WorldBuilder, rules: Preemption = ANY_TIME, queues: tuple[Queue, ...] = (), **how: Any
) -> tuple[Clearing, Desk]:
    """The same with its desk."""
    policy: Settings = settings(queues=queues, preemption=rules, **how)
    world = site.frozen
    desk = Desk(world, policy, Memo())
    if not needs_tree(policy):
        return Clearing(desk, world, rules, None, None, site.at), desk
    standing = Standing(world, policy, capacity_of(world, policy))
    standing.sync(world, site.at)
    return Clearing(desk, world, rules, standing.tree, standing.book, site.at), desk


def cleared(
    site: WorldBuilder,
    name: str,
    rules: Preemption = ANY_TIME,
    queues: tuple[Queue, ...] = (),
    **how: Any,
) -> Cleared | None:
    """What would be stopped now for the job `name`."""
    return clearing(site, rules, queues, **how).clear(site.job(name))


def victims(found: Cleared | None) -> list[str] | None:
    """Their names, sorted; None where the job can't be let in."""
    return None if found is None else sorted(victim.job for victim in found.victims)


def carry_out(site: WorldBuilder, name: str, found: Cleared) -> None:
    """Stop the victims, or let them go on narrower, and start the job where it was to sit."""
    for victim in found.victims:
        if isinstance(victim, Resize):
            site.check(victim).started(victim.job)
            assert site.verdict.refused == ()
            continue
        site.happen(Evicting(site.at, victim.job, victim.attempt, victim.cause, JobId(name), 0))
        site.ended(victim.job, Outcome.FAILED, victim.attempt)
    desk = Desk(site.frozen, settings(), Memo())
    site.granted(name, *(desk.placement(seat.seat) for seat in found.seats)).started(name)
