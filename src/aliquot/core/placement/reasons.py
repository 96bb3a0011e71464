"""Why a shape fits nowhere: one reason per row, so that the counts add up to the rows.

Reasons are tried in the order of `Lack`; a row is counted under the first that holds. They say what is short
now, on the machines as they are; whether a shape could ever fit is the planner's question.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

from aliquot.core.columns import BANDWIDTH, COMPUTE, MEMORY
from aliquot.core.placement.cells import I64, Bool, Cells, Request


class Lack(Enum):
    """What a row lacks."""

    NODE = "node"  # gone, or closed to work
    PROFILE = "profile"  # no card of an accepted model or profile
    CPU = "cpu"
    HOST = "host"
    CARDS = "cards"  # fewer healthy, acceptable cards than asked for
    IDLE = "idle"  # enough cards, too few of them idle
    COMPUTE = "compute"
    MEMORY = "memory"
    BANDWIDTH = "bandwidth"
    WIRING = "wiring"  # all there, but the chooser refused every set


class Shortfall(NamedTuple):
    """`rows` rows lack it; `most` is the most that any of them has (cards: count; else milli or MiB)."""

    lack: Lack
    rows: int
    most: int


def shortfalls(cells: Cells, rows: int, request: Request, host: int, fits: Bool) -> tuple[Shortfall, ...]:
    """The reasons of the first `rows` rows where `fits` is false, in the order of `Lack`."""
    kind = cells.kind[:rows]
    safe = np.maximum(kind, 0)
    eligible = np.where(kind >= 0, request.eligible[safe], 0)
    counts = _counts(cells, rows, request, eligible, safe)
    everything: I64 = np.zeros(rows, np.int64)
    tests: list[tuple[Lack, Bool, I64]] = [
        (Lack.NODE, kind < 0, everything),
        (Lack.PROFILE, eligible == 0, everything),
        (Lack.CPU, cells.cpu[:rows] < request.cpu, cells.cpu[:rows]),
        (Lack.HOST, cells.host[:rows] < host, cells.host[:rows]),
        *((lack, count < request.cards, most) for lack, count, most in counts),
        (Lack.WIRING, np.ones(rows, np.bool_), everything),
    ]
    open_rows = ~fits[:rows]
    result = []
    for lack, holds, most in tests:
        hit = open_rows & holds
        if hit.any():
            result.append(Shortfall(lack, int(hit.sum()), int(most[hit].max())))
        open_rows = open_rows & ~holds
    return tuple(result)


def _counts(
    cells: Cells, rows: int, request: Request, eligible: np.ndarray, kind: np.ndarray
) -> list[tuple[Lack, I64, I64]]:
    """Per card test: how many cards of each row pass it and all before it, and the most there is."""
    width = cells.left.shape[1]
    bit = np.uint32(1) << np.arange(width, dtype=np.uint32)
    passing: Bool = (cells.usable[:rows, None] & eligible[:, None].astype(np.uint32) & bit) != 0
    count: I64 = passing.sum(axis=1).astype(np.int64)
    result = [(Lack.CARDS, count, count)]
    if request.whole:
        idle: I64 = (passing & ((cells.idle[:rows, None] & bit) != 0)).sum(axis=1).astype(np.int64)
        return [*result, (Lack.IDLE, idle, idle)]
    for lack, dim in ((Lack.COMPUTE, COMPUTE), (Lack.MEMORY, MEMORY), (Lack.BANDWIDTH, BANDWIDTH)):
        left = cells.left[:rows, :, dim]
        most: I64 = np.where(passing, left, 0).max(axis=1, initial=0).astype(np.int64)
        passing = passing & (left >= request.ask[kind, dim][:, None])
        result.append((lack, passing.sum(axis=1).astype(np.int64), most))
    return result
