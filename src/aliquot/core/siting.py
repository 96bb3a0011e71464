"""A desk to plan at: a draft of the world, the scorers that look at it, and seats taken on it.

`Memo` keeps what is worth keeping between plans: the scorers with their cached columns, and requests already
resolved into shapes. It may be thrown away at any time without changing a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.draft import Draft
from aliquot.core.grants import NOTHING, Placement, Seat, bits
from aliquot.core.jobs import Job, Request
from aliquot.core.ledger import Handles
from aliquot.core.numa import split_host
from aliquot.core.placement.placer import Placer
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.slices import Ask, Cut, Vector
from aliquot.core.steps import Move, Reason, Term
from aliquot.core.topology.sets import edge_traffic
from aliquot.core.units import FULL


class Seated(NamedTuple):
    """A seat taken on the draft, with the score that chose it."""

    seat: Seat
    score: float
    terms: tuple[Term, ...]
