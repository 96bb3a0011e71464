"""Spread: the node that has most left afterwards, and its emptiest card: so that services share no fate."""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, emptiest


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """Minus the whole points of 100 of what is left, half cpu and half GPU."""
    cpu_part = 0.5 * ((row.cpu - request.cpu) / limits.cpu)
    gpu_part = 0.5 * ((sum(row.effective) - request.milli) / limits.milli)
    return -float(int(100.0 * (cpu_part + gpu_part)))


RULE = Rule("spread", loss, emptiest, "spread")
