"""Four nodes of eight cards, for benchmarks whose load is what matters."""

from __future__ import annotations

from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node

NODES, CARDS_EACH = 4, 8
H100 = CardModel("H100", memory_mib=81559)


def small_nodes() -> tuple[Node, ...]:
    """The nodes."""
    return tuple(
        Node(
            NodeId(SiteId(""), f"n{at}"),
            128_000,
            2**20,
            tuple(Card(CardId(f"n{at}-g{slot}"), H100) for slot in range(CARDS_EACH)),
        )
        for at in range(NODES)
    )
