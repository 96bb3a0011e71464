"""What a node state is worth, in plain Python: the twin of `kernels.values`, and the arrays both share.

A state is (profile, cpu left, falling codes of the cards). In a flat mix the code of a card is its
`effective` milli; else idle | class | compute | memory | bandwidth side by side. Values are integers, summed
over streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import I32, I64
from aliquot.core.placement.streams import ASK, CARDS, COUNT, CPU, ELIGIBLE, GAIN, WHOLE, Tables

PACKED: Final = 6  # flat codes per key word, 10 bits each
CLASS_AT: Final = 42
IDLE_AT: Final = 46
CPU_CEILING: Final = (1 << 31) - 1  # milli-cores; more than two million cores count as that many
COARSE: Final = 5
BARE: Final = (1 << IDLE_AT) - 1


class Demands(NamedTuple):
    """`streams.Tables` as the kernels want them. `fragments`: measure what can't be used, not what packs."""

    fragments: bool
    flat: bool
    profile: I32  # [kinds]
    pods: I32  # [profiles, streams, length, FIELDS]
    length: I32  # [profiles, streams]
    ceiling: I32  # [profiles, 1001]
    quick: I32  # [profiles, streams, length, 2] flat pods in 8 bytes: cpu; cards << 11 | milli of each


class Table(NamedTuple):
    """Values by state, open addressing. `tally`: entries in use, values worked out so far."""

    keys: I64  # [capacity, words]; word 0 is 0 where free
    values: I64  # [capacity]
    tally: I64  # [2]


class Worth(NamedTuple):
    """Values of the rows as they are, each with the log position of the row's change it belongs to."""

    value: I64  # [n]
    at: I64  # [n]


def demands_of(tables: Tables, *, fragments: bool) -> Demands:
    """The tables as a bundle for kernels."""
    pods = tables.pods
    quick = np.zeros((*pods.shape[:3], 2), np.int32)
    if tables.flat and not fragments:
        quick[..., 0] = np.minimum(pods[..., CPU], CPU_CEILING)
        quick[..., 1] = pods[..., CARDS] << 11 | pods[..., ASK]
    return Demands(fragments, tables.flat, tables.profile, pods, tables.length, tables.ceiling, quick)


def words(cards: int, *, flat: bool) -> int:
    """Key words of a state of `cards` cards."""
    return 1 + (-(-cards // PACKED) if flat else cards)


def blank_table(capacity: int, width: int) -> Table:
    """An empty table; `capacity` is a power of two."""
    return Table(np.zeros((capacity, width), np.int64), np.zeros(capacity, np.int64), np.zeros(2, np.int64))


def code(left: Sequence[int], card_class: int, idle: int) -> int:
    """The code of a card in a mix that is not flat."""
    return left[0] << 32 | left[1] << 10 | left[2] | card_class << CLASS_AT | idle << IDLE_AT


def coarse(cpu: int) -> int:
    """Cpu rounded to 1/64 of itself or finer, to nearest, so that more states share a value.

    93,000 milli-cores count as 92,160 (steps of 2,048), 5,000 as 4,992 (steps of 128); below 64 it is exact.
    """
    quantum = 1
    while cpu >> COARSE >= 2 * quantum:
        quantum *= 2
    return (cpu + quantum // 2) // quantum * quantum


def value_plain(tables: Tables, profile: int, cpu: int, codes: Sequence[int], *, fragments: bool) -> int:
    """GPU milli that all streams together pack into the state, or count x milli unusable (`fragments`)."""
    streams = [
        tables.pods[profile, stream, : int(length)].tolist()
        for stream, length in enumerate(tables.length[profile])
    ]
    if fragments:
        return sum(pod[COUNT] * _unusable(pod, cpu, codes) for pod in streams[0])
    return sum(_packed(pods, cpu, list(codes), flat=tables.flat) for pods in streams)


def _packed(pods: list[list[int]], cpu: int, left: list[int], *, flat: bool) -> int:
    """Each request on the tightest cards that take it, as long as the cpu lasts."""
    total = 0
    for pod in pods:
        if pod[CPU] > cpu:
            continue
        fitting = [card for card, code_left in enumerate(left) if _fits(pod, code_left, flat=flat)]
        if len(fitting) < pod[CARDS]:
            continue
        fitting.sort(key=lambda card: (left[card], card))
        for card in fitting[: pod[CARDS]]:
            left[card] = _taken(pod, left[card], flat=flat)
        cpu -= pod[CPU]
        total += pod[GAIN]
    return total


def _fits(pod: list[int], left: int, *, flat: bool) -> bool:
    if left == 0:
        return False
    if flat:
        return left == 1000 if pod[WHOLE] else left >= pod[ASK]
    if not pod[ELIGIBLE] >> (left >> CLASS_AT & 15) & 1:
        return False
    if pod[WHOLE]:
        return left >> IDLE_AT == 1
    parts = (left >> 32 & 1023, left >> 10 & 0x3FFFFF, left & 1023)
    return all(have >= wanted for have, wanted in zip(parts, pod[ASK:], strict=True))


def _taken(pod: list[int], left: int, *, flat: bool) -> int:
    if pod[WHOLE]:
        return 0
    if flat:
        return left - pod[ASK]
    return (left & BARE) - (pod[ASK] << 32 | pod[ASK + 1] << 10 | pod[ASK + 2])


def _unusable(pod: list[int], cpu: int, codes: Sequence[int]) -> int:
    """GPU milli of the state that the request can't use."""
    if pod[CARDS] > 0 and pod[ELIGIBLE] and pod[CPU] <= cpu:
        small = [left for left in codes if left < pod[ASK]]
        if len(codes) - len(small) >= pod[CARDS]:
            return sum(small)
    return sum(codes)
