"""How busy the cards of a running attempt are, as its owner described it, and whether it is slowed down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.grants import Placement
from aliquot.core.ids import NodeId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.pace import as_granted, company_milli, pace_of, width_milli, width_of
from aliquot.core.speed import FULL_SPEED, Reach, SpeedTable
from aliquot.core.workload import Offer


class Activity(NamedTuple):
    """`busy_milli` on each card, None where unknown. `slowed`: links or neighbours cost speed.

    `speed_milli`: of full speed at its first width. `beside_milli`: of the speed it would have there alone.
    """

    busy_milli: int | None
    slowed: bool
    speed_milli: int = FULL_SPEED
    beside_milli: int = FULL_SPEED


class Activities:
    """The answer for attempts on `nodes`, which whoever made this keeps up to date."""

    def __init__(self, speeds: SpeedTable, nodes: Mapping[NodeId, Node]) -> None:
        self._speeds, self._nodes = speeds, nodes
        self._alone = {shared: speeds.speed(Reach.SINGLE, shared) for shared in (False, True)}

    def look(self, offer: Offer, placements: Sequence[Placement], there: Sequence[Job] = ()) -> Activity:
        """What `offer` does on each card where it was put; `there`: who shares its cards, itself included.

        A job that is slower for its links is less active in proportion, and so is each card of an elastic one
        that gets wider without getting faster in proportion: at 4 cards for 1 and 3,200 for 1,000, 0.8.
        """
        job = offer.job
        if offer.linked:
            plain = replace(offer, job=replace(as_granted(job, placements), elastic=None))
            pace = pace_of(plain, tuple(placements), self._nodes, self._speeds)
        else:
            divided = any(place.cards and not place.whole for place in placements)
            pace = self._alone[divided and not job.may_share]
        beside = company_milli(job, there)
        pace = pace * beside // FULL_SPEED
        busy = offer.busy_milli
        if busy is not None:
            busy = busy * pace // FULL_SPEED
            if job.elastic is not None:
                width, first = width_of(job, placements), job.elastic.widths[0]
                busy = busy * job.elastic.speed(width) * first // (FULL_SPEED * max(1, width))
        speed = pace * width_milli(job, placements) // FULL_SPEED
        return Activity(busy, pace < FULL_SPEED, speed, min(FULL_SPEED, beside))
