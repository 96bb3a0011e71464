"""The best-linked free set of k cards of one machine, exactly, for up to 16 cards.

Every set of k free cards is compared under one total order; the answer depends on the question alone:

    1. the farthest link inside the set, nearest first (NVLink before anything of PCIe)
    2. the slowest pair, fastest first (so more NVLinks first)
    3. MB/s that would exceed a shared uplink or socket link, least first
    4. NVLinks inside the set, most first      } with NVLink the links decide before the socket,
    5. locality groups (sockets), fewest first } without it the socket before closeness on PCIe
    6. MB/s over all pairs, most first
    7. PCIe switches touched, fewest first
    8. load of the fullest shared edge, least first (only for a job that brings traffic)
    9. what stays free: largest linked set, largest set in one locality group, MB/s over all pairs
   10. lowest cards

It books nothing: what lies on the edges comes in as `load`, `edge_traffic` says what a set would add.
A *linked* set has an NVLink between every pair; cards that reach each other only over a third do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.errors import SpecError
from aliquot.core.topology.edges import EdgeKind
from aliquot.core.topology.links import Link
from aliquot.core.topology.tables import I32, SubsetTables, subset_tables
from aliquot.core.topology.wiring import Wiring, cards_of

I64 = npt.NDArray[np.int64]


class Contention(NamedTuple):
    """An edge that the chosen set overloads: `booked` + `added` > `capacity`, all MB/s."""

    edge: int  # position in the wiring's edges
    name: str
    capacity: int
    booked: int
    added: int


class SetChoice(NamedTuple):
    """The chosen cards and what their wiring is worth."""

    mask: int
    worst: Link  # farthest pair; SELF for one card
    min_links: int  # NVLinks of the least linked pair; 0 for one card or a pair without
    bandwidth: int | None  # MB/s of the slowest pair, one way; None for one card or where unknown
    sockets: int  # locality groups touched; cards of unknown group count as one
    edges: tuple[int, ...]  # shared edges the set's traffic passes
    contended: tuple[Contention, ...]


class Refusal(Enum):
    """Why there is no such set."""

    TOO_FEW_FREE = "too few free cards"
    NOT_LINKED = "no free set of that size is linked by NVLink"
    NVLINK_UNKNOWN = "NVLink is required and nobody said whether it is there"


class SetRefusal(NamedTuple):
    """A refusal in numbers: `needed` cards, `free` ones, `largest_linked` of those (1: no two are linked)."""

    reason: Refusal
    needed: int
    free: int
    largest_linked: int


def best_set(
    wiring: Wiring,
    free_mask: int,
    k: int,
    *,
    load: tuple[int, ...] = (),
    traffic: int = 0,
    require_nvlink: bool = False,
) -> SetChoice | None:
    """The best `k` of the free cards, or None where there is no such set (`refuse_set` says why).

    `traffic` is what each card of the job moves over PCIe, MB/s: to host, NICs, drives, and cards without
    NVLink. `load` is what is booked on each edge, MB/s, in the order of `wiring.edges`; () is nothing,
    surplus columns are ignored. Answers are cached: without traffic the load plays no part in them.
    """
    _check_question(wiring, free_mask, k, load, traffic)
    booked = load[: len(wiring.edges)] if traffic else ()
    return _choose(wiring, free_mask, k, booked, traffic, require_nvlink)


def refuse_set(wiring: Wiring, free_mask: int, k: int, *, require_nvlink: bool = False) -> SetRefusal | None:
    """Why `best_set` finds nothing for the same question; None where it finds a set."""
    _check_question(wiring, free_mask, k, (), 0)
    largest = int(subset_tables(wiring).linked[free_mask])
    free = free_mask.bit_count()
    if free < k:
        return SetRefusal(Refusal.TOO_FEW_FREE, k, free, largest)
    if not require_nvlink or k == 1 or largest >= k:
        return None
    reason = Refusal.NOT_LINKED if wiring.nvlink_known else Refusal.NVLINK_UNKNOWN
    return SetRefusal(reason, k, free, largest)


def largest_linked_set(wiring: Wiring, free_mask: int) -> int:
    """Mask of the largest free set with an NVLink between every pair; one card if none, 0 if none is free."""
    if not free_mask:
        return 0
    size = int(subset_tables(wiring).linked[free_mask])
    choice = best_set(wiring, free_mask, size, require_nvlink=True)
    return choice.mask if choice else 0


def set_class(wiring: Wiring, mask: int) -> Link:
    """The farthest link inside a set of cards: the key of the speed table. SELF for one card or none."""
    return Link(int(subset_tables(wiring).worst[mask]))


def edge_traffic(wiring: Wiring, mask: int, traffic: int) -> tuple[int, ...]:
    """MB/s that a job of `traffic` MB/s per card books on each edge of the wiring.

    An uplink carries the traffic of each card below it. The socket link carries that of the cards outside the
    set's largest locality group: 4 + 2 cards at 3,000 book 6,000. A set linked by NVLink crosses over its
    links instead and books nothing there.
    """
    chosen = np.array([mask], np.int32)
    return tuple(int(added[0]) for added in _added(wiring, subset_tables(wiring), chosen, traffic))


@lru_cache(maxsize=8192)
def _choose(
    wiring: Wiring, free: int, k: int, load: tuple[int, ...], traffic: int, require_nvlink: bool
) -> SetChoice | None:
    tables = subset_tables(wiring)
    sets = _subsets(tables, free, k, require_nvlink)
    if not len(sets):
        return None
    for badness in _rules(wiring, tables, free, load, traffic):
        if len(sets) == 1:
            break
        value = badness(sets)
        sets = sets[value == value.min()]
    return _describe(wiring, tables, int(sets[0]), load, traffic)


def _subsets(tables: SubsetTables, free: int, k: int, require_nvlink: bool) -> I32:
    wanted = tables.size == k
    if require_nvlink and k > 1:
        wanted &= tables.linked == k
    sets: I32 = np.flatnonzero(wanted).astype(np.int32)
    inside: I32 = sets[(sets & ~np.int32(free)) == 0]
    return inside


def _rules(
    wiring: Wiring, tables: SubsetTables, free: int, load: tuple[int, ...], traffic: int
) -> Iterator[Callable[[I32], I32 | I64]]:
    """The order of the module's docstring; each rule maps sets to how bad they are."""
    yield lambda sets: tables.worst[sets]
    yield lambda sets: -tables.bottleneck[sets]
    if traffic and wiring.edges:
        yield lambda sets: _overload(wiring, _added(wiring, tables, sets, traffic), load)
    yield lambda sets: -tables.nvlinks[sets]
    yield lambda sets: tables.domains[sets]
    yield lambda sets: -tables.bandwidth[sets]
    yield lambda sets: tables.switches[sets]
    if traffic and wiring.edges:
        yield lambda sets: _fullest(wiring, _added(wiring, tables, sets, traffic), load)
    yield lambda sets: -tables.linked[free & ~sets]
    yield lambda sets: -tables.together[free & ~sets]
    yield lambda sets: -tables.bandwidth[free & ~sets]
    yield lambda sets: -tables.first[sets]


