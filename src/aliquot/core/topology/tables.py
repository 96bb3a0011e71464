"""What every subset of a machine's cards is like, as arrays indexed by the subset's mask.

With at most 16 cards there are at most 65,536 subsets, so exact answers for all of them cost a few
milliseconds once per wiring and a look-up afterwards. Row `mask` is built from the row of the same mask
without its highest card: the pairs of the new card, folded over the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Wiring

I32 = npt.NDArray[np.int32]

_FAR_ABOVE = 2**31 - 1


class SubsetTables(NamedTuple):
    """[2**n] int32 each, index = mask of cards."""

    size: I32  # cards
    worst: I32  # farthest `Link` of any pair; SELF below two cards
    bottleneck: I32  # MB/s of the slowest pair; 2**31 - 1 below two cards
    nvlinks: I32  # sum over pairs
    bandwidth: I32  # MB/s, sum over pairs
    domains: I32  # known locality groups touched, plus one for all cards whose group is unknown
    switches: I32  # groups below a PCIe switch touched, a card without one counting as its own
    linked: I32  # cards of the largest subset with an NVLink between every pair
    together: I32  # cards of the largest subset inside one locality group
    first: I32  # larger = begins with lower cards: the mask with its bits in reverse order


@lru_cache(maxsize=64)
def subset_tables(wiring: Wiring) -> SubsetTables:
    """The tables of a wiring; a pure value, kept for the wirings asked last."""
    n = wiring.n
    masks = np.arange(1 << n, dtype=np.int32)
    domains = _group_masks(wiring.domains)
    return SubsetTables(
        size=_count_bits(masks, n),
        worst=_fold_pairs(n, wiring.level, np.maximum, int(Link.SELF)),
        bottleneck=_fold_pairs(n, wiring.bandwidth, np.minimum, _FAR_ABOVE),
        nvlinks=_fold_pairs(n, wiring.nvlinks, np.add, 0),
        bandwidth=_fold_pairs(n, wiring.bandwidth, np.add, 0),
        domains=_count_touched(masks, domains),
        switches=_count_touched(masks, _switch_masks(wiring)),
        linked=_largest_linked(wiring),
        together=_largest_inside(masks, n, domains),
        first=_reverse_bits(masks, n),
    )


def _fold_pairs(n: int, pair: Callable[[int, int], int], fold: np.ufunc, start: int) -> I32:
    """[2**n] fold of `pair(a, b)` over all pairs inside each mask."""
    whole = np.full(1 << n, start, np.int32)
    for high in range(n):
        row = np.full(1, start, np.int32)
        for low in range(high):
            row = np.concatenate([row, fold(row, np.int32(pair(high, low)))])
        whole[1 << high : 2 << high] = fold(whole[: 1 << high], row)
    return whole


def _largest_linked(wiring: Wiring) -> I32:
    """[2**n] size of the largest all-linked subset: the highest card left out, or in with its neighbours."""
    n = wiring.n
    linked = np.zeros(1 << n, np.int32)
    for high in range(n):
        rest = np.arange(1 << high, dtype=np.int32)
        beside = np.int32(sum(1 << low for low in range(high) if wiring.nvlinks(high, low)))
        linked[1 << high : 2 << high] = np.maximum(linked[rest], 1 + linked[rest & beside])
    return linked


def _largest_inside(masks: I32, n: int, groups: Sequence[int]) -> I32:
    most = np.zeros(len(masks), np.int32)
    for group in groups:
        most = np.maximum(most, _count_bits(masks & np.int32(group), n))
    return most


def _count_touched(masks: I32, groups: Sequence[int]) -> I32:
    touched = np.zeros(len(masks), np.int32)
    for group in groups:
        touched += (masks & np.int32(group)) != 0
    return touched


def _count_bits(masks: I32, n: int) -> I32:
    bits = np.zeros(len(masks), np.int32)
    for card in range(n):
        bits += (masks >> card) & 1
    return bits


def _reverse_bits(masks: I32, n: int) -> I32:
    turned = np.zeros(len(masks), np.int32)
    for card in range(n):
        turned |= ((masks >> card) & 1) << (n - 1 - card)
    return turned


def _group_masks(labels: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        sum(1 << card for card, other in enumerate(labels) if other == label) for label in sorted(set(labels))
    )


def _switch_masks(wiring: Wiring) -> tuple[int, ...]:
    """Nested groups count on every level: two switches of one cascade are nearer than two cascades."""
    below = [switch.cards for switch in wiring.switches]
    alone = wiring.every
    for cards in below:
        alone &= ~cards
    return tuple(below) + tuple(1 << card for card in range(wiring.n) if alone >> card & 1)
