"""GPU clustering (after Gandiva): nodes that already serve the same kind of request, whole or shared, first.

What a node serves is read off its cards: one that is booked but has something left is shared.
"""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, bits, tightest


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """Minus points of 100: only the same kind 75-100, among others 50-75, fresh 25-50, only others 0-25."""
    if request.cards == 0:
        return 0.0
    busy = [row.effective[card] for card in bits(row.usable & ~row.idle)]
    whole, shared = any(left == 0 for left in busy), any(left > 0 for left in busy)
    same, other = (whole, shared) if request.milli >= 1000 * request.cards else (shared, whole)
    floor = (50 if other else 75) if same else (0 if other else 25)
    used = max(limits.milli - sum(row.effective), 0)
    return -float(floor + 25 * used // limits.milli)


RULE = Rule("gpu-clustering", loss, tightest, "gpu_clustering")
