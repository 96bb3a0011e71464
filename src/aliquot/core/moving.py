"""Moves: one slice out of the way of a request that does not fit, and now and then a look for better places.

Only what policy calls movable moves, and all moves together stay within a share of the placed jobs.
"""

from __future__ import annotations

from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Move, Tidy


def rescue(desk: Desk, record: JobRecord) -> tuple[Move, Seated] | None:
    """The move that lets the job of `record` start, and its seat; None where none does or may."""
    return None


def tidy(desk: Desk) -> list[Move | Tidy]:
    """Single moves that leave more room, once per share of capacity newly asked for."""
    return []
