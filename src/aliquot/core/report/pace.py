"""How fast an attempt runs where it was put, as the engine reckons it: worst link, sharing.

Kept beside the meter since SM activity scales with it: a job at half speed does half of its work per second.
"""

from __future__ import annotations

from aliquot.core.grants import Placement
from aliquot.core.ids import NodeId
from aliquot.core.inventory import Node
from aliquot.core.speed import Reach, SpeedTable, reach_of
from aliquot.core.workload import Offer


def pace_of(
    offer: Offer, placements: tuple[Placement, ...], nodes: dict[NodeId, Node], speeds: SpeedTable
) -> int:
    """Milli of full speed."""
    shared = any(placement.cards and not placement.whole for placement in placements)
    reach = _reach(placements, nodes) if offer.linked else Reach.SINGLE
    return speeds.speed(reach, shared)


def _reach(placements: tuple[Placement, ...], nodes: dict[NodeId, Node]) -> Reach:
    if len({placement.node for placement in placements}) > 1:
        return Reach.NETWORK
    node = nodes.get(placements[0].node)
    if node is None:
        return Reach.UNKNOWN
    held = {card for placement in placements for card in placement.cards}
    mask = sum(1 << at for at, card in enumerate(node.cards) if card.uuid in held)
    return reach_of(node.wiring, mask)
