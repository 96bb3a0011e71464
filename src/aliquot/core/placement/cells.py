"""The arrays that scorers read: all nodes of the site, flat, in the fixed node order.

`Cells` is a bare bundle of arrays, so that kernels and their twins read the same thing. Nothing here decides.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.columns import DIMS, MAX_EDGES

BLOCK: Final = 64
SETS: Final = 16
I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


class Cells(NamedTuple):
    """[n] rows of nodes, [n, c] cards. Those down to `traffic` mirror the world."""

    kind: I32  # [n]
    usable: U32  # [n]
    idle: U32  # [n] subset of usable
    cpu: I64  # [n] milli-cores left
    host: I64  # [n] MiB left
    left: I32  # [n, c, DIMS]
    traffic: I32  # [n, MAX_EDGES]
    effective: I32  # [n, c] milli-cards left in the scarcest dimension; 1000 only where the card is idle
    changed: I64  # [n] position in the change log of the row's last change
    log: I32  # [capacity] rows in the order they changed
    full: I32  # [kinds, c, DIMS] what an idle card has


class Request(NamedTuple):
    """One shape as arrays. Without cards `step` is 0 everywhere."""

    cpu: int
    host: int
    cards: int
    whole: bool
    milli: int
    ask: I32  # [kinds, DIMS] per card
    eligible: U32  # [kinds]
    step: I32  # [kinds] how much booking lowers `effective`, or -1: dimension by dimension


class Scores(NamedTuple):
    """Cached columns of one shape: what placing it on each row costs."""

    loss: F64  # [n] inf: does not fit
    exact: Bool  # [n] False: `loss` is a lower bound, still to be worked out
    mask: U32  # [n] cards it would take
    lost: I8  # [n, SETS] idle sets it would break, for each kind of set that `scarcity` keeps
    breaks: Bool  # [n] whether any of `lost` is not 0
    floor: F64  # [blocks of BLOCK rows] never above the least loss or bound in the block


def blank_cells(rows: int, cards: int, log: int, full: I32) -> Cells:
    """Cells of `rows` absent nodes."""
    return Cells(
        kind=np.full(rows, -1, np.int32),
        usable=np.zeros(rows, np.uint32),
        idle=np.zeros(rows, np.uint32),
        cpu=np.zeros(rows, np.int64),
        host=np.zeros(rows, np.int64),
        left=np.zeros((rows, cards, DIMS), np.int32),
        traffic=np.zeros((rows, MAX_EDGES), np.int32),
        effective=np.zeros((rows, cards), np.int32),
        changed=np.full(rows, -1, np.int64),
        log=np.zeros(log, np.int32),
        full=full,
    )


def blank_scores(rows: int) -> Scores:
    """Scores of rows where nothing fits."""
    return Scores(
        loss=np.full(rows, np.inf),
        exact=np.ones(rows, np.bool_),
        mask=np.zeros(rows, np.uint32),
        lost=np.zeros((rows, SETS), np.int8),
        breaks=np.zeros(rows, np.bool_),
        floor=np.full(-(-rows // BLOCK), np.inf),
    )
