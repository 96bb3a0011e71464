"""How fast jobs run that share a set of cards, from what each does with it alone: a prediction.

Two kinds of profile. *Stages*: which part of an iteration a job spends on storage, processor, GPU and
network, one after the other; jobs take turns, so that no two of them are in the same stage at once, and all
do one iteration per turn. The turn is as long as the longest part of each slot, in the best order there is,
times a factor for what such jobs cost each other besides: 1.33, 1.5 and 1.37 for two, three and four, as in
the published model of Muri (SIGCOMM'22). *Use*: the parts of a card's compute and bandwidth that a job uses
alone; what two together ask for more than there is slows both alike. Profiles of different kinds are not
compared: nobody knows.

Integers only, so that the planner, the simulation and a restart agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import Final

import msgspec

from aliquot.core.units import FULL

SEATS: Final = 4
"""Most jobs on one set of cards: one per stage."""

STAGES: Final = ("storage", "cpu", "gpu", "network")
TURN_OVERHEAD_MILLI: Final = {2: 330, 3: 500, 4: 370}
"""By the number of jobs, what stages cost each other beside their length; from Muri's published model."""

USE_OVERHEAD_MILLI: Final = 50
"""The same for jobs with a use: an assumption, until somebody measures it."""


class Together(msgspec.Struct, frozen=True, cache_hash=True):
    """A job may share its whole cards with others that say so too.

    `memory_mib` of each card is what it needs at most. Either `stages_milli`, which add up to 1000 (see
    STAGES), or `compute_milli` with `bandwidth_milli`. `iteration_ms`: how long an iteration takes alone;
    where one of two jobs does not say, both count as equally long. `overhead_milli`: measured, in place of
    the usual.
    """

    memory_mib: int
    stages_milli: tuple[int, ...] = ()
    iteration_ms: int | None = None
    compute_milli: int | None = None
    bandwidth_milli: int | None = None
    overhead_milli: int | None = None


@lru_cache(maxsize=1 << 14)
def predict_speeds(group: tuple[Together, ...]) -> tuple[int, ...] | None:
    """The speed of each of `group` on one set of cards, in milli of its speed alone; None where nobody knows.

    Worked: two jobs of 0, 50, 50, 0 % take turns in one iteration, times 1.33: 751 milli each. Two that use
    60 % and 50 % of compute ask for 110 %: with 5 % overhead 865 each.
    """
    if len(group) == 1:
        return (FULL,)
    if len(group) > SEATS:
        return None
    staged = [bool(one.stages_milli) for one in group]
    if all(staged):
        return _in_turns(group)
    return None if any(staged) else _side_by_side(group)


def _in_turns(group: tuple[Together, ...]) -> tuple[int, ...]:
    lengths = [one.iteration_ms or FULL for one in group]
    if any(one.iteration_ms is None for one in group):
        lengths = [FULL] * len(group)
    stages = [
        tuple(part * length for part in one.stages_milli) for one, length in zip(group, lengths, strict=True)
    ]
    turn = max(1, _shortest_turn(stages))
    slower = FULL + _overhead(group, TURN_OVERHEAD_MILLI[len(group)])
    # 100 ms in a turn of 100,000 milli-ms and a third on top: 100 x 1000^3 / (100,000 x 1330) = 751
    return tuple(max(1, min(FULL, length * FULL**3 // (turn * slower))) for length in lengths)


def _shortest_turn(stages: Sequence[tuple[int, ...]]) -> int:
    """Of four slots, one stage each, at any offsets; for two jobs also of two slots with several stages."""
    offsets = [shift for shift in permutations(range(SEATS), len(stages)) if not shift[0]]
    turns = [_turn(stages, shift) for shift in offsets]
    if len(stages) == 2:
        mine, other = stages
        for first in range(SEATS):
            for count in range(1, SEATS):
                arc = {(first + at) % SEATS for at in range(count)}
                rest = set(range(SEATS)) - arc
                turns.append(
                    max(_sum(mine, arc), _sum(other, rest)) + max(_sum(mine, rest), _sum(other, arc))
                )
    return min(turns)


def _sum(own: tuple[int, ...], which: set[int]) -> int:
    return sum(own[stage] for stage in which)


def _turn(stages: Sequence[tuple[int, ...]], offsets: Sequence[int]) -> int:
    """The slots of one turn, each as long as its longest stage; job j is in stage slot + offset of it."""
    return sum(
        max(own[(slot + offset) % SEATS] for own, offset in zip(stages, offsets, strict=True))
        for slot in range(SEATS)
    )


def _side_by_side(group: tuple[Together, ...]) -> tuple[int, ...]:
    compute = sum(one.compute_milli or 0 for one in group)
    bandwidth = sum(one.bandwidth_milli or 0 for one in group)
    slower = max(FULL, compute, bandwidth) * (FULL + _overhead(group, USE_OVERHEAD_MILLI))
    return (max(1, FULL**3 // slower),) * len(group)


def _overhead(group: tuple[Together, ...], usual: int) -> int:
    """What was measured of any of them, else the usual: the most counts."""
    return max(usual if one.overhead_milli is None else one.overhead_milli for one in group)
