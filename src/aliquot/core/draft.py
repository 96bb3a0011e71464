"""A world one may scribble on: book, release, and go back to a mark.

It owns the chunks it writes; going back puts old chunk handles in place, so nothing has to be undone by
hand. `touched` lists the rows written since it was last taken, for caches that mirror the columns.
"""

from __future__ import annotations

from aliquot.core.columns import NodeChunk
from aliquot.core.grants import Seat
from aliquot.core.ledger import Handles, Ledger
from aliquot.core.records import Frozen


class Draft:
    """A private copy of a frozen world's columns."""

    def __init__(self, world: Frozen) -> None:
        self.world = world
        self.ledger = Ledger(world.cards, world.chunks, world.rows)
        self._touched: list[int] = []

    @property
    def chunks(self) -> list[NodeChunk]:
        """The columns as drafted."""
        return self.ledger.chunks

    @property
    def node_count(self) -> int:
        """Rows that have ever been used."""
        return self.world.rows

    def fits(self, seat: Seat) -> bool:
        """Whether `seat` could be booked now."""
        return self.ledger.fits(seat)

    def book(self, seat: Seat) -> None:
        """Take `seat`, which fits."""
        self.ledger.book(seat)
        self._touched.append(seat.row)

    def can_release(self, seat: Seat) -> bool:
        """False on rows that are over-committed or closed: what comes back there is not plain addition."""
        return seat.row not in self.world.strained

    def release(self, seat: Seat) -> None:
        """Give `seat` back; only where `can_release`."""
        self.ledger.release(seat)
        self._touched.append(seat.row)

    def mark(self) -> Handles:
        """A point to go back to."""
        return self.ledger.snapshot()

    def rollback(self, mark: Handles) -> None:
        """Back to `mark`; the rows written since then stay listed as touched."""
        self.ledger.restore(mark)

    def take_touched(self) -> list[int]:
        """Rows written since the last call, oldest first."""
        rows, self._touched = self._touched, []
        return rows
