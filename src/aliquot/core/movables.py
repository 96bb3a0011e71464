"""Which jobs on a row policy may move at all: slices on one card that say so, while they run.

A cache outside the world, told by the roster which rows and grants to read again.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.grants import Grant, GrantState, Seat
from aliquot.core.ids import GrantId
from aliquot.core.jobs import Request
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.roster import UNSEEN, Roster

_STATES: Final = frozenset({GrantState.ASSUMED, GrantState.BOUND, GrantState.RUNNING})

_One = tuple[GrantId, Request, Seat]
Found = tuple[_One, ...]


class MovablesMemo:
    """Of all rows that were asked for."""

    def __init__(self, roster: Roster | None = None) -> None:
        self._roster = roster or Roster()
        self._seen = UNSEEN
        self._each: list[_One | None] = []  # by number of the roster
        self._known: dict[int, Found] = {}

    def on(self, world: Frozen, row: int) -> Found:
        """(grant, what it asked, where it sits) of those on `row`, as they are listed there."""
        self._follow(world)
        known = self._known.get(row)
        if known is None:
            each = self._each
            found = (each[at] for at in self._roster.each_on(row))
            known = self._known[row] = tuple(one for one in found if one is not None)
        return known

    def _follow(self, world: Frozen) -> None:
        roster = self._roster
        roster.follow(world)
        if self._seen == roster.reading:
            return
        self._each += [None] * (len(roster.held) - len(self._each))
        numbers = roster.grants_since(self._seen)
        for at, grant in zip(numbers, roster.every(numbers), strict=True):
            self._each[at] = None if grant is None else _movable(*grant)
        for row in roster.rows_since(self._seen):
            self._known.pop(row, None)
        self._seen = roster.reading


def _movable(record: JobRecord, grant: Grant) -> _One | None:
    job, seat = record.job, grant.seat
    if not job.movable or len(job.members) != 1 or job.is_sited or job.spread:
        return None
    if seat is None or seat.mask.bit_count() > 1 or grant.state not in _STATES:
        return None
    return grant.id, job.members[0], seat
