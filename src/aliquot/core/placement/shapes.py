"""What placement is asked for: the shape of a request on one node, and the hardware of a node kind.

A `Shape` is a request with every choice that depends on the machine already made: fractions resolved to
integers for each node kind, models resolved to the cards that may serve it. Requests that ask the same of a
node share one shape, and with it every cached score; so a shape knows nothing of jobs, names or owners.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from aliquot.core.columns import BANDWIDTH, COMPUTE, DIMS, MAX_CARDS, MEMORY

Ask = tuple[int, int, int]
MILLI: Final = 1000
ANYWHERE: Final = 1  # the `eligible` of a kind where a request without cards may run


class Hardware(NamedTuple):
    """One node kind as placement sees it.

    `full` holds (compute milli, memory MiB, bandwidth milli) per card slot; 0 is a dimension the card
    lacks. `cpu` is the kind's total milli-cores, used only to normalise the classic policies.
    """

    full: tuple[Ask, ...]
    cpu: int


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """What one member of a job asks of one node.

    cpu       milli-cores                       host      MiB of host memory
    cards     number of distinct cards, >= 0    whole     cards must be idle and are booked entirely
    ask       per kind: (compute milli, memory MiB, bandwidth milli) on each of the cards
    eligible  per kind: bit mask of the cards that may serve it; 0: may not. Without cards any bit: yes
    milli     GPU milli of the whole shape: `cards` * 1000 when whole
    spec      the group of models it accepts, as the caller numbers them
    need      whatever the chooser of sets has to know; equal needs are one column of scores
    sought    the chooser is asked even for a single card: it matters which uplink the card hangs on
    """

    cpu: int
    host: int
    cards: int
    whole: bool
    ask: tuple[Ask, ...]
    eligible: tuple[int, ...]
    milli: int
    spec: int = 0
    need: Hashable = None
    sought: bool = False


def without_host(shape: Shape) -> Shape:
    """The shape that shares this one's scores: host memory must fit but is never scored."""
    return shape if shape.host == 0 else msgspec.structs.replace(shape, host=0)


def effective(left: Ask, full: Ask) -> int:
    """The milli-cards left of a card: its scarcest dimension, to the nearest milli.

    With 8,140 of 15,360 MiB and 530 of 1000 compute left this is 530: 529.9 is rounded, since a fraction was
    rounded to MiB when it was booked.
    """
    parts = [(have * MILLI + of // 2) // of for have, of in zip(left, full, strict=True) if of > 0]
    return min(parts, default=0)


def step(shape: Shape, kind: int, full: Ask) -> int:
    """The milli-cards by which booking the shape lowers `effective`, or -1 when its dimensions differ.

    A request for 0.47 of a 15,360 MiB card asks (470, 7219, 470) or less in a dimension it does not use.
    """
    if shape.whole:
        return MILLI
    ask = shape.ask[kind]
    compute = ask[COMPUTE]
    for have, of in ((ask[MEMORY], full[MEMORY]), (ask[BANDWIDTH], full[BANDWIDTH])):
        if of > 0 and abs(have * MILLI - compute * of) > of:
            return -1
    return compute


__all__ = [
    "ANYWHERE",
    "DIMS",
    "MAX_CARDS",
    "MILLI",
    "Ask",
    "Hardware",
    "Shape",
    "effective",
    "step",
    "without_host",
]
