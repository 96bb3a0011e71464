"""Best fit (binpack): the node that has least left afterwards, cpu and GPU alike; the tightest card."""

from __future__ import annotations

from aliquot.core.placement.cells import Request
from aliquot.core.placement.policies.classic import Rule
from aliquot.core.placement.policies.protocol import Limits
from aliquot.core.placement.policies.rows import Row, tightest


def loss(row: Row, request: Request, taken: int, limits: Limits) -> float:
    """Minus the whole points of 100: 100 x (1 - (half cpu left + half GPU left)).

    A node left with 64 of 128 cores and 4 of 8 cards scores 50.
    """
    cpu_part = 0.5 * ((row.cpu - request.cpu) / limits.cpu)
    gpu_part = 0.5 * ((sum(row.effective) - request.milli) / limits.milli)
    return -float(int(100.0 * (1.0 - (cpu_part + gpu_part))))


RULE = Rule("best-fit", loss, tightest, "best_fit")
