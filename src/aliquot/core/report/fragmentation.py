"""How much of what is free is of no use: over the columns, at one instant.

Three readings: the share of free compute that a request drawn from the demand mix could not use (the
measure of the FGD paper), how far the largest block is from all free cards, and the idle cards whose node
lacks cpu or host memory. Integers until the one division; requests that need alike are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import COMPUTE, DIMS, I32, I64, NodeChunk
from aliquot.core.inventory import NodeKind
from aliquot.core.jobs import Request
from aliquot.core.report.needs import Frontier, Mix, host_frontier, serving_cards
from aliquot.core.slices import resolve_ask

Bools = npt.NDArray[np.bool_]

_NEVER = np.iinfo(np.int32).max


class Fragmentation(msgspec.Struct, frozen=True):
    """One reading. `fragment` is in milli-cards times the counts of the mix, `weight` their sum."""

    residual_milli: int  # free compute of usable cards
    fragment: int
    weight: int
    free_cards: int  # idle and usable
    largest_cards: int  # the most of them on one node
    stranded_cards: int

    @property
    def rate(self) -> Fraction | None:
        """Share of the free compute that is fragment; None where nothing is free or the mix is empty."""
        if not self.residual_milli or not self.weight:
            return None
        return Fraction(self.fragment, self.residual_milli * self.weight)

    @property
    def scatter(self) -> Fraction | None:
        """1 - largest block / free cards; None where no card is free."""
        return 1 - Fraction(self.largest_cards, self.free_cards) if self.free_cards else None


class _Need(msgspec.Struct, frozen=True):
    """What equal requests need. `per_card`: [kinds, cards, DIMS], `_NEVER` where a card does not serve."""

    cards: int
    cpu: int
    host: int
    count: int
    whole: bool
    pack: bool
    per_card: I32


class Demand(msgspec.Struct, frozen=True):
    """A demand mix made ready for nodes of given kinds; make it once per mix, use it for many instants."""

    needs: tuple[_Need, ...]
    frontiers: tuple[Frontier, ...]
    weight: int
    widest: int


def prepare(mix: Mix, kinds: Sequence[NodeKind]) -> Demand:
    """`mix` against `kinds`, in the order of the world's table of kinds."""
    widest = max((len(kind.cards) for kind in kinds), default=0)
    merged: dict[tuple[int, int, int, bool, bool, bytes], _Need] = {}
    for request, count in mix:
        need = _need(request, count, kinds, widest)
        key = (need.cards, need.cpu, need.host, need.whole, need.pack, need.per_card.tobytes())
        known = merged.get(key)
        merged[key] = need if known is None else msgspec.structs.replace(known, count=known.count + count)
    requests = [request for request, _ in mix]
    frontiers = tuple(host_frontier(requests, kind.cards) for kind in kinds)
    return Demand(tuple(merged.values()), frontiers, sum(count for _, count in mix), widest)


def measure(chunks: Sequence[NodeChunk], demand: Demand) -> Fragmentation:
    """One reading over `chunks`, whose kinds are those that `demand` was made for."""
    sums = [_measure_chunk(chunk, demand) for chunk in chunks]
    return Fragmentation(
        residual_milli=sum(part[0] for part in sums),
        fragment=sum(part[1] for part in sums),
        weight=demand.weight,
        free_cards=sum(part[2] for part in sums),
        largest_cards=max((part[3] for part in sums), default=0),
        stranded_cards=sum(part[4] for part in sums),
    )


def _need(request: Request, count: int, kinds: Sequence[NodeKind], widest: int) -> _Need:
    per_card = np.full((len(kinds), widest, DIMS), _NEVER, np.int32)
    for row, kind in enumerate(kinds):
        for card, serves in enumerate(serving_cards(request, kind.cards)):
            vector = (
                resolve_ask(request.ask, kind.cards[card].usable_mib) if serves and request.cards else None
            )
            if vector is not None:
                per_card[row, card] = vector
    whole = request.whole
    pack = request.cards > 0 and not whole and not request.distinct
    return _Need(request.cards, request.cpu_milli, request.host_mib, count, whole, pack, per_card)


def _measure_chunk(chunk: NodeChunk, demand: Demand) -> tuple[int, int, int, int, int]:
    """(residual, fragment, free cards, largest free set, stranded cards) of the nodes that are there."""
    there = np.flatnonzero(chunk.kind >= 0)
    kind = chunk.kind[there]
    # one block a dimension: the comparisons below run along memory
    left = np.ascontiguousarray(chunk.left[there, : demand.widest].transpose(2, 0, 1)).transpose(1, 2, 0)
    bits = np.arange(left.shape[1], dtype=np.uint32)
    usable = (chunk.usable[there, None] >> bits & 1).astype(bool)
    idle = usable & (chunk.idle[there, None] >> bits & 1).astype(bool)
    residual = np.where(usable, left[:, :, COMPUTE], 0).astype(np.int64)
    cpu, host = chunk.cpu[there], chunk.host[there]
    node_residual = residual.sum(axis=1)
    fragment = 0
    for need in demand.needs:
        if need.cards == 0:
            fragment += need.count * int(node_residual.sum())
            continue
        serves = _serving(idle if need.whole else usable, left, need, kind)
        runs = (cpu >= need.cpu) & (host >= need.host) & (_room(serves, left, need, kind) >= need.cards)
        lost = np.where(serves, 0, residual).sum(axis=1)
        fragment += need.count * int(np.where(runs, lost, node_residual).sum())
    free = idle.sum(axis=1)
    stranded = _stranded(kind, free, cpu, host, demand.frontiers)
    return int(node_residual.sum()), fragment, int(free.sum()), int(free.max(initial=0)), stranded


def _serving(among: Bools, left: I32, need: _Need, kind: I32) -> Bools:
    """Which of the cards `among` have what one piece needs; an idle card lacks nothing but the right model."""
    if need.whole:
        return among & (need.per_card[:, :, COMPUTE] < _NEVER)[kind]
    serving = among.copy()
    for dim in range(DIMS):
        least = need.per_card[:, :, dim]
        alike = (least == least[:, :1]).all()
        serving &= left[:, :, dim] >= (least[:, :1] if alike else least)[kind]
    return serving


def _room(serves: Bools, left: I32, need: _Need, kind: I32) -> I64:
    """Pieces a node has room for: one a card, or as many as fit where they may share one."""
    if not need.pack:
        room: I64 = serves.sum(axis=1)
        return room
    pieces = (left // np.maximum(need.per_card[kind], 1)).min(axis=2)
    packed: I64 = np.where(serves, pieces, 0).sum(axis=1)
    return packed


def _stranded(kind: I32, free: I64, cpu: I64, host: I64, frontiers: Sequence[Frontier]) -> int:
    """Free cards of nodes whose cpu and host memory suffice for no request that the cards would serve."""
    total = 0
    for row, frontier in enumerate(frontiers):
        for count in range(1, len(frontier)):
            here = (kind == row) & (free == count)
            if not frontier[count] or not here.any():
                continue
            helped = np.zeros(len(kind), bool)
            for least_cpu, least_host in frontier[count]:
                helped |= (cpu >= least_cpu) & (host >= least_host)
            total += count * int((here & ~helped).sum())
    return total
