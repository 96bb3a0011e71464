"""The board: a flat mirror of the world's chunks that scorers can read quickly, with a log of what changed.

It is not a copy of the world but of what its columns say, row by row; it owns no decision. Chunks are
compared by identity first (copy on write: the same handle says the same) and by content then, so bringing the
mirror up to date costs one pass over the chunks that were written to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from aliquot.core.columns import CHUNK, DIMS, NodeChunk
from aliquot.core.placement.cells import I32, I64, U32, Cells, blank_cells
from aliquot.core.placement.shapes import Ask, Hardware, Shape, effective

Absorb = Callable[..., int]
Column = I32 | U32 | I64
FEW = 6  # positions that are read faster one by one than handed to a kernel
NEAR = 32  # rows are compared in the time that one more call of the kernel costs
MIRRORED = 7  # the columns of Cells that mirror the world come first
ChangedSince = Callable[[Cells, int, int, int, I32], int]


class View(Protocol):
    """A world, a snapshot of one, or a draft."""

    @property
    def chunks(self) -> Sequence[NodeChunk]:
        """The columns, CHUNK rows each, in the fixed node order."""

    @property
    def node_count(self) -> int:
        """Rows that are in use; later ones are blank."""


class Board:
    """Cells kept equal to a view. `length` is the log position after the last change."""

    def __init__(self, hardware: Sequence[Hardware], *, compiled: bool) -> None:
        self.hardware = tuple(hardware)
        self.cells = blank_cells(0, 1, 0, full_table(hardware, 1))
        self.rows = 0
        self.scratch = 0  # a spare row behind all others, for what-ifs
        self._imagined = -1
        self.generation = 0  # grows when the arrays were replaced: every cached column is void
        self._compiled = compiled
        self._seen: list[NodeChunk | None] = []
        self._base = 0
        self._end = 0
        self._absorb, self._changed_since = _engine(compiled)

    @property
    def length(self) -> int:
        """The log position after the last change."""
        return self._base + self._end

    def sync(self, view: View) -> None:
        """Bring every row up to date with `view`."""
        chunks = view.chunks
        self._fit(len(chunks), chunks[0].left.shape[1] if chunks else 1, view.node_count)
        for at, chunk in enumerate(chunks):
            if chunk is not self._seen[at]:
                self._take(chunk, at, 0, chunk.kind.shape[0])
                self._seen[at] = chunk

    def refresh(self, view: View, rows: Iterable[int]) -> None:
        """Bring `rows` up to date, after a booking or a rollback in a draft.

        The chunk's handle is forgotten: a draft writes into the chunks it owns, so its handles prove nothing.
        """
        chunks, rows = view.chunks, tuple(rows)
        if len(rows) == 1:
            at, place = divmod(rows[0], CHUNK)
            self._take(chunks[at], at, place, place + 1)
            self._seen[at] = None
            return
        for at, places in _by_chunk(rows).items():
            self._seen[at] = None
            first, last = min(places), max(places) + 1
            if last - first <= NEAR * len(places):
                self._take(chunks[at], at, first, last)
                continue
            for place in places:
                self._take(chunks[at], at, place, place + 1)

    def changed_since(self, seen: int, out: I32) -> int:
        """Rows changed at or after log position `seen`, each once, written to `out` [rows]; how many."""
        if seen < self._base:
            out[: self.rows] = np.arange(self.rows, dtype=np.int32)
            return self.rows
        since = self._base + self._end - seen
        if since == 1:
            out[0] = self.cells.log[self._end - 1]  # what was logged last is the last of its row
        if since < 2:
            return since
        if since <= FEW:
            return changed_since_plain(self.cells, self._base, self._end, seen, out)
        return self._changed_since(self.cells, self._base, self._end, seen, out)

    def imagine(self, row: int, shape: Shape, mask: int) -> int:
        """The spare row made to look like `row` with `shape` given back on the cards `mask`; its index."""
        cells, spare = self.cells, self.scratch
        for column in cells[:MIRRORED]:
            column[spare] = column[row]
        cells.cpu[spare] += shape.cpu
        cells.host[spare] += shape.host
        kind = int(cells.kind[row])
        for card in range(mask.bit_length()):
            if mask >> card & 1:
                full = cells.full[kind, card]
                back = full if shape.whole else np.array(shape.ask[kind], np.int32)
                cells.left[spare, card] = np.minimum(cells.left[spare, card] + back, full)
                if (cells.left[spare, card] == full).all():
                    cells.idle[spare] |= np.uint32(1 << card)
        cells.effective[spare] = effective_row(cells, spare)
        self._imagined -= 1
        cells.changed[spare] = self._imagined
        return spare

    def _take(self, chunk: NodeChunk, at: int, start: int, stop: int) -> None:
        self._make_room(stop - start)
        self._end = self._absorb(
            self.cells,
            chunk.kind,
            chunk.usable,
            chunk.idle,
            chunk.cpu,
            chunk.host,
            chunk.left,
            chunk.traffic,
            at * CHUNK,
            start,
            stop,
            self._base,
            self._end,
        )

    def _make_room(self, rows: int) -> None:
        """Drop the older half of the log when it is full; shapes not asked for since then start afresh."""
        log = self.cells.log
        if self._end + rows <= log.shape[0]:
            return
        half = self._end // 2
        log[: self._end - half] = log[half : self._end].copy()
        self._base += half
        self._end -= half

    def _fit(self, chunks: int, cards: int, rows: int) -> None:
        """Replace the arrays when the view has outgrown them."""
        room = chunks * CHUNK
        if room == self.scratch and cards == self.cells.left.shape[1]:
            self.rows = rows
            return
        self._base += self._end
        self._end = 0
        log = max(1 << 15, 8 * room)
        self.cells = blank_cells(room + 1, cards, log, full_table(self.hardware, cards))
        self.scratch = room
        self._seen = [None] * chunks
        self.rows = rows
        self.generation += 1


def _by_chunk(rows: Iterable[int]) -> dict[int, dict[int, None]]:
    """The places of `rows` by chunk, each once."""
    found: dict[int, dict[int, None]] = {}
    for row in rows:
        at, place = divmod(row, CHUNK)
        found.setdefault(at, {})[place] = None
    return found


def full_table(hardware: Sequence[Hardware], cards: int) -> I32:
    """[kinds, cards, DIMS] what an idle card has."""
    table = np.zeros((len(hardware), cards, DIMS), np.int32)
    for kind, facts in enumerate(hardware):
        for card, full in enumerate(facts.full[:cards]):
            table[kind, card] = full
    return table


def _engine(compiled: bool) -> tuple[Absorb, ChangedSince]:
    if not compiled:
        return absorb_plain, changed_since_plain
    from aliquot.core.placement.kernels import sync

    return sync.absorb, sync.changed_since


def absorb_plain(
    cells: Cells,
    kind: I32,
    usable: U32,
    idle: U32,
    cpu: I64,
    host: I64,
    left: I32,
    traffic: I32,
    first: int,
    start: int,
    stop: int,
    base: int,
    end: int,
) -> int:
    """The twin of `kernels.sync.absorb`."""
    columns: tuple[tuple[Column, Column], ...] = (
        (cells.kind, kind),
        (cells.usable, usable),
        (cells.idle, idle),
        (cells.cpu, cpu),
        (cells.host, host),
        (cells.left, left),
        (cells.traffic, traffic),
    )
    here, there = slice(first + start, first + stop), slice(start, stop)
    differs = cells.changed[here] < 0
    for mine, theirs in columns:
        differs |= (mine[here] != theirs[there]).reshape(stop - start, -1).any(axis=1)
    for at in np.flatnonzero(differs).tolist():
        row, place = first + start + at, start + at
        for mine, theirs in columns:
            mine[row] = theirs[place]
        cells.effective[row] = effective_row(cells, row)
        cells.log[end] = row
        cells.changed[row] = base + end
        end += 1
    return end


def changed_since_plain(cells: Cells, base: int, end: int, seen: int, out: I32) -> int:
    """The twin of `kernels.sync.changed_since`."""
    listed = cells.log[seen - base : end].tolist()
    rows = [row for at, row in enumerate(listed, seen) if cells.changed[row] == at]
    out[: len(rows)] = rows
    return len(rows)


def effective_row(cells: Cells, row: int) -> list[int]:
    kind, usable, idle = int(cells.kind[row]), int(cells.usable[row]), int(cells.idle[row])
    result = []
    for card, left in enumerate(cells.left[row].tolist()):
        if kind < 0 or not usable >> card & 1:
            result.append(0)
            continue
        of: Ask = tuple(cells.full[kind, card].tolist())
        value = effective(tuple(left), of)
        result.append(value if value < 1000 or idle >> card & 1 else 999)
    return result
