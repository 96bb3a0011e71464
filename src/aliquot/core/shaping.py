"""Requests resolved into shapes: what is asked, said for each kind of node.

Fractions become integers, profiles become bit masks of the cards that satisfy them. On a node with cards of
several models a request may mean different integers on each, so it resolves into one shape per such group;
nearly always that is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import lru_cache

from msgspec.structs import replace

from aliquot.core.inventory import NodeKind, Profile, accepts
from aliquot.core.jobs import Request
from aliquot.core.placement.shapes import ANYWHERE, Hardware, Shape
from aliquot.core.slices import Ask, Cut, Vector, resolve_ask
from aliquot.core.units import FULL

NOT_HERE = (0, 0, 0)


def hardware_of(kind: NodeKind) -> Hardware:
    """A node kind as placement sees it."""
    return Hardware(tuple((FULL, model.usable_mib, FULL) for model in kind.cards), kind.cpu_milli)


def as_whole(request: Request) -> Request:
    """The same request where cards are not shared: as many whole cards, large enough for what was asked."""
    if request.cards == 0 or request.whole:
        return request
    return replace(request, ask=Ask(Cut.WHOLE, memory_mib=request.ask.memory_mib))


def alternatives(request: Request) -> list[Request]:
    """`request` itself, or what may stand for it where slices may share a card: most packed first.

    Four slices of 250 milli may be one of 1000, two of 500 on two cards, or four.
    """
    if request.distinct or request.cards <= 1 or request.whole:
        return [request]
    return [
        replace(request, cards=cards, ask=_times(request.ask, request.cards // cards))
        for cards in range(1, request.cards + 1)
        if request.cards % cards == 0 and (request.ask.compute_milli or 0) * request.cards // cards <= FULL
    ]


def shapes_of(
    request: Request, kinds: Sequence[NodeKind], spec: int, need: Hashable = None
) -> tuple[Shape, ...]:
    """The shapes of `request` over `kinds`; the first always exists, even where nothing is eligible."""
    groups = [_groups(request.ask, request.profile, request.cards, kind) for kind in kinds]
    shapes = []
    for variant in range(max(1, max(map(len, groups), default=1))):
        chosen = [found[min(variant, len(found) - 1)] if found else (NOT_HERE, 0) for found in groups]
        shapes.append(
            Shape(
                cpu=request.cpu_milli,
                host=request.host_mib,
                cards=request.cards,
                whole=request.whole,
                ask=tuple(vector for vector, _ in chosen),
                eligible=tuple(mask for _, mask in chosen),
                milli=request.cards * FULL if request.whole else _milli(request, chosen),
                spec=spec,
                need=need,
                sought=request.traffic_mbs > 0,
            )
        )
    return tuple(shapes)


@lru_cache(maxsize=1 << 14)
def _groups(
    ask: Ask, profile: Profile, cards: int, kind: NodeKind
) -> tuple[tuple[tuple[int, int, int], int], ...]:
    """(vector, mask of cards on which the request means that vector), in the order of the cards."""
    if cards == 0:
        return ((NOT_HERE, ANYWHERE),)
    masks: dict[Vector, int] = {}
    for at, model in enumerate(kind.cards):
        vector = resolve_ask(ask, model.usable_mib)
        if vector is not None and accepts(profile, model):
            masks[vector] = masks.get(vector, 0) | 1 << at
    return tuple(
        ((vector.compute, vector.memory, vector.bandwidth), mask)
        for vector, mask in masks.items()
        if mask.bit_count() >= cards
    )


def _milli(request: Request, chosen: Sequence[tuple[tuple[int, int, int], int]]) -> int:
    """Milli-cards of the whole request; where the kinds differ, the least it means on any of them."""
    return request.cards * min((vector[0] for vector, mask in chosen if mask), default=0)


def _times(ask: Ask, factor: int) -> Ask:
    def scale(part: int | None) -> int | None:
        return None if part is None else int(Fraction(part) * factor)

    return replace(
        ask,
        memory_mib=scale(ask.memory_mib),
        compute_milli=scale(ask.compute_milli),
        bandwidth_milli=scale(ask.bandwidth_milli),
    )
