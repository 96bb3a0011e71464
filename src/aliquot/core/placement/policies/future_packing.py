"""Expected Future Packing (EFP), the default: place where the least future packing is destroyed.

The value of a node is the mean GPU milli that fixed streams of future requests, drawn from the demand
mix, still pack into it. The loss of a placement is the value it takes away; what the request itself is worth
is the same everywhere. Prices for scarce models and a reserve on whole slots come on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies.valued import Measure
from aliquot.core.placement.scarcity import Weights
from aliquot.core.placement.shapes import Hardware
from aliquot.core.placement.streams import Plan, Tables, stream_tables

NAME: Final = "future-packing"
PLAN: Final = Plan(streams=128, length=50, windows=(3,))


def future_packing(plan: Plan = PLAN, weights: Weights | None = None) -> Measure:
    """EFP with other streams or weights than the tuned ones."""

    def tables(mix: DemandMix, hardware: Sequence[Hardware], seed: int, cards: int) -> Tables:
        return stream_tables(mix, hardware, plan, seed, cards)

    def scale(mix: DemandMix, tables: Tables) -> float:
        return float(plan.streams)

    return Measure(NAME, tables, scale, fragments=False, rounded=False, weights=weights or Weights())
