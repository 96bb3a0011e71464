"""What a demand mix needs of a machine's host, by kind of machine: who could still use an idle card there.

Idle cards are stranded when they would serve some request of the mix but no such request gets the cpu and
host memory it needs on that node. NUMA nodes are not looked at: this is about the machine as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from aliquot.core.inventory import CardModel, accepts
from aliquot.core.jobs import Request
from aliquot.core.slices import Vector, resolve_ask
from aliquot.core.units import FULL

Mix = tuple[tuple[Request, int], ...]
"""Requests with their counts."""

Frontier = tuple[tuple[tuple[int, int], ...], ...]
"""By number of idle cards: the (milli-cores, MiB) that suffice for some request, none above another."""


def host_frontier(mix: Iterable[Request], models: tuple[CardModel, ...]) -> Frontier:
    """For 0..len(models) idle cards, the least host needs among the requests that these cards would serve."""
    needs: list[list[tuple[int, int]]] = [[] for _ in range(len(models) + 1)]
    for request in mix:
        for idle in range(_least_idle(request, models), len(models) + 1):
            needs[idle].append((request.cpu_milli, request.host_mib))
    return tuple(_minimal(pairs) for pairs in needs)


def is_stranded(frontier: Frontier, idle: int, cpu: int, host: int) -> bool:
    """Whether `idle` cards are of no use to the mix since only `cpu` milli-cores and `host` MiB are left."""
    needs = frontier[idle]
    if not needs:
        return False
    return not any(cpu >= least_cpu and host >= least_host for least_cpu, least_host in needs)


def serving_cards(request: Request, models: tuple[CardModel, ...]) -> list[bool]:
    """Which empty cards could give `request` its piece."""
    return [
        accepts(request.profile, model) and resolve_ask(request.ask, model.usable_mib) is not None
        for model in models
    ]


def pieces_per_card(vector: Vector, left: Vector) -> int:
    """How many pieces of `vector` fit what is `left` of a card."""
    return min(have // take for have, take in zip(left, vector, strict=True) if take)


def _least_idle(request: Request, models: tuple[CardModel, ...]) -> int:
    """How many idle cards serve `request`; more than there are where none do."""
    serving = [model for model, serves in zip(models, serving_cards(request, models), strict=True) if serves]
    if not request.cards or not serving:
        return len(models) + 1
    if request.whole or request.distinct:
        return request.cards if len(serving) >= request.cards else len(models) + 1
    full = Vector(FULL, serving[0].usable_mib, FULL)
    vector = resolve_ask(request.ask, serving[0].usable_mib)
    assert vector is not None
    return -(-request.cards // pieces_per_card(vector, full))


def _minimal(pairs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The pairs that no other pair undercuts in both parts, by rising first part."""
    kept: list[tuple[int, int]] = []
    for pair in sorted(set(pairs)):
        if not kept or pair[1] < kept[-1][1]:
            kept.append(pair)
    return tuple(kept)
