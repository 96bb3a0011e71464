"""Who holds something on each row, and until when, as columns that are kept from plan to plan.

A cache outside the world. A row is read again when its node's record or its list of residents is another
object: the world makes a new list whenever a grant there changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aliquot.core.columns import DIMS
from aliquot.core.grants import Grant, Seat
from aliquot.core.ids import GrantId, JobId
from aliquot.core.lengths import LengthOf, length_by
from aliquot.core.lifecycle import Phase
from aliquot.core.placement.cells import I32, I64, U32
from aliquot.core.placement.stays import Stays
from aliquot.core.records import Frozen, JobRecord, NodeRecord
from aliquot.core.room.shadow import FAR
from aliquot.core.settings import Settings

_FIRST_SLOTS = 16
AnyColumn = I32 | I64 | U32


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
            found.append(_stay(world.jobs[held.job], seat, length))
    found.sort(key=lambda stay: stay.end)
    return found


class _Known(NamedTuple):
    """A stay, and what it was read from; None where the grant has no seat."""

    record: JobRecord
    grants: tuple[Grant, ...]
    stay: Stay | None


class EndsMemo:
    """The stays of all rows."""

    def __init__(self) -> None:
        self._estimates: object = None
        self._nodes: object = None
        self._records: list[NodeRecord | None] = []
        self._residents: list[tuple[GrantId, ...]] = []
        self._known: list[dict[GrantId, _Known]] = []
        self._stays = _blank(0, _FIRST_SLOTS)
        self.number: I64 = np.zeros(0, np.int64)  # [rows] another one wherever the row was written anew
        self._written = 0

    def of(self, world: Frozen, settings: Settings) -> Stays:
        """Those of `world`, in columns; not to be written."""
        if self._estimates != settings.estimates:
            self._estimates, self._nodes = settings.estimates, None
            self._records, self._residents, self._known = [], [], []
        if len(self._residents) < world.rows:
            missing = world.rows - len(self._residents)
            self._records += [None] * missing
            self._residents += [_NEVER] * missing
            self._known += [{} for _ in range(missing)]
            self._make_room(world.rows, self._stays.end.shape[1])
        length = length_by(settings)
        same_nodes = self._nodes is world.nodes
        for row, known in enumerate(self._residents[: world.rows]):
            now = world.residents.get(row, ())
            if now is known and (same_nodes or self._records[row] is world.nodes[world.node_at[row]]):
                continue
            self._residents[row], self._records[row] = now, world.nodes[world.node_at[row]]
            self._write(row, self._read(world, row, length))
        self._nodes = world.nodes
        return self._stays

    def _read(self, world: Frozen, row: int, length: LengthOf) -> list[Stay]:
        """As `stays_on`; only those whose job or grants are others than before are read."""
        before, jobs, grants = self._known[row], world.jobs, world.grants
        after: dict[GrantId, _Known] = {}
        for held in self._residents[row]:
            record, own = jobs[held.job], grants[held.job]
            known = before.get(held)
            if known is None or known.record is not record or known.grants is not own:
                seat = own[held.member].seat
                known = _Known(record, own, None if seat is None else _stay(record, seat, length))
            after[held] = known
        self._known[row] = after
        found = [known.stay for known in after.values() if known.stay is not None]
        found.sort(key=lambda stay: stay.end)
        return found

    def _write(self, row: int, stays: list[Stay]) -> None:
        count = len(stays)
        self._written += 1
        self.number[row] = self._written
        if count > self._stays.end.shape[1]:
            self._make_room(self._stays.used.shape[0], 2 * count)
        columns = self._stays
        columns.used[row] = count
        if not count:
            return
        columns.end[row, :count] = [stay.end for stay in stays]
        columns.since[row, :count] = [stay.since for stay in stays]
        columns.mask[row, :count] = [stay.seat.mask for stay in stays]
        columns.vector[row, :count] = [stay.seat.vector for stay in stays]
        columns.cpu[row, :count] = [stay.seat.cpu for stay in stays]
        columns.host[row, :count] = [stay.seat.host for stay in stays]

    def _make_room(self, rows: int, slots: int) -> None:
        old = self._stays
        self._stays = _blank(max(rows, old.used.shape[0]), slots)
        known, used = old.end.shape
        self._stays.used[:known] = old.used
        self.number = np.append(self.number, np.zeros(self._stays.used.shape[0] - known, np.int64))
        pairs: Iterable[tuple[AnyColumn, AnyColumn]] = zip(self._stays[1:], old[1:], strict=True)
        for new, before in pairs:
            new[:known, :used] = before


def _stay(record: JobRecord, seat: Seat, length: LengthOf) -> Stay:
    if record.phase is Phase.STOPPING:
        return Stay(record.since_ms + record.grace_ms, -1, seat)
    known = length(record)
    return Stay(FAR if known is None else record.granted_ms + known, record.granted_ms, seat)


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


_NEVER = (GrantId(JobId(""), -1, -1),)  # a list that no row has
