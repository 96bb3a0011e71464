"""A world one may scribble on: book, release, and go back to a mark.

It owns the chunks it writes; going back puts old chunk handles in place, so nothing has to be undone by
hand. `touched` lists the rows written since it was last taken, for caches that mirror the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aliquot.core.columns import CHUNK, COMPUTE, NodeChunk
from aliquot.core.grants import Seat, bits
from aliquot.core.hosting import divided_cards
from aliquot.core.ledger import Handles, Ledger
from aliquot.core.records import Frozen
from aliquot.core.units import FULL


class Shut(NamedTuple):
    """Cards of one row that offer nothing for a while; `whole`: nor does the rest of the row."""

    cards: int  # bits
    whole: bool = False


class _Hidden(NamedTuple):
    """What closing a row took from its columns."""

    usable: int
    kind: int


class Draft:
    """A private copy of a frozen world's columns."""

    def __init__(self, world: Frozen) -> None:
        self.world = world
        self.ledger = Ledger(world.cards, world.chunks, world.rows)
        self._touched: list[int] = []
        self._divided = divided_cards(world) if world.company else {}
        self._hidden: dict[int, _Hidden] = {}

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
        """False where what comes back is not plain addition: on rows that are over-committed or closed.

        And of cards that are divided among jobs: there a part goes to the others.
        """
        if seat.row in self.world.strained:
            return False
        return seat.whole or not seat.mask & self._divided.get(seat.row, 0)

    def release(self, seat: Seat) -> None:
        """Give `seat` back; only where `can_release`."""
        self.ledger.release(seat)
        self._touched.append(seat.row)
        hidden = self._hidden.get(seat.row)
        if hidden is not None:
            chunk, place = self.ledger.writable(seat.row)
            chunk.idle[place] = int(chunk.idle[place]) & ~hidden.usable

    @property
    def is_partly_shut(self) -> bool:
        """Whether some rows are closed."""
        return bool(self._hidden)

    def open_rows(self, rows: Sequence[int]) -> list[NodeChunk]:
        """The columns, in which `rows` may be written: they count as touched. Not while rows are closed."""
        for index in {row // CHUNK for row in rows}:
            self.ledger.own(index)
        self._touched += rows
        return self.ledger.chunks

    def shut(self, row: int, what: Shut) -> None:
        """Offer nothing of `what` until `reopen`, whatever is booked or given back meanwhile."""
        chunk, place = self.ledger.writable(row)
        usable = int(chunk.usable[place]) & (-1 if what.whole else what.cards)
        self._hidden[row] = _Hidden(usable, int(chunk.kind[place]))
        chunk.usable[place] = int(chunk.usable[place]) & ~usable
        chunk.idle[place] = int(chunk.idle[place]) & ~usable
        if what.whole:
            chunk.kind[place] = -1
        self._touched.append(row)

    def reopen(self, row: int) -> None:
        """Offer again what `shut` closed of `row`."""
        hidden = self._hidden.pop(row)
        chunk, place = self.ledger.writable(row)
        chunk.kind[place] = hidden.kind
        chunk.usable[place] = int(chunk.usable[place]) | hidden.usable
        chunk.idle[place] = int(chunk.idle[place]) | self._idle(chunk, place, hidden.usable)
        self._touched.append(row)

    def open_cards(self, row: int) -> tuple[int, int]:
        """Bits of (cards that may be used, those of them on which nothing is booked), closed ones too."""
        chunk, place = self.ledger.readable(row)
        usable, idle = int(chunk.usable[place]), int(chunk.idle[place])
        hidden = self._hidden.get(row)
        if hidden is None:
            return usable, idle
        return usable | hidden.usable, idle | self._idle(chunk, place, hidden.usable)

    @staticmethod
    def _idle(chunk: NodeChunk, place: int, cards: int) -> int:
        left = chunk.left[place]
        return sum(1 << card for card in bits(cards) if left[card, COMPUTE] == FULL)

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
