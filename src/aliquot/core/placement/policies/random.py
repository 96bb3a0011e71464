"""Random: any node that fits, by lot, and any card that fits. The yardstick that every policy must beat."""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, bits

PRIME = 999_983


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """All alike."""
    return 0.0


def card(row: Row, mask: int) -> int:
    """Any of the fitting cards, drawn by what the node has left."""
    cards = bits(mask)
    drawn = 0
    for left in row.effective:
        drawn = (drawn * 31 + left) % PRIME
    return cards[drawn % len(cards)]


RULE = Rule("random", loss, card, "random", by_lot=True)
