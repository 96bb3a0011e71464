"""How fast an attempt runs where it was put: by the worst link of its set, and by sharing.

One answer for the engine that lets time pass, for the meter (activity scales with speed) and for forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping

from aliquot.core.grants import Placement
from aliquot.core.ids import NodeId
from aliquot.core.inventory import Node
from aliquot.core.speed import Reach, SpeedTable, reach_of
from aliquot.core.workload import Offer


def pace_of(
    offer: Offer, placements: tuple[Placement, ...], nodes: Mapping[NodeId, Node], speeds: SpeedTable
) -> int:
    """Milli of full speed."""
    shared = any(placement.cards and not placement.whole for placement in placements)
    reach = _reach(placements, nodes) if offer.linked else Reach.SINGLE
    return speeds.speed(reach, shared)


def _reach(placements: tuple[Placement, ...], nodes: Mapping[NodeId, Node]) -> Reach:
    if len({placement.node for placement in placements}) > 1:
        return Reach.NETWORK
    node = nodes.get(placements[0].node)
    if node is None:
        return Reach.UNKNOWN
    held = {card for placement in placements for card in placement.cards}
    mask = sum(1 << at for at, card in enumerate(node.cards) if card.uuid in held)
    return reach_of(node.wiring, mask)
