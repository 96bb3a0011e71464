"""Who holds something on each row and until when, as a scorer or a kernel reads it."""

from __future__ import annotations

from typing import NamedTuple

from aliquot.core.placement.cells import I32, I64, U32


class Stays(NamedTuple):
    """[rows, slots] who holds something on each row, the first to end first."""

    used: I32  # [rows] slots in use
    end: I64  # ms; unknown: far away
    since: I64  # ms since when it runs; -1: it is ending, and gone at `end` or a moment from now
    mask: U32  # cards
    vector: I32  # [rows, slots, DIMS] of each of them
    cpu: I64
    host: I64


class Clock(NamedTuple):
    """The moment a plan is made for, the first that counts, and what a job that has outrun its end needs."""

    now: int
    begin: int
    far: int
    least_ms: int
    again_milli: int
