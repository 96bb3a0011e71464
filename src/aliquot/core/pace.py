"""How fast an attempt runs where it was put: by the worst link of its set, and by sharing.

One answer for the engine that lets time pass, for the meter (activity scales with speed) and for forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aliquot.core.grants import Placement
from aliquot.core.ids import NodeId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.speed import FULL_SPEED, Reach, SpeedTable, reach_of
from aliquot.core.together import predict_speeds
from aliquot.core.workload import Offer


def pace_of(
    offer: Offer, placements: tuple[Placement, ...], nodes: Mapping[NodeId, Node], speeds: SpeedTable
) -> int:
    """Milli of full speed; above 1000 for an elastic job that is wider than its first width."""
    divided = any(placement.cards and not placement.whole for placement in placements)
    shared = divided and not offer.job.may_share  # in company its profile says what sharing costs
    reach = _reach(placements, nodes) if offer.linked else Reach.SINGLE
    return speeds.speed(reach, shared) * width_milli(offer.job, placements) // FULL_SPEED


def company_milli(job: Job, there: Sequence[Job]) -> int:
    """Milli of its speed alone that `job` has among all who are on its cards, itself included.

    Full speed where nobody can say: then nobody should have put them together.
    """
    profiles = tuple(other.together for other in there if other.together is not None)
    speeds = predict_speeds(profiles) if len(profiles) > 1 else None
    at = next((at for at, other in enumerate(there) if other.id == job.id), None)
    return FULL_SPEED if speeds is None or at is None or len(speeds) != len(there) else speeds[at]


def width_of(job: Job, placements: Sequence[Placement]) -> int:
    """Cards of a job of one member, members of a gang."""
    return len(placements) if len(job.members) > 1 else sum(len(place.cards) for place in placements)


def widths_of(job: Job, members: int) -> Sequence[int]:
    """The widths it may be given while it runs with so many `members`, rising.

    An elastic one those it names; a gang with a minimum may lose its last members.
    """
    if job.elastic is not None:
        return job.elastic.widths
    return range(job.least, members) if len(job.members) > 1 and not job.is_sited else ()


def as_granted(job: Job, placements: Sequence[Placement]) -> Job:
    """`job` as wide as it was granted: an elastic one at its width, a gang with those members that start."""
    if job.elastic is None and len(placements) >= len(job.members):
        return job
    return job.sized(width_of(job, placements))


def width_milli(job: Job, placements: Sequence[Placement]) -> int:
    """By the speeds of an elastic job; a gang of fewer members than written is slower in proportion."""
    if job.elastic is not None:
        return job.elastic.speed(width_of(job, placements))
    if len(placements) < len(job.members):
        return FULL_SPEED * len(placements) // len(job.members)
    return FULL_SPEED


def _reach(placements: tuple[Placement, ...], nodes: Mapping[NodeId, Node]) -> Reach:
    if len({placement.node for placement in placements}) > 1:
        return Reach.NETWORK
    node = nodes.get(placements[0].node)
    if node is None:
        return Reach.UNKNOWN
    held = {card for placement in placements for card in placement.cards}
    mask = sum(1 << at for at, card in enumerate(node.cards) if card.uuid in held)
    return reach_of(node.wiring, mask)