def _added(wiring: Wiring, tables: SubsetTables, sets: I32, traffic: int) -> list[I64]:
    """[edges][sets] MB/s each set would book on each edge."""
    crossing = np.where(tables.worst[sets] <= Link.NV, 0, tables.size[sets] - tables.together[sets])
    return [
        traffic
        * (crossing if edge.kind is EdgeKind.SOCKET else tables.size[sets & edge.cards]).astype(np.int64)
        for edge in wiring.edges
    ]


def _overload(wiring: Wiring, added: list[I64], load: tuple[int, ...]) -> I64:
    """[sets] MB/s above capacity, summed over the edges a set touches."""
    over = np.zeros(len(added[0]), np.int64)
    for edge, booked, more in zip(wiring.edges, _booked(wiring, load), added, strict=True):
        over += np.where(more > 0, np.maximum(booked + more - edge.capacity, 0), 0)
    return over


def _fullest(wiring: Wiring, added: list[I64], load: tuple[int, ...]) -> I64:
    """[sets] load of the fullest edge a set touches, in 1/1000 of its capacity."""
    peak = np.zeros(len(added[0]), np.int64)
    for edge, booked, more in zip(wiring.edges, _booked(wiring, load), added, strict=True):
        peak = np.maximum(peak, np.where(more > 0, (booked + more) * 1000 // edge.capacity, 0))
    return peak


def _booked(wiring: Wiring, load: tuple[int, ...]) -> tuple[int, ...]:
    return load or (0,) * len(wiring.edges)


def _describe(
    wiring: Wiring, tables: SubsetTables, mask: int, load: tuple[int, ...], traffic: int
) -> SetChoice:
    pairs = [(a, b) for b in cards_of(mask) for a in cards_of(mask) if a < b]
    added = edge_traffic(wiring, mask, traffic or 1)
    touched = [
        Contention(position, edge.name, edge.capacity, booked, more)
        for position, (edge, booked, more) in enumerate(
            zip(wiring.edges, _booked(wiring, load), added, strict=True)
        )
        if more
    ]
    return SetChoice(
        mask=mask,
        worst=Link(int(tables.worst[mask])),
        min_links=min((wiring.nvlinks(a, b) for a, b in pairs), default=0),
        bandwidth=(int(tables.bottleneck[mask]) or None) if pairs else None,
        sockets=int(tables.domains[mask]),
        edges=tuple(use.edge for use in touched),
        contended=tuple(use for use in touched if traffic and use.booked + use.added > use.capacity),
    )


def _check_question(wiring: Wiring, free: int, k: int, load: tuple[int, ...], traffic: int) -> None:
    if k < 1:
        raise SpecError(f"a set of {k} cards", field="cards", value=k, hint="1 or more")
    if free < 0 or free & ~wiring.every:
        raise SpecError(
            f"mask {free:#x} names cards that a machine of {wiring.n} lacks",
            field="free_mask",
            value=free,
            hint=f"bits 0 to {wiring.n - 1}",
        )
    if traffic < 0 or any(booked < 0 for booked in load):
        raise SpecError(
            f"traffic {traffic} over load {load}", field="traffic", value=traffic, hint="0 or more"
        )
    if load and len(load) < len(wiring.edges):
        raise SpecError(
            f"load of {len(load)} edges for a wiring of {len(wiring.edges)}",
            field="load",
            value=load,
            hint="one number per edge, or none at all",
        )
