"""The policies by name. A policy is one small module; `build` gives it an engine, numba or plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aliquot.core.placement.policies import (
    best_fit,
    dot_product,
    fgd,
    future_packing,
    gpu_clustering,
    gpu_packing,
    random,
    spread,
)
from aliquot.core.placement.policies.classic import Rule, RulePolicy
from aliquot.core.placement.policies.protocol import Policy
from aliquot.core.placement.policies.valued import Measure, ValuePolicy

POLICIES: Final[dict[str, Callable[[], Rule | Measure]]] = {
    future_packing.NAME: future_packing.future_packing,
    fgd.NAME: fgd.fgd,
    "best-fit": lambda: best_fit.RULE,
    "gpu-packing": lambda: gpu_packing.RULE,
    "gpu-clustering": lambda: gpu_clustering.RULE,
    "dot-product": lambda: dot_product.RULE,
    "spread": lambda: spread.RULE,
    "random": lambda: random.RULE,
}
DEFAULT: Final = future_packing.NAME


def build(what: str | Rule | Measure, *, compiled: bool) -> Policy:
    """The policy of that name, or of a rule or measure of one's own. An unknown name is a KeyError."""
    made = POLICIES[what]() if isinstance(what, str) else what
    if isinstance(made, Rule):
        return RulePolicy(made, compiled=compiled)
    return ValuePolicy(made, compiled=compiled)


__all__ = ["DEFAULT", "POLICIES", "Policy", "build"]
