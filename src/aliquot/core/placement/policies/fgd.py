"""Fragmentation Gradient Descent (Weng et al., USENIX ATC'23), as published, whole points included.

A node's fragment is the GPU milli that a typical request can't use there, averaged over the typical requests
(those that cover 95 % of the mix). The score is 100 x sigmoid of the fragment removed, in cards; the whole
points make ties, and ties go to the first node: exact scores do worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.placement.mix import DemandMix
from aliquot.core.placement.policies.valued import Measure
from aliquot.core.placement.scarcity import Weights
from aliquot.core.placement.shapes import Hardware
from aliquot.core.placement.streams import Tables, typical_tables

NAME: Final = "fgd"


def fgd() -> Measure:
    """The published policy."""
    return Measure(NAME, _tables, _scale, fragments=True, rounded=True, weights=Weights(0.0, 0.0, 0.0))


def _tables(mix: DemandMix, hardware: Sequence[Hardware], seed: int, cards: int) -> Tables:
    return typical_tables(mix.typical(), hardware, cards)


def _scale(mix: DemandMix, tables: Tables) -> float:
    return float(max(mix.typical().total, 1))
