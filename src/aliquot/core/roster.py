"""Who holds something on each row, by number, and what of it has changed since somebody last looked.

A cache outside the world, followed from plan to plan. A row is read again when its list of residents or its
node's record is another object, and a grant when its id there is: the world makes new ones of both whenever a
grant changes. A reading says which it found, so whoever remembers something of them asks for those only.
What changes of a job without its grants (its idling, whom it waits for) may be as it was before.

Numbers of grants are given out again once they are free, so nothing may depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import immutables
import numpy as np

from aliquot.core.columns import I64
from aliquot.core.grants import Grant
from aliquot.core.ids import GrantId, NodeId
from aliquot.core.records import Frozen, JobRecord, NodeRecord

UNSEEN: Final = -1
"""What to ask `rows_since` and `grants_since` for who has seen nothing."""

_FIRST: Final = 16


class Roster:
    """The residents of all rows, as they were in the world that was shown last."""

    def __init__(self) -> None:
        self.reading = 0
        self.residents: list[tuple[GrantId, ...]] = []
        self.held: list[GrantId | None] = []  # by number; None: free
        self._records: list[JobRecord | None] = []
        self._grants: list[tuple[Grant, ...]] = []
        self._row_of: list[int] = []
        self._number_of: dict[GrantId, int] = {}
        self._free: list[int] = []
        self._numbers: I64 = np.zeros((0, _FIRST), np.int64)  # [rows, places] in the order of residents
        self._count: I64 = np.zeros(0, np.int64)
        self._row_read: I64 = np.zeros(0, np.int64)  # in which reading it was last found changed
        self._read: I64 = np.zeros(_FIRST, np.int64)
        self._shown: immutables.Map[int, tuple[GrantId, ...]] | None = None
        self._nodes: immutables.Map[NodeId, NodeRecord] | None = None
        self._node_records: list[NodeRecord | None] = []

    def follow(self, world: Frozen) -> None:
        """Read what is not as it was in the world before; of rows that `world` lacks, nothing is left."""
        if world.residents is self._shown and world.nodes is self._nodes:
            return
        self.reading += 1
        rows = max(world.rows, len(self.residents))
        self._widen(rows)
        now = [*map(world.residents.get, range(rows))]
        was = self.residents
        changed = {row: None for row in range(rows) if now[row] is not was[row] and (now[row] or was[row])}
        if world.nodes is not self._nodes:
            records = [*(world.nodes[node] for node in world.node_at), *[None] * (rows - world.rows)]
            pairs = enumerate(zip(self._node_records, records, strict=True))
            changed |= {row: None for row, (old, new) in pairs if old is not new}
            self._node_records, self._nodes = [*records], world.nodes
        self._shown = world.residents
        left: list[tuple[int, GrantId]] = []
        for row in changed:
            before, after = was[row], now[row] or ()
            was[row] = after
            self._read_row(world, row, after)
            if before is not after:
                left += [(row, held) for held in set(before).difference(after)]
        self._row_read[list(changed)] = self.reading
        for row, held in left:
            self._forget(row, held)

    def rows_since(self, reading: int) -> list[int]:
        """Rows that were found changed after `reading`, rising."""
        found: list[int] = np.flatnonzero(self._row_read > reading).tolist()
        return found

    def grants_since(self, reading: int) -> list[int]:
        """Numbers of grants that came, changed or went after `reading`: with their jobs or without."""
        found: list[int] = np.flatnonzero(self._read[: len(self.held)] > reading).tolist()
        return found

    def on(self, rows: Sequence[int]) -> tuple[I64, I64]:
        """(place in `rows`, number of the grant) of all residents of `rows`, in their order."""
        numbers, count = self._numbers[rows], self._count[rows]
        place, at = np.nonzero(np.arange(numbers.shape[1]) < count[:, None])
        return place, numbers[place, at]

    def each_on(self, row: int) -> list[int]:
        """The numbers of the grants on one row."""
        found: list[int] = self._numbers[row, : self._count[row]].tolist()
        return found

    def grant(self, at: int) -> tuple[JobRecord, Grant] | None:
        """What a number stands for, as it was last read; None where it is free."""
        held, record = self.held[at], self._records[at]
        return None if held is None or record is None else (record, self._grants[at][held.member])

    def every(self, numbers: Sequence[int]) -> list[tuple[JobRecord, Grant] | None]:
        """As `grant`, of each of `numbers`."""
        held, records, grants = self.held, self._records, self._grants
        return [
            None
            if (one := held[at]) is None or (record := records[at]) is None
            else (record, grants[at][one.member])
            for at in numbers
        ]

    def number(self, held: GrantId) -> int:
        """Of a grant that is held."""
        return self._number_of[held]

    def names(self, numbers: Sequence[int]) -> Iterator[GrantId | None]:
        """What they stand for."""
        return map(self.held.__getitem__, numbers)

    def _read_row(self, world: Frozen, row: int, after: tuple[GrantId, ...]) -> None:
        """Number who is there, and read whose id is another object than before: its grant has changed."""
        known, number_of = self.held, self._number_of
        numbers: list[int] = []
        for held in after:
            at = number_of.get(held, -1)
            if at < 0:
                at = self._admit(held)
            if known[at] is not held:
                known[at], job = held, held.job
                self._records[at], self._grants[at] = world.jobs[job], world.grants[job]
                self._row_of[at], self._read[at] = row, self.reading
            numbers.append(at)
        if len(numbers) > self._numbers.shape[1]:
            self._widen(len(self.residents), 2 * len(numbers))
        self._numbers[row, : len(numbers)] = numbers
        self._count[row] = len(numbers)

    def _admit(self, held: GrantId) -> int:
        """A number for one who came, yet to be read."""
        if self._free:
            at = self._free.pop()
        else:
            at = len(self.held)
            self.held.append(None)
            self._records.append(None)
            self._grants.append(())
            self._row_of.append(-1)
            if at == len(self._read):
                self._read = np.append(self._read, np.zeros_like(self._read))
        self._number_of[held] = at
        return at

    def _forget(self, row: int, held: GrantId) -> None:
        """It is not on `row` any more; unless it moved elsewhere, its number is free."""
        at = self._number_of[held]
        if self._row_of[at] != row:
            return
        del self._number_of[held]
        self.held[at], self._records[at], self._grants[at] = None, None, ()
        self._read[at] = self.reading
        self._free.append(at)

    def _widen(self, rows: int, places: int = 0) -> None:
        """Room for so many rows, with so many residents each."""
        known, have = self._numbers.shape
        if rows > known or places > have:
            wide: I64 = np.zeros((max(rows, known), max(places, have)), np.int64)
            wide[:known, :have] = self._numbers
            self._numbers = wide
        more = rows - len(self.residents)
        if more > 0:
            self.residents += [()] * more
            self._node_records += [None] * more
            self._count = np.append(self._count, np.zeros(more, np.int64))
            self._row_read = np.append(self._row_read, np.zeros(more, np.int64))
