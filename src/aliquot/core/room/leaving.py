"""The draft as it will be once those are gone who are being stopped, less what of that is promised.

All at one go by a kernel, or seat by seat where a seat counts on NUMA nodes or links of the wiring, or rows
of the draft are closed: the two do the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from aliquot.core.columns import CHUNK
from aliquot.core.draft import Draft
from aliquot.core.grants import Seat
from aliquot.core.placement.cells import I64

PLACE, MASK, COMPUTE, MEMORY, BANDWIDTH, CPU, HOST, WHOLE = range(8)
"""Columns of seats of one chunk: the row's place in it, card bits, what each card gives, host, 1 if whole."""

_NO_SEATS: Final[I64] = np.zeros((0, 8), np.int64)

Line = tuple[int, int, int, int, int, int, int, bool]


class Seats:
    """Seats in order, and the same as tables that a kernel reads, kept up as more are added."""

    def __init__(self, seats: Iterable[Seat] = ()) -> None:
        self.all: list[Seat] = []
        self.is_plain = True  # none counts on NUMA nodes or links of the wiring
        self.are_slices_plain = True  # none that is no whole card does
        self._tables: dict[int, I64] = {}
        self._counts: dict[int, int] = {}
        self.add(seats)

    def add(self, seats: Iterable[Seat]) -> None:
        """`seats` come behind the others."""
        for seat in seats:
            self.all.append(seat)
            if seat.numa or seat.edges:
                self.is_plain = False
                self.are_slices_plain &= seat.whole
            index, place = divmod(seat.row, CHUNK)
            count, table = self._counts.get(index, 0), self._tables.get(index, _NO_SEATS)
            if count == len(table):
                table = self._tables[index] = np.resize(table, (max(16, 2 * count), 8))
            table[count] = (place, seat.mask, *seat.vector, seat.cpu, seat.host, seat.whole)
            self._counts[index] = count + 1

    def of_chunk(self, index: int) -> I64:
        """[seats, 8] those of one chunk."""
        return self._tables.get(index, _NO_SEATS)[: self._counts.get(index, 0)]

    @property
    def chunks(self) -> Iterable[int]:
        """Those that have seats."""
        return self._counts


def make_room(draft: Draft, leaving: Seats, promised: Seats, *, compiled: bool) -> None:
    """Give back on `draft` what is `leaving`, then take of what is `promised` whatever is free.

    All of them can be released. Of slices that are promised all of one is taken or nothing.
    """
    if compiled and not draft.is_partly_shut and leaving.is_plain and promised.are_slices_plain:
        _at_once(draft, leaving, promised)
    else:
        _one_by_one(draft, leaving.all, promised.all)


def _at_once(draft: Draft, leaving: Seats, promised: Seats) -> None:
    from aliquot.core.room.kernels.leaving import change

    rows = [seat.row for seat in leaving.all] + [seat.row for seat in promised.all]
    chunks = draft.open_rows(rows)
    for index in dict.fromkeys((*leaving.chunks, *promised.chunks)):
        chunk = chunks[index]
        change(
            chunk.kind,
            chunk.usable,
            chunk.idle,
            chunk.cpu,
            chunk.host,
            chunk.left,
            chunk.version,
            leaving.of_chunk(index),
            promised.of_chunk(index),
        )


def _one_by_one(draft: Draft, leaving: Iterable[Seat], promised: Iterable[Seat]) -> None:
    for seat in leaving:
        draft.release(seat)
    for seat in promised:
        rest = _rest_of(draft, seat)
        if rest is not None:
            draft.book(rest)


def _rest_of(draft: Draft, seat: Seat) -> Seat | None:
    """What of a promised `seat` is free on the draft, so not blocked there yet; of slices all or nothing."""
    if not seat.whole:
        return seat if draft.fits(seat) else None
    chunk, place = draft.ledger.readable(seat.row)
    mask = seat.mask & int(chunk.idle[place]) & int(chunk.usable[place])
    cpu, host = min(seat.cpu, int(chunk.cpu[place])), min(seat.host, int(chunk.host[place]))
    return Seat(seat.row, mask, seat.vector, True, cpu, host) if mask else None
