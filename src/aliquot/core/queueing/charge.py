"""What a job is charged for: what it asks, never what it ends up holding.

Eight cards asked with 40 GB each are charged 320 GB of memory and 8 cards, though eight cards of 80 GB may
be held for it. What an ask leaves unsaid follows from a card of `model`, by the ledger's own rule.
"""

from __future__ import annotations

from aliquot.core.inventory import CardModel
from aliquot.core.jobs import Job, asked_of
from aliquot.core.queues import CARDS, MEMORY, Measure, Resource
from aliquot.core.settings import Rates
from aliquot.core.units import FULL

COMPUTE = Resource(Measure.COMPUTE)
MONEY = Resource(Measure.MONEY)


def charge_job(job: Job, model: CardModel, rates: Rates = Rates()) -> dict[Resource, int]:  # noqa: B008 - a frozen value
    """What quotas count for `job` on cards of `model`, by resource.

    Cards are counted once as cards of any model and once as cards of `model`. Compute and money are left out
    where `rates` does not know the model: unknown is not 0, and `unrated` says so.
    """
    milli = memory = 0
    for request in job.members:
        cards, mib = asked_of(request, model)
        milli, memory = milli + cards, memory + mib
    amounts = {CARDS: milli, Resource(Measure.CARDS, model.name): milli, MEMORY: memory}
    for resource, table in ((COMPUTE, rates.compute_milli), (MONEY, rates.cents_a_month)):
        rate = dict(table).get(model.name)
        if rate is not None:
            amounts[resource] = -(-milli * rate // FULL)
    return {resource: amount for resource, amount in amounts.items() if amount}


def unrated(model: CardModel, rates: Rates) -> tuple[Resource, ...]:
    """Resources that cards of `model` cannot be charged for."""
    tables = ((COMPUTE, rates.compute_milli), (MONEY, rates.cents_a_month))
    return tuple(resource for resource, table in tables if model.name not in dict(table))
