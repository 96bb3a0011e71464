"""Why a request fits nowhere: every node is counted once, under the first thing it lacks.

The counts add up to the number of nodes. `best` is the most that any node of that count has, so that a person
sees how far off it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import BANDWIDTH, COMPUTE, MEMORY, NodeChunk
from aliquot.core.inventory import NodeKind, accepts
from aliquot.core.jobs import Link, Request
from aliquot.core.placement.shapes import Shape
from aliquot.core.steps import Reason, Shortfall
from aliquot.core.topology.sets import Refusal, refuse_set
from aliquot.core.topology.wiring import Wiring

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.integer]
_SHARED = ((COMPUTE, Shortfall.COMPUTE), (MEMORY, Shortfall.MEMORY), (BANDWIDTH, Shortfall.BANDWIDTH))


class _Count:
    """Nodes under one shortfall."""

    def __init__(self) -> None:
        self.nodes = 0
        self.best: int | None = None

    def add(self, rows: int, best: int | None) -> None:
        self.nodes += rows
        if best is not None:
            self.best = best if self.best is None else max(self.best, best)


def find_reasons(
    request: Request,
    shape: Shape,
    chunks: Sequence[NodeChunk],
    rows: int,
    kinds: Sequence[NodeKind],
    closed: Set[int] = frozenset(),
) -> tuple[Reason, ...]:
    """Reasons in the order they are tested, for a shape that fits on no row of `chunks`.

    `closed`: rows that may offer nothing though little is booked on them, as `Frozen.strained` has them.
    """
    counts: dict[Shortfall, _Count] = {}
    needs = {
        Shortfall.CPU: shape.cpu,
        Shortfall.HOST: shape.host,
        Shortfall.CARDS: shape.cards,
        Shortfall.LINK: shape.cards,
    }
    for chunk, first, here in rows_of(chunks, rows):
        shut: Bools = np.array([row in closed for row in range(first, first + here)], np.bool_)
        for shortfall, number, best, need in _judge(request, shape, chunk, shut, kinds):
            counts.setdefault(shortfall, _Count()).add(number, best)
            if need is not None:
                needs[shortfall] = max(need, needs.get(shortfall, 0))
    return tuple(
        Reason(shortfall, counts[shortfall].nodes, needs.get(shortfall), counts[shortfall].best)
        for shortfall in Shortfall
        if shortfall in counts and counts[shortfall].nodes
    )


def rows_of(chunks: Sequence[NodeChunk], rows: int) -> Iterator[tuple[NodeChunk, int, int]]:
    """Each chunk with its first row and how many of its rows are nodes, of `rows` in all."""
    first = 0
    for chunk in chunks:
        here = min(len(chunk.kind), rows - first)
        yield chunk, first, here
        first += here


def cards_for(shape: Shape, chunk: NodeChunk, rows: int) -> tuple[Bools, Bools]:
    """[rows, cards] the cards that may serve `shape`, and which of them are idle."""
    at = np.arange(chunk.left.shape[1])
    eligible = np.array([*shape.eligible, 0], np.int64)[chunk.kind[:rows]] & chunk.usable[:rows]
    may = (eligible[:, None] >> at & 1).astype(np.bool_)
    return may, may & (chunk.idle[:rows, None] >> at & 1).astype(np.bool_)


def asked_of(shape: Shape, kind: Ints) -> Ints:
    """[rows, DIMS] what a card of a node of each `kind` is asked for; 0 where there is no node."""
    return np.array([*shape.ask, (0, 0, 0)], np.int64)[kind]


def can_never(request: Request, shape: Shape, kinds: Sequence[NodeKind]) -> bool:
    """Whether no node of any of `kinds` could hold it even with nothing else on it."""
    return all(_too_small(request, shape, at, kind) for at, kind in enumerate(kinds))


def _too_small(request: Request, shape: Shape, at: int, kind: NodeKind) -> bool:
    mask = shape.eligible[at]
    if not mask or shape.cpu > kind.cpu_milli or shape.host > kind.host_mib:
        return True
    if request.link is not Link.REQUIRED or request.cards < 2:
        return False
    return (
        kind.wiring is None or refuse_set(kind.wiring, mask, request.cards, require_nvlink=True) is not None
    )


def _judge(
    request: Request, shape: Shape, chunk: NodeChunk, shut: Bools, kinds: Sequence[NodeKind]
) -> Iterator[tuple[Shortfall, int, int | None, int | None]]:
    """(shortfall, nodes, best, need) of one chunk; each node is taken out of `left_over` when counted."""
    rows = len(shut)
    left_over: Bools = np.ones(rows, np.bool_)
    kind: Ints = chunk.kind[:rows]
    no_host = (chunk.cpu[:rows] == 0) & (chunk.host[:rows] == 0)
    has_cards = np.array([*(bool(hardware.cards) for hardware in kinds), False])[kind]
    dead = has_cards & (chunk.usable[:rows] == 0) & (no_host | (shape.cards > 0))
    yield _take(Shortfall.GONE, (kind < 0) | dead | (shut & no_host), left_over)
    for at, hardware in enumerate(kinds):
        of_kind = left_over & (kind == at)
        if of_kind.any() and _too_small(request, shape, at, hardware):
            lacks, most = _lacks_even_empty(request, shape, at, hardware)
            yield _take(lacks, of_kind, left_over, None if most is None else np.full(rows, most))
    for shortfall, have, need in (
        (Shortfall.CPU, chunk.cpu, shape.cpu),
        (Shortfall.HOST, chunk.host, shape.host),
    ):
        yield _take(shortfall, have[:rows] < need, left_over, have[:rows], need)
    if shape.cards:
        yield from _judge_cards(request, shape, chunk, kind, left_over, kinds)


def _lacks_even_empty(
    request: Request, shape: Shape, at: int, hardware: NodeKind
) -> tuple[Shortfall, int | None]:
    """What a kind too small for `shape` lacks, and the largest linked set where links are what it lacks."""
    right = sum(accepts(request.profile, model) for model in hardware.cards)
    if shape.cards and (right == 0 or right < shape.cards <= len(hardware.cards)):
        return Shortfall.PROFILE, None
    mask, wiring = shape.eligible[at], hardware.wiring
    if not mask or shape.cpu > hardware.cpu_milli or shape.host > hardware.host_mib:
        return Shortfall.SIZE, None
    return Shortfall.LINK, _largest_linked(wiring, mask, shape.cards)


def _judge_cards(
    request: Request, shape: Shape, chunk: NodeChunk, kind: Ints, left_over: Bools, kinds: Sequence[NodeKind]
) -> Iterator[tuple[Shortfall, int, int | None, int | None]]:
    rows = len(kind)
    may, idle = cards_for(shape, chunk, rows)
    fit = idle if shape.whole else may
    enough = fit.sum(axis=1)
    yield _take(Shortfall.CARDS, enough < shape.cards, left_over, enough, shape.cards)
    if not shape.whole:
        ask = asked_of(shape, kind)
        left = chunk.left[:rows]
        for dim, shortfall in _SHARED:
            fit = fit & (left[:, :, dim] >= ask[:, None, dim])
            best = np.where(may, left[:, :, dim], 0).max(axis=1)
            short = fit.sum(axis=1) < shape.cards
            need = int(ask[short & left_over, dim].max()) if (short & left_over).any() else None
            yield _take(shortfall, short, left_over, best, need)
    yield from _judge_links(shape, fit, kind, left_over, kinds)


def _judge_links(
    shape: Shape, fit: Bools, kind: Ints, left_over: Bools, kinds: Sequence[NodeKind]
) -> Iterator[tuple[Shortfall, int, int | None, int | None]]:
    """What is left has the cards, but no set of them that the request accepts."""
    best: Ints = np.zeros(len(kind), np.int64)  # 0: the links are unknown
    for row in np.flatnonzero(left_over).tolist():
        wiring = kinds[int(kind[row])].wiring
        mask = int((fit[row].astype(np.int64) << np.arange(fit.shape[1])).sum())
        best[row] = _largest_linked(wiring, mask, shape.cards) or 0
    yield _take(Shortfall.LINK, left_over.copy(), left_over, best, shape.cards)


def _largest_linked(wiring: Wiring | None, mask: int, cards: int) -> int | None:
    """Cards in the largest linked set of `mask`, less than `cards`; None where links are unknown."""
    refusal = None if wiring is None else refuse_set(wiring, mask, cards, require_nvlink=True)
    if refusal is None or refusal.reason is Refusal.NVLINK_UNKNOWN:
        return None
    return refusal.largest_linked


def _take(
    shortfall: Shortfall, rows: Bools, left_over: Bools, have: Ints | None = None, need: int | None = None
) -> tuple[Shortfall, int, int | None, int | None]:
    mine = rows & left_over
    left_over &= ~mine
    best = int(have[mine].max()) if have is not None and mine.any() else None
    if shortfall is Shortfall.LINK and best == 0:
        best = None
    return shortfall, int(mine.sum()), best, need
