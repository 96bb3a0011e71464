"""GPU packing: cards in use first, then idle cards of nodes in use, then untouched nodes."""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, bits, tightest


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """Minus points of 100: 50-100 on cards in use, 33-50 on idle cards of a used node, else less."""
    if request.cards == 0:
        return 0.0
    idle = row.idle.bit_count()
    fresh = (row.idle & taken).bit_count()
    if idle == row.usable.bit_count():
        return -float(max(33 - idle, idle))
    if fresh > 0:
        return -float(max(50 - fresh, 33))
    left = sum(row.effective[card] * 100 // 1000 for card in bits(taken))
    return -float(max(100 - left // 10, 50))


RULE = Rule("gpu-packing", loss, tightest, "gpu_packing")
