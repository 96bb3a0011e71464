"""What a request asks of one card, and the vector that books it.

A card is a vector: 1000 milli of compute, its usable MiB, 1000 milli of bandwidth. A whole-card request, a
shared slice, and later a MIG or vGPU cut, all book into the same vector. What an ask leaves unsaid is
decided here once (and listed in the reference): nothing said = the whole card; one of memory and compute
said = the other in proportion, rounded down, at least 1; bandwidth unsaid = as much as compute.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec

from aliquot.core.errors import SpecError
from aliquot.core.units import FULL


class Cut(Enum):
    """The kinds of piece a card can give. Only WHOLE and SHARED are granted so far."""

    WHOLE = "whole"
    SHARED = "shared"
    MIG = "mig"
    MPS = "mps"
    TIME_SLICE = "time-slice"
    CGPU = "cgpu"
    VGPU = "vgpu"


class Vector(NamedTuple):
    """What a piece takes of one card: compute (milli-cards), memory (MiB), bandwidth (milli)."""

    compute: int
    memory: int
    bandwidth: int


class SliceClass(msgspec.Struct, frozen=True):
    """A named slice: jobs ask for it by name; the rest of the card stays free for other shapes."""

    name: str
    memory_mib: int
    compute_milli: int
    bandwidth_milli: int


class Ask(msgspec.Struct, frozen=True, cache_hash=True):
    """What each card of a request must give. `None` is "not said", which is neither 0 nor unlimited.

    Raises SpecError for 0 and below: a slice of nothing would run without a limit.
    """

    cut: Cut = Cut.WHOLE
    memory_mib: int | None = None
    compute_milli: int | None = None
    bandwidth_milli: int | None = None

    def __post_init__(self) -> None:
        for field in ("memory_mib", "compute_milli", "bandwidth_milli"):
            value = getattr(self, field)
            if value is not None and value <= 0:
                raise SpecError(
                    f"{value} is nothing to give", field=field, value=value, hint="1 or more, or left out"
                )


def resolve_ask(ask: Ask, usable_mib: int) -> Vector | None:
    """The vector `ask` books on a card with `usable_mib` of usable memory; None if it can never fit there.

    A whole-card ask with `memory_mib` needs a card of at least that size and books all of it.
    Worked numbers: 2000 MiB of 46068 books 43 milli of compute, so 23 such fit (46000 MiB) and not 24;
    460 milli of 15360 MiB books 7065 MiB.
    """
    if usable_mib <= 0 or (ask.memory_mib is not None and ask.memory_mib > usable_mib):
        return None
    if ask.cut is Cut.WHOLE or (ask.memory_mib is None and ask.compute_milli is None):
        return Vector(FULL, usable_mib, FULL)
    if ask.compute_milli is not None:
        compute = ask.compute_milli
    else:
        assert ask.memory_mib is not None
        compute = max(1, ask.memory_mib * FULL // usable_mib)
    memory = ask.memory_mib if ask.memory_mib is not None else max(1, usable_mib * compute // FULL)
    bandwidth = ask.bandwidth_milli if ask.bandwidth_milli is not None else compute
    return Vector(compute, memory, bandwidth)
