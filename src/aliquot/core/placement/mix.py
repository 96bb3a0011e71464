"""The demand mix: which shapes are asked for, how often. A frozen value, fixed for an epoch.

It is not the queue: it says what tends to come, not what waits. Counts are integers, so that sums over the
mix do not depend on their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from aliquot.core.placement.shapes import Shape, without_host


class Demand(NamedTuple):
    """A shape (host memory left out) and how many requests of the mix ask for it."""

    shape: Shape
    times: int


class DemandMix(msgspec.Struct, frozen=True):
    """Demands by falling count, then by falling size; empty when nothing is known yet."""

    demands: tuple[Demand, ...] = ()

    @property
    def total(self) -> int:
        """Requests counted."""
        return sum(demand.times for demand in self.demands)

    @property
    def milli(self) -> int:
        """GPU milli asked for by all of them together."""
        return sum(demand.times * demand.shape.milli for demand in self.demands)

    def typical(self, percent: int = 95) -> DemandMix:
        """The most frequent demands that cover `percent` of the requests, as FGD's typical pods are."""
        kept: list[Demand] = []
        covered = 0
        for demand in self.demands:
            if covered * 100 >= percent * self.total:
                break
            kept.append(demand)
            covered += demand.times
        return DemandMix(tuple(kept))


def mix_of(requests: Iterable[tuple[Shape, int]]) -> DemandMix:
    """The mix of shapes with their counts; shapes that differ in host memory only are one."""
    counts: Counter[Shape] = Counter()
    for shape, count in requests:
        counts[without_host(shape)] += count
    demands = (Demand(shape, count) for shape, count in counts.items() if count > 0)
    return DemandMix(tuple(sorted(demands, key=_rank)))


def _rank(demand: Demand) -> tuple[object, ...]:
    """By falling count; equal counts by falling size, so that the order is total."""
    shape = demand.shape
    per_card = shape.milli // shape.cards if shape.cards else 0
    asks = tuple(tuple(-part for part in ask) for ask in shape.ask)
    masks = tuple(-mask for mask in shape.eligible)
    return (-demand.times, -shape.cpu, -per_card, -shape.cards, -shape.spec, masks, asks, shape.whole)
