"""When, and where, a gang whose members care where the others are could start at the earliest.

What the horizon says of members anywhere is asked here of the rows of one domain after the other, and the
earliest moment wins, the first domain on a tie. Groups are looked at in the order in which they would be
seated; what one is promised is closed to the next. Whatever a wish only prefers is left out: it holds nobody
back.

At most `MOST_DOMAINS` of a level are asked, those with the most room now. So a reservation always keeps to
what is required, but where there are more domains, or several groups, an earlier start may be overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from aliquot.core.gangs import Part, parts_of, roomiest
from aliquot.core.grants import Seat
from aliquot.core.horizon import Ahead, Horizon
from aliquot.core.jobs import Job, Request
from aliquot.core.placement.cells import I32
from aliquot.core.records import JobRecord
from aliquot.core.room.shadow import FAR
from aliquot.core.siting import Desk
from aliquot.core.wishes import Level

MOST_DOMAINS: Final = 32


def find_meeting(
    horizon: Horizon, desk: Desk, record: JobRecord, members: tuple[Request, ...]
) -> Ahead | None:
    """The earliest start of `members`, as the job of `record` wishes them to be; None if never.

    What is shut on the horizon afterwards is more than before: the caller clears it.
    """
    job = replace(record.job, members=members)
    wish = job.wish if job.groups else None
    everywhere: tuple[int, ...] = tuple(range(len(members)))
    best: Ahead | None = None
    for outer in _choices(desk, job, everywhere, None if wish is None else wish.required, None):
        found = _Meeting(horizon, desk, replace(record, job=job)).of(outer)
        if found is not None and (best is None or found.at < best.at):
            best = found
    horizon.narrow(None)
    return best


class _Meeting:
    """The parts of one gang, one after the other."""

    def __init__(self, horizon: Horizon, desk: Desk, record: JobRecord) -> None:
        self._horizon, self._desk, self._record = horizon, desk, record
        self._seats: dict[int, Seat] = {}

    def of(self, outer: I32 | None) -> Ahead | None:
        """Where and when all parts have their members inside `outer` (None: anywhere)."""
        job, at = self._record.job, 0
        pieces = [piece for part in parts_of(job, len(job.members)) for piece in _pieces(part)]
        for number, (members, level) in enumerate(pieces):
            found = self._earliest(members, level, outer)
            if found is None:
                return None
            at = max(at, found.at)
            self._seats.update(zip(members, found.seats, strict=True))
            if number + 1 < len(pieces):
                self._horizon.shut(found.seats, (), FAR)
        return Ahead(at, tuple(self._seats[member] for member in range(len(job.members))))

    def _earliest(self, members: tuple[int, ...], level: Level | None, outer: I32 | None) -> Ahead | None:
        job = self._record.job
        asked = tuple(job.members[member] for member in members)
        best: Ahead | None = None
        for rows in _choices(self._desk, job, members, level, outer):
            self._horizon.narrow(None if rows is None else rows.tolist())
            found = self._horizon.earliest(self._record, asked)
            if found is not None and (best is None or found.at < best.at):
                best = found
        return best


def _pieces(part: Part) -> Iterator[tuple[tuple[int, ...], Level | None]]:
    """Members that have to share a domain, and its level: all of a part, or its slices."""
    wish = part.wish
    if wish is None or not wish.is_binding:
        yield part.members, None
    elif wish.required is not None:
        yield part.members, wish.required
    else:
        for at in range(0, len(part.members), wish.slice):
            yield part.members[at : at + wish.slice], wish.balanced


def _choices(
    desk: Desk, job: Job, members: tuple[int, ...], level: Level | None, outer: I32 | None
) -> list[I32 | None]:
    """The rows of each domain of `level`, inside `outer`."""
    if level is None:
        return [outer]
    return list(roomiest(desk, job, members, level, outer, MOST_DOMAINS))
