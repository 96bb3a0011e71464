"""Which cards of a node a request of several gets, and what their wiring costs it.

Topology chooses the set; this turns its worth into the unit the scorers use, milli-cards: a set that runs at
850 of 1000 loses 150 milli on each card. An uplink that would carry 3/2 of its capacity makes the traffic of
its cards wait, and costs as much as the share that does not get through.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Link
from aliquot.core.speed import FULL_SPEED, SpeedTable, reach_of
from aliquot.core.topology.sets import SetChoice, best_set, edge_traffic
from aliquot.core.topology.wiring import Wiring

NO_SET = (0, 0.0)


class Need(NamedTuple):
    """What, beside its shape, a request asks of its set of cards."""

    link: Link = Link.ANY
    traffic_mbs: int = 0


class WiredChooser:
    """Answers for one list of node kinds. Pure: equal questions get equal answers."""

    def __init__(self, kinds: Sequence[NodeKind], speeds: SpeedTable, *, aware: bool = True) -> None:
        self._wirings = tuple(kind.wiring for kind in kinds)
        self._speeds, self._aware = speeds, aware

    def choose(
        self, kind: int, free: int, count: int, traffic: Sequence[int], need: object
    ) -> tuple[int, float]:
        """(cards as a mask, cost in milli-cards), or (0, 0.0) where no free set satisfies `need`.

        Without wiring, or where nobody is to look at it, the lowest cards are taken. What a job requires is
        still required: a set that must be linked is refused where links are unknown.
        """
        assert isinstance(need, Need)
        wiring, required = self._wirings[kind], need.link is Link.REQUIRED and count > 1
        if wiring is None or not (self._aware or required):
            return NO_SET if required else (lowest(free, count), 0.0)
        load = tuple(int(rate) for rate in traffic) if need.traffic_mbs else ()
        return _choose(wiring, free, count, need, load, self._speeds)

    def edges(self, kind: int, mask: int, need: Need) -> tuple[tuple[int, int], ...]:
        """What a request of `need` on the cards `mask` books on each edge, MB/s."""
        wiring = self._wirings[kind]
        if wiring is None or not need.traffic_mbs:
            return ()
        booked = edge_traffic(wiring, mask, need.traffic_mbs)
        return tuple((edge, rate) for edge, rate in enumerate(booked) if rate)


def lowest(mask: int, count: int) -> int:
    """The lowest `count` bits of `mask`, or 0 where it has fewer."""
    chosen = 0
    for _ in range(count):
        if not mask:
            return 0
        low = mask & -mask
        chosen |= low
        mask ^= low
    return chosen


@lru_cache(maxsize=16384)
def _choose(
    wiring: Wiring, free: int, cards: int, need: Need, load: tuple[int, ...], speeds: SpeedTable
) -> tuple[int, float]:
    choice = best_set(
        wiring, free, cards, load=load, traffic=need.traffic_mbs, require_nvlink=need.link is Link.REQUIRED
    )
    if choice is None:
        return NO_SET
    lost = FULL_SPEED - speeds.speed(reach_of(wiring, choice.mask), shared=False) if cards > 1 else 0
    return choice.mask, float(cards * lost) + _stalled(choice)


def _stalled(choice: SetChoice) -> float:
    """Milli-cards that wait for overloaded edges: 30 of 24 GB/s booked lets 1 in 5 wait, 200 milli a card."""
    worst = max((1 - edge.capacity / (edge.booked + edge.added) for edge in choice.contended), default=0.0)
    return worst * FULL_SPEED * choice.mask.bit_count()
