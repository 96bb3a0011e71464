"""The draft as it will be once those are gone who are being stopped, less what of that is promised.

All at one go by a kernel, or seat by seat where a seat counts on NUMA nodes or links of the wiring, or rows
of the draft are closed: the two do the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def make_room(draft: Draft, leaving: Sequence[Seat], promised: Sequence[Seat], *, compiled: bool) -> None:
    """Give back on `draft` what is `leaving`, then take of what is `promised` whatever is free.

    Each of `leaving` can be released. Of slices that are promised all of one is taken or nothing.
    """
    if compiled and not draft.is_partly_shut and _are_plain(leaving, promised):
        _at_once(draft, leaving, promised)
    else:
        _one_by_one(draft, leaving, promised)


def _are_plain(leaving: Iterable[Seat], promised: Iterable[Seat]) -> bool:
    if any(seat.numa or seat.edges for seat in leaving):
        return False
    return not any((seat.numa or seat.edges) and not seat.whole for seat in promised)


def _at_once(draft: Draft, leaving: Sequence[Seat], promised: Sequence[Seat]) -> None:
    from aliquot.core.room.kernels.leaving import change

    gone = _by_chunk(leaving)
    kept = _by_chunk(seat for seat in promised if draft.can_release(seat))
    rows = [seat.row for seat in leaving] + [seat.row for seat in promised]
    chunks = draft.open_rows(rows)
    for index in dict.fromkeys((*gone, *kept)):
        chunk = chunks[index]
        change(
            chunk.kind,
            chunk.usable,
            chunk.idle,
            chunk.cpu,
            chunk.host,
            chunk.left,
            chunk.version,
            _table(gone.get(index)),
            _table(kept.get(index)),
        )


def _by_chunk(seats: Iterable[Seat]) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = {}
    for row, mask, (compute, memory, bandwidth), whole, cpu, host, _, _ in seats:
        line = (row % CHUNK, mask, compute, memory, bandwidth, cpu, host, whole)
        found.setdefault(row // CHUNK, []).append(line)
    return found


def _table(lines: list[Line] | None) -> I64:
    return np.array(lines, np.int64) if lines else _NO_SEATS


def _one_by_one(draft: Draft, leaving: Iterable[Seat], promised: Iterable[Seat]) -> None:
    for seat in leaving:
        draft.release(seat)
    for seat in promised:
        rest = _rest_of(draft, seat)
        if rest is not None:
            draft.book(rest)


def _rest_of(draft: Draft, seat: Seat) -> Seat | None:
    """What of a promised `seat` is free on the draft, so not blocked there yet; of slices all or nothing."""
    if not draft.can_release(seat):
        return None
    if not seat.whole:
        return seat if draft.fits(seat) else None
    chunk, place = draft.ledger.readable(seat.row)
    mask = seat.mask & int(chunk.idle[place]) & int(chunk.usable[place])
    cpu, host = min(seat.cpu, int(chunk.cpu[place])), min(seat.host, int(chunk.host[place]))
    return Seat(seat.row, mask, seat.vector, True, cpu, host) if mask else None
