"""The columns of all nodes, with booking and releasing, copy on write.

A snapshot is a tuple of chunk handles and costs nothing per node; after one, the first write to a chunk
copies it. Going back to a snapshot is putting the handles back, so undoing needs no inverse operations.
It does not know who holds what: `World` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from aliquot.core.columns import CHUNK, COMPUTE, DIMS, I32, NodeChunk, blank_chunk, copy_chunk
from aliquot.core.grants import Seat, bits
from aliquot.core.slices import Vector
from aliquot.core.units import FULL

Handles = tuple[NodeChunk, ...]


class Ledger:
    """Rows of `cards` card slots each. `chunks` is read by placement; only this class writes them."""

    def __init__(self, cards: int, chunks: Sequence[NodeChunk] = (), rows: int = 0) -> None:
        self.cards = cards
        self.rows = rows
        self.chunks: list[NodeChunk] = list(chunks)
        self._owned: set[int] = set()

    def snapshot(self) -> Handles:
        """The state now; nothing written later shows in it."""
        self._owned.clear()
        return tuple(self.chunks)

    def restore(self, handles: Handles) -> None:
        """Back to what `snapshot` returned."""
        self._owned.clear()
        self.chunks[:] = handles

    def add_row(self) -> int:
        """One more row, absent until it is written."""
        if self.rows == len(self.chunks) * CHUNK:
            self._owned.add(len(self.chunks))
            self.chunks.append(blank_chunk(CHUNK, self.cards))
        self.rows += 1
        return self.rows - 1

    def widen(self, cards: int) -> None:
        """Room for `cards` card slots on every row."""
        if cards <= self.cards:
            return
        for index, old in enumerate(self.chunks):
            wide = blank_chunk(CHUNK, cards)
            wide.left[:, : self.cards] = old.left
            self.chunks[index] = old._replace(left=wide.left)
        self.cards = cards

    def writable(self, row: int) -> tuple[NodeChunk, int]:
        """The chunk of `row`, safe to write, and the row's place in it; its version moves on."""
        index, place = divmod(row, CHUNK)
        if index not in self._owned:
            self.own(index)
        chunk = self.chunks[index]
        chunk.version[place] += 1
        return chunk, place

    def own(self, index: int) -> None:
        """Make a chunk safe to write; whoever does so moves on the versions of its rows."""
        if index not in self._owned:
            self.chunks[index] = copy_chunk(self.chunks[index])
            self._owned.add(index)

    def readable(self, row: int) -> tuple[NodeChunk, int]:
        """The chunk of `row` for reading only."""
        index, place = divmod(row, CHUNK)
        return self.chunks[index], place

    def fits(self, seat: Seat) -> bool:
        """Whether `seat` can be booked now without raising any sum above its capacity."""
        row, mask, (least, mib, rate), whole, cpu, host, numa, _ = seat
        chunk, place = self.readable(row)
        if int(chunk.usable[place]) & mask != mask or chunk.kind[place] < 0:
            return False
        if cpu > chunk.cpu[place] or host > chunk.host[place]:
            return False
        if whole and int(chunk.idle[place]) & mask != mask:
            return False
        for card in bits(mask):
            compute, memory, bandwidth = chunk.left[place, card].tolist()
            if compute < least or memory < mib or bandwidth < rate:
                return False
        return not numa or all(
            cpu <= chunk.numa_cpu[place, at] and host <= chunk.numa_host[place, at] for at, cpu, host in numa
        )

    def book(self, seat: Seat) -> None:
        """Take `seat`. The caller has checked that it fits."""
        chunk, place = self._shift(seat, -1)
        if seat.mask:
            chunk.idle[place] = int(chunk.idle[place]) & ~seat.mask

    def release(self, seat: Seat) -> None:
        """Give `seat` back on a row whose bookings do not exceed its capacity."""
        chunk, place = self._shift(seat, 1)
        if not seat.mask:
            return
        left, idle = chunk.left, 0
        for card in bits(seat.mask):
            if left[place, card, COMPUTE] == FULL:
                idle |= 1 << card
        if idle:
            chunk.idle[place] = int(chunk.idle[place]) | idle

    def _shift(self, seat: Seat, sign: int) -> tuple[NodeChunk, int]:
        """`sign` times `seat` more on its row, but for which cards are idle; its chunk and place."""
        row, mask, vector, _, cpu, host, numa, edges = seat
        index, place = divmod(row, CHUNK)  # `writable` without the call: a tenth of all this
        if index not in self._owned:
            self.own(index)
        chunk = self.chunks[index]
        chunk.version[place] += 1
        if cpu:
            chunk.cpu[place] += sign * cpu
        if host:
            chunk.host[place] += sign * host
        if mask:
            left, taken = chunk.left[place], spread(mask, vector, self.cards)
            if sign < 0:
                np.subtract(left, taken, left)
            else:
                np.add(left, taken, left)
        for at, cores, mib in numa:
            chunk.numa_cpu[place, at] += sign * cores
            chunk.numa_host[place, at] += sign * mib
        for edge, rate in edges:
            chunk.traffic[place, edge] -= sign * rate
        return chunk, place


@lru_cache(maxsize=1 << 12)
def spread(mask: int, vector: Vector, cards: int) -> I32:
    """[cards, DIMS] `vector` on the cards of `mask`, 0 on the others. Not to be written."""
    table: I32 = np.zeros((cards, DIMS), np.int32)
    table[list(bits(mask))] = vector
    table.flags.writeable = False
    return table
