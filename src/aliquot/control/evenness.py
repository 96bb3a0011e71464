"""Whether counts of free cards say what the plan says: nodes and waiting jobs differ in nothing else."""

from __future__ import annotations

from aliquot.core.jobs import Request
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings


def is_even(world: Frozen, rules: Settings) -> bool:
    """Whether counts say what the plan says, in a countable world: nodes and jobs differ in nothing else."""
    others = (rules.queues, rules.preemption, rules.elastic, rules.defrag, rules.colocation, rules.spot_cap)
    if any(others) or rules.rescue.share or rules.order.aging_ms or rules.order.by_size:
        return False
    if len(world.kinds) != 1 or len({key[0] for key in world.pending}) > 1:
        return False
    waiting = [world.jobs[key[3]].job for key in world.pending]
    return all(_is_plain(request) for request in {one for job in waiting for one in job.members}) and not any(
        job.after or job.array or job.elastic or job.wish or job.groups or job.spread or job.minimum
        for job in waiting
    )


def _is_plain(request: Request) -> bool:
    """Whether it asks for cards, whichever they are, and nothing else."""
    return request == Request(cards=request.cards, ask=request.ask) and request.ask.memory_mib is None
