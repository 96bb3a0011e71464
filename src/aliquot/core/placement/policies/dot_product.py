"""Dot product (after Tetris): the node whose free resources align least with the request's."""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, tightest


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """Minus the whole points of 100: 100 x (1 - dot / 2), both vectors in parts of the largest node."""
    dot = (row.cpu / limits.cpu) * (request.cpu / limits.cpu)
    dot += (sum(row.effective) / limits.milli) * (request.milli / limits.milli)
    return -float(int(100.0 * (1.0 - dot / 2.0)))


RULE = Rule("dot-product", loss, tightest, "dot_product")
