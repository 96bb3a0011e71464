"""What no machines could hold however long one waits: judged by what they are with nothing else on them.

One rule for who submits, who explains and who counts demand. A card may come, so such a job is no mistake;
and what is only in use by others, drained or down for a while is none of this. Quota is another matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.core.charging import at_least
from aliquot.core.inventory import NodeKind, accepts
from aliquot.core.jobs import Job, Link, Request
from aliquot.core.nearness import find_never_near
from aliquot.core.siting import Desk
from aliquot.core.steps import Never


def find_never(desk: Desk, job: Job) -> Never | None:
    """Why the machines of `desk` could never hold `job` at its least: narrowest, fewest members, in parts.

    None: they could, or it is not sure that they could not.
    """
    least = _in_parts(desk, at_least(job))
    barred = {request for request in set(least.members) if desk.never(request)}
    able = [request for request in least.members if request not in barred]
    if len(able) < least.least:
        return _of_node(next(request for request in least.members if request in barred), desk.world.kinds)
    most = max((desk.cards_for(request) for request in set(able) if request.whole), default=0)
    asked = sum(sorted(request.cards if request.whole else 0 for request in able)[: least.least])
    if asked > most:
        return Never("all cards", asked, most)
    near = find_never_near(desk, least)
    return None if near is None else Never("near", near.need, near.most, near=near)


def _in_parts(desk: Desk, job: Job) -> Job:
    """`job` as the widest even parts that nodes could hold, where it may be split over them."""
    if not (desk.settings.scatter and job.scatter) or len(job.members) > 1:
        return job
    cards = job.members[0].cards
    for width in range(cards, 0, -1):
        parts = job.scattered(width) if cards % width == 0 and width < cards else job
        if not desk.never(parts.members[0]):
            return parts
    return job


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
