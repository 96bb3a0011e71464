"""Who holds something on each row, and until when, as columns that are kept from plan to plan.

A cache outside the world, told by the roster which rows and grants to read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.grants import Grant, Seat
from aliquot.core.lengths import LengthOf, ends_at, length_by
from aliquot.core.lifecycle import Phase
from aliquot.core.placement.cells import I32, I64, U32
from aliquot.core.placement.stays import Stays
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.shadow import FAR
from aliquot.core.roster import UNSEEN, Roster
from aliquot.core.settings import Settings

_FIRST_SLOTS: Final = 16
_END, _SINCE, _MASK, _VECTOR, _CPU, _HOST = 0, 1, 2, slice(3, 3 + DIMS), 3 + DIMS, 4 + DIMS
_WIDTH: Final = 5 + DIMS
AnyColumn = I32 | I64 | U32
_NOWHERE: Final = (-1,) * _WIDTH  # a grant without a seat: no mask is negative


class Stay:
    """One grant on a row: expected until `end`; `since` -1: it is ending."""

    __slots__ = ("end", "seat", "since")

    def __init__(self, end: int, since: int, seat: Seat) -> None:
        self.end, self.since, self.seat = end, since, seat


def stays_on(world: Frozen, row: int, length: LengthOf) -> list[Stay]:
    """What is held on `row`, the first to end first, those whose end nobody knows last."""
    found = []
    for held in world.residents.get(row, ()):
        seat = world.grants[held.job][held.member].seat
        if seat is not None:
            found.append(Stay(*_times(world.jobs[held.job], length), seat))
    found.sort(key=lambda stay: stay.end)
    return found


class EndsMemo:
    """The stays of all rows."""

    def __init__(self, roster: Roster | None = None) -> None:
        self._roster = roster or Roster()
        self._seen = UNSEEN
        self._estimates: object = None
        self._lines: I64 = np.zeros((0, _WIDTH), np.int64)  # [numbers of the roster, columns]
        self._stays = _blank(0, _FIRST_SLOTS)
        self.number: I64 = np.zeros(0, np.int64)  # [rows] another one wherever the row was written anew
        self._written = 0

    def of(self, world: Frozen, settings: Settings) -> Stays:
        """Those of `world`, in columns; not to be written."""
        roster = self._roster
        roster.follow(world)
        if self._estimates != settings.estimates:
            self._estimates, self._seen = settings.estimates, UNSEEN
        if self._seen != roster.reading:
            self._read(length_by(settings))
            self._make_room(len(roster.residents), self._stays.end.shape[1])
            self._write(roster.rows_since(self._seen))
            self._seen = roster.reading
        return self._stays

    def _read(self, length: LengthOf) -> None:
        """As `stays_on`, those that are others than before."""
        roster = self._roster
        missing = len(roster.held) - len(self._lines)
        if missing > 0:
            more: I64 = np.full((max(missing, len(self._lines)), _WIDTH), -1, np.int64)
            self._lines = np.concatenate((self._lines, more))
        numbers = roster.grants_since(self._seen)
        if numbers:
            self._lines[numbers] = [_line(known, length) for known in roster.every(numbers)]

    def _write(self, rows: list[int]) -> None:
        """Each of `rows` anew, the first to end first, else in the order of residents."""
        if not rows:
            return
        place, numbers = self._roster.on(rows)
        lines = self._lines[numbers]
        seated = lines[:, _MASK] >= 0
        place, lines = place[seated], lines[seated]
        order = np.lexsort((lines[:, _END], place))
        place, lines = place[order], lines[order]
        used = np.bincount(place, minlength=len(rows))
        if used.max() > self._stays.end.shape[1]:
            self._make_room(len(self.number), 2 * int(used.max()))
        columns = self._stays
        columns.used[rows] = used
        row, slot = np.array(rows)[place], np.arange(len(place)) - (np.cumsum(used) - used)[place]
        columns.end[row, slot], columns.since[row, slot] = lines[:, _END], lines[:, _SINCE]
        columns.mask[row, slot], columns.vector[row, slot] = lines[:, _MASK], lines[:, _VECTOR]
        columns.cpu[row, slot], columns.host[row, slot] = lines[:, _CPU], lines[:, _HOST]
        self.number[rows] = np.arange(self._written + 1, self._written + 1 + len(rows))
        self._written += len(rows)

    def _make_room(self, rows: int, slots: int) -> None:
        old = self._stays
        known, used = old.end.shape
        if rows <= known and slots <= used:
            return
        self._stays = _blank(max(rows, known), slots)
        self._stays.used[:known] = old.used
        self.number = np.append(self.number, np.zeros(self._stays.used.shape[0] - known, np.int64))
        pairs: Iterable[tuple[AnyColumn, AnyColumn]] = zip(self._stays[1:], old[1:], strict=True)
        for new, before in pairs:
            new[:known, :used] = before


def _line(known: tuple[JobRecord, Grant] | None, length: LengthOf) -> tuple[int, ...]:
    if known is None or known[1].seat is None:
        return _NOWHERE
    _, mask, (compute, memory, bandwidth), _, cpu, host, _, _ = known[1].seat
    return (*_times(known[0], length), mask, compute, memory, bandwidth, cpu, host)


def _times(record: JobRecord, length: LengthOf) -> tuple[int, int]:
    """(end, since) of what the job of `record` holds."""
    if record.phase is Phase.STOPPING:
        return record.since_ms + record.grace_ms, -1
    end = ends_at(record, length)
    return (FAR if end is None else end), record.granted_ms


def _blank(rows: int, slots: int) -> Stays:
    wide: tuple[int, int] = (rows, slots)
    blank: list[I64] = [np.zeros(wide, np.int64) for _ in range(4)]
    return Stays(
        np.zeros(rows, np.int32),
        blank[0],
        blank[1],
        np.zeros(wide, np.uint32),
        np.zeros((rows, slots, DIMS), np.int32),
        blank[2],
        blank[3],
    )
