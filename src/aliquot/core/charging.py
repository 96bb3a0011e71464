"""What a waiting job would be charged, before anything says which cards it gets.

A job that accepts cards of several models may be charged differently on each: eight cards of any kind are
another sum of memory, compute and money on 80 GB cards than on 40 GB ones. Then the model is chosen with the
quota, in the order the site's kinds joined, and the job is placed on cards of that model only. Where every
model costs the same, nothing is narrowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.accounts import ask_of
from aliquot.core.inventory import CardModel, NodeKind, accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.queueing.quota import Charge, charge_of
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.queues import CARDS, COMPUTE, MEMORY, MONEY, Measure, Resource, quotas_of
from aliquot.core.records import Asked, Frozen
from aliquot.core.settings import Rates, Settings
from aliquot.core.units import FULL


class Flavour(NamedTuple):
    """One way to charge a job. `model` narrows its placement; "" leaves it as asked."""

    model: str
    charge: Charge


def capacity_of(world: Frozen, settings: Settings) -> dict[Resource, int]:
    """What the nodes that are up have in all, of what somebody has a quota for, and of cards and memory.

    Compute is left out, and so unbounded, where a model has no rate; money has no capacity.
    """
    milli: dict[CardModel, int] = {}
    for record in world.nodes.values():
        if record.up:
            for model in world.kinds[record.kind].cards:
                milli[model] = milli.get(model, 0) + FULL
    capacity = {
        CARDS: sum(milli.values()),
        MEMORY: sum(model.usable_mib * cards // FULL for model, cards in milli.items()),
    }
    named = {quota.resource for queue in settings.queues for quota in quotas_of(queue)}
    for resource in sorted(named, key=str):
        if resource.measure is Measure.CARDS and resource.model:
            capacity[resource] = sum(cards for model, cards in milli.items() if _named(model, resource.model))
    rates = dict(settings.rates.compute_milli)
    if COMPUTE in named and all(model.name in rates for model in milli):
        capacity[COMPUTE] = sum(cards * rates[model.name] // FULL for model, cards in milli.items())
    return capacity


def amounts_of(asked: Sequence[Asked], tree: QueueTree, rates: Rates, names: Names) -> dict[Resource, int]:
    """What quotas count for `asked`, by resource; compute and money only where the model has a rate."""
    amounts: dict[Resource, int] = {}
    compute, money = dict(rates.compute_milli), dict(rates.cents_a_month)
    for part in asked:
        _add(amounts, CARDS, part.milli)
        _add(amounts, MEMORY, part.mib)
        for resource in names.get(part.model, ()):
            _add(amounts, resource, part.milli)
        if COMPUTE in tree.slot and part.model in compute:
            _add(amounts, COMPUTE, -(-part.milli * compute[part.model] // FULL))
        if MONEY in tree.slot and part.model in money:
            _add(amounts, MONEY, -(-part.milli * money[part.model] // FULL))
    return amounts


Names = dict[str, tuple[Resource, ...]]


def names_of(kinds: Sequence[NodeKind], tree: QueueTree) -> Names:
    """The per-model card resources of `tree` that cards of each model of `kinds` count for."""
    own = [resource for resource in tree.resources if resource.measure is Measure.CARDS and resource.model]
    models = {model for kind in kinds for model in kind.cards}
    return {
        model.name: tuple(resource for resource in own if _named(model, resource.model)) for model in models
    }


def flavours_of(
    job: Job, kinds: Sequence[NodeKind], tree: QueueTree, rates: Rates, names: Names
) -> tuple[Flavour, ...]:
    """The ways to charge `job`, at least one; a job no card serves is charged for cards and what it wrote.

    Models that differ only in what nobody has a quota of are one way: such a job may have any of them.
    """
    models = _accepted(job.members, kinds)
    found: dict[Charge, Flavour] = {}  # by what of the charge is limited
    for model in models:
        asked = ask_of(job.members, tuple(_member_model(request, model, kinds) for request in job.members))
        charge = charge_of(tree, amounts_of(asked, tree, rates, names))
        counts = tuple((slot, amount) for slot, amount in charge if slot in tree.limited)
        found.setdefault(counts, Flavour(model.name, charge))
    if not found:
        milli = sum(request.cards * FULL for request in job.members)
        mib = sum(request.cards * (request.ask.memory_mib or 0) for request in job.members)
        return (Flavour("", charge_of(tree, {CARDS: milli, MEMORY: mib})),)
    ways = tuple(found.values())
    return (Flavour("", ways[0].charge),) if len(ways) == 1 else ways


def at_least(job: Job) -> Job:
    """What `job` is charged for while it waits: an elastic one what it needs at its narrowest."""
    return job if job.elastic is None else replace(job.sized(job.elastic.widths[0]), elastic=None)


def narrowed(job: Job, model: str) -> Job:
    """`job` on cards of `model` only, for those of its members that accept them."""
    if not model:
        return job
    return replace(job, members=tuple(_narrow(request, model) for request in job.members))


def _narrow(request: Request, model: str) -> Request:
    if not request.cards:
        return request
    return replace(request, profile=replace(request.profile, models=(model,)))


def _accepted(members: Sequence[Request], kinds: Sequence[NodeKind]) -> list[CardModel]:
    """Models that serve every member that wants cards; else those of the first, in the order of kinds."""
    wants = [request.profile for request in members if request.cards]
    models = list(dict.fromkeys(model for kind in kinds for model in kind.cards))
    both = [model for model in models if all(accepts(profile, model) for profile in wants)]
    return both or [model for model in models if any(accepts(profile, model) for profile in wants)]


def _member_model(request: Request, model: CardModel, kinds: Sequence[NodeKind]) -> CardModel | None:
    if not request.cards:
        return None
    if accepts(request.profile, model):
        return model
    return next((other for kind in kinds for other in kind.cards if accepts(request.profile, other)), model)


def _named(model: CardModel, name: str) -> bool:
    wanted = name.casefold()
    return wanted == model.name.casefold() or wanted in (alias.casefold() for alias in model.aliases)


def _add(amounts: dict[Resource, int], resource: Resource, amount: int) -> None:
    amounts[resource] = amounts.get(resource, 0) + amount
