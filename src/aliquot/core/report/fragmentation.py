"""How much of what is free is of no use: over the columns, at one instant.

Three readings: the share of free compute that a request drawn from the demand mix could not use (the
measure of the FGD paper), how far the largest block is from all free cards, and the idle cards whose node
lacks cpu or host memory. Integers until the one division; requests that need alike are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import COMPUTE, DIMS, I32, I64, NodeChunk, blank_chunk
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
    rows = _gather(chunks, demand.widest)
    whole = int(rows.residual.sum())
    fragment = sum(need.count * (whole - _usable_residual(rows, need)) for need in demand.needs)
    free = rows.idle.sum(axis=1)
    return Fragmentation(
        residual_milli=whole,
        fragment=fragment,
        weight=demand.weight,
        free_cards=int(free.sum()),
        largest_cards=int(free.max(initial=0)),
        stranded_cards=_stranded(rows, free, demand.frontiers),
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


class _Rows(NamedTuple):
    """The nodes that are there, all chunks together; one array a dimension."""

    kind: I32  # [rows]
    cpu: I64
    host: I64
    usable: Bools  # [rows, cards]
    idle: Bools
    left: tuple[I32, ...]  # DIMS of [rows, cards]
    residual: I64  # [rows, cards] free compute of usable cards


def _gather(chunks: Sequence[NodeChunk], widest: int) -> _Rows:
    parts = [(chunk, np.flatnonzero(chunk.kind >= 0)) for chunk in chunks or (blank_chunk(0, widest),)]
    bits = np.arange(widest, dtype=np.uint32)
    usable = np.concatenate([chunk.usable[at, None] >> bits & 1 for chunk, at in parts]).astype(bool)
    idle = np.concatenate([chunk.idle[at, None] >> bits & 1 for chunk, at in parts]).astype(bool)
    left = tuple(np.concatenate([chunk.left[at, :widest, dim] for chunk, at in parts]) for dim in range(DIMS))
    return _Rows(
        kind=np.concatenate([chunk.kind[at] for chunk, at in parts]),
        cpu=np.concatenate([chunk.cpu[at] for chunk, at in parts]),
        host=np.concatenate([chunk.host[at] for chunk, at in parts]),
        usable=usable,
        idle=usable & idle,
        left=left,
        residual=np.where(usable, left[COMPUTE], 0).astype(np.int64),
    )


def _usable_residual(rows: _Rows, need: _Need) -> int:
    """Free compute on cards that have what `need` asks of one, on nodes where all of it runs."""
    if need.cards == 0:
        return 0
    serves = _serving(rows, need) & ((rows.cpu >= need.cpu) & (rows.host >= need.host))[:, None]
    # a node without a serving card adds nothing, so one piece needs no count
    if need.cards > 1:
        serves &= (_room(rows, serves, need) >= need.cards)[:, None]
    return int(rows.residual[serves].sum())


def _serving(rows: _Rows, need: _Need) -> Bools:
    """Which cards have what one piece needs; an idle card lacks nothing but the right model."""
    if need.whole:
        return rows.idle & (need.per_card[:, :, COMPUTE] < _NEVER)[rows.kind]
    serving = rows.usable.copy()
    for dim, left in enumerate(rows.left):
        serving &= left >= need.per_card[:, :, dim][rows.kind]
    return serving


def _room(rows: _Rows, serves: Bools, need: _Need) -> I64:
    """Pieces a node has room for: one a card, or as many as fit where they may share one."""
    if not need.pack:
        room: I64 = serves.sum(axis=1)
        return room
    takes = np.maximum(need.per_card[rows.kind], 1)
    pieces = np.minimum.reduce([left // takes[:, :, dim] for dim, left in enumerate(rows.left)])
    packed: I64 = np.where(serves, pieces, 0).sum(axis=1)
    return packed


def _stranded(rows: _Rows, free: I64, frontiers: Sequence[Frontier]) -> int:
    """Free cards of nodes whose cpu and host memory suffice for no request that the cards would serve."""
    total = 0
    for row, frontier in enumerate(frontiers):
        for count in range(1, len(frontier)):
            here = (rows.kind == row) & (free == count)
            if not frontier[count] or not here.any():
                continue
            helped = np.zeros(len(rows.kind), bool)
            for least_cpu, least_host in frontier[count]:
                helped |= (rows.cpu >= least_cpu) & (rows.host >= least_host)
            total += count * int((here & ~helped).sum())
    return total
