"""Which jobs on a row policy may move at all: slices on one card that say so, while they run.

A cache outside the world: a row is read again when its list of residents is another object, which it is
whenever a grant there changes.
"""

from __future__ import annotations

from aliquot.core.grants import GrantState, Seat
from aliquot.core.ids import GrantId
from aliquot.core.jobs import Request
from aliquot.core.records import Frozen

_STATES = frozenset({GrantState.ASSUMED, GrantState.BOUND, GrantState.RUNNING})

Found = tuple[tuple[GrantId, Request, Seat], ...]


class MovablesMemo:
    """Of all rows that were asked for."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, Found]] = {}

    def on(self, world: Frozen, row: int) -> Found:
        """(grant, what it asked, where it sits) of those on `row`, as they are listed there."""
        residents = world.residents.get(row, ())
        known = self._known.get(row)
        if known is None or known[0] is not residents:
            known = self._known[row] = (residents, _movable(world, residents))
        return known[1]


def _movable(world: Frozen, residents: tuple[GrantId, ...]) -> Found:
    found = []
    for held in residents:
        job = world.jobs[held.job].job
        if not job.movable or len(job.members) != 1 or job.is_sited or job.spread:
            continue
        grant = world.grants[held.job][held.member]
        seat = grant.seat
        if seat is not None and seat.mask.bit_count() <= 1 and grant.state in _STATES:
            found.append((held, job.members[0], seat))
    return tuple(found)
