"""Where more is promised or used than there is, said in numbers.

Two things bring it about, and neither is an error: a quota was lowered below what its queue uses, or nodes
were lost and the pool has less than the nominals below it add up to. Nothing is stopped for it; but nothing
more starts where too much is used, and where too much is promised not every nominal can be had. So people are
told.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from aliquot.core.queues import Resource, show_amount


class Excess(Enum):
    """What there is too much of."""

    USED = "used"
    PROMISED = "promised"


class Overcommit(msgspec.Struct, frozen=True):
    """`queue` (the pool: "") has used or promised `amount` of `resource`; `most` is what it may or can.

    Amounts are in the unit of the resource's measure.
    """

    queue: str
    resource: Resource
    excess: Excess
    amount: int
    most: int


def overcommit_sentence(over: Overcommit) -> str:
    """`queue lab uses 6 of cards and may have 4: nothing more starts in it before 2 are given back`."""
    amount, most, beyond = (
        show_amount(over.resource, one) for one in (over.amount, over.most, over.amount - over.most)
    )
    where = f"queue {over.queue}" if over.queue else "the pool"
    if over.excess is Excess.PROMISED:
        return (
            f"{where} has {most} of {over.resource}, and its queues are promised {amount}: "
            f"not every nominal can be had in full while {beyond} are missing"
        )
    return (
        f"{where} uses {amount} of {over.resource} and may have {most}: "
        f"nothing more of it starts there before {beyond} are given back"
    )
