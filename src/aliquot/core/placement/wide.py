"""What a node state is worth, worked out for all streams side by side in numpy: the same value as
`worth.value_plain`, which takes a hundred times as long where cards are sliced.

For sites that do not load compiled kernels. Streams are rows; request k of every stream is served at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from aliquot.core.placement.cells import I64
from aliquot.core.placement.streams import ASK, CARDS, CPU, ELIGIBLE, GAIN, WHOLE, Tables
from aliquot.core.placement.worth import BARE, CLASS_AT, IDLE_AT

Bools = npt.NDArray[np.bool_]
_NEVER: Final = np.iinfo(np.int64).max
_MILLI: Final = 1000
_SMALL, _LARGE = 1023, 0x3FFFFF  # compute and bandwidth have 10 bits of a code, memory 22


def value_wide(tables: Tables, profile: int, cpu: int, codes: Sequence[int]) -> int:
    """GPU milli that all streams together pack into the state."""
    pods = tables.pods[profile].astype(np.int64)
    length = tables.length[profile]
    streams, cards = pods.shape[0], len(codes)
    left = np.tile(np.array(codes, np.int64), (streams, 1))
    cpu_left = np.full(streams, cpu, np.int64)
    total = 0
    for at in range(int(length.max(initial=0))):
        pod = pods[:, at]
        wanted = pod[:, CARDS]
        fitting = _fitting(pod, left, flat=tables.flat)
        served = (at < length) & (pod[:, CPU] <= cpu_left) & (fitting.sum(axis=1) >= wanted)
        if served.any():
            # the tightest cards first, the first of equals
            key = np.where(fitting, left * cards + np.arange(cards), _NEVER)
            rank = key.argsort(axis=1, kind="stable").argsort(axis=1)
            chosen = fitting & (rank < wanted[:, None]) & served[:, None]
            left = np.where(chosen, _taken(pod, left, flat=tables.flat), left)
            cpu_left -= np.where(served, pod[:, CPU], 0)
            total += int(pod[served, GAIN].sum())
            if not left.any():
                break  # what asks for no card adds nothing
    return total


def _fitting(pod: I64, left: I64, *, flat: bool) -> Bools:
    """[streams, cards] whether the request of each stream fits on each card."""
    whole = pod[:, WHOLE, None] != 0
    found: Bools
    if flat:
        found = (left != 0) & np.where(whole, left == _MILLI, left >= pod[:, ASK, None])
        return found
    eligible = pod[:, ELIGIBLE, None] >> (left >> CLASS_AT & 15) & 1 != 0
    parts = (
        (left >> 32 & _SMALL >= pod[:, ASK, None])
        & (left >> 10 & _LARGE >= pod[:, ASK + 1, None])
        & (left & _SMALL >= pod[:, ASK + 2, None])
    )
    found = (left != 0) & eligible & np.where(whole, left >> IDLE_AT == 1, parts)
    return found


def _taken(pod: I64, left: I64, *, flat: bool) -> I64:
    """[streams, cards] what each card would have left."""
    if flat:
        rest = left - pod[:, ASK, None]
    else:
        rest = (left & BARE) - (pod[:, ASK, None] << 32 | pod[:, ASK + 1, None] << 10 | pod[:, ASK + 2, None])
    taken: I64 = np.where(pod[:, WHOLE, None] != 0, 0, rest)
    return taken
