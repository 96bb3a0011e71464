"""Copying changed rows of a chunk into the cells, and listing the rows that changed since a position."""

from __future__ import annotations

from aliquot.core.placement.cells import I32, I64, U32, Cells
from aliquot.core.placement.kernels.jit import compiled, inlined


@inlined
def effective_of(cells: Cells, row: int, card: int) -> int:
    """What `cells.effective` is to be of one card, as the other cells of the row are."""
    kind = cells.kind[row]
    if kind < 0 or not (cells.usable[row] >> card) & 1:
        return 0
    least = 1 << 30
    for dim in range(cells.left.shape[2]):
        of = cells.full[kind, card, dim]
        if of > 0:
            least = min(least, (cells.left[row, card, dim] * 1000 + of // 2) // of)
    if least == 1 << 30:
        return 0
    if least >= 1000 and not (cells.idle[row] >> card) & 1:
        return 999
    return least


@compiled
def absorb(
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
    """Copy rows start..stop of a chunk whose row 0 is node `first`, where they differ; the new log end.

    `base` is the log position of `log[0]`. Compares by content: a draft that was
    rolled back may show another row under the same version.
    """
    width = left.shape[1]
    dims = left.shape[2]
    for at in range(start, stop):
        row = first + at
        same = (
            cells.kind[row] == kind[at]
            and cells.usable[row] == usable[at]
            and cells.idle[row] == idle[at]
            and cells.cpu[row] == cpu[at]
            and cells.host[row] == host[at]
        )
        if same:
            for card in range(width):
                for dim in range(dims):
                    if cells.left[row, card, dim] != left[at, card, dim]:
                        same = False
            for edge in range(traffic.shape[1]):
                if cells.traffic[row, edge] != traffic[at, edge]:
                    same = False
        if same and cells.changed[row] >= 0:
            continue
        cells.kind[row] = kind[at]
        cells.usable[row] = usable[at]
        cells.idle[row] = idle[at]
        cells.cpu[row] = cpu[at]
        cells.host[row] = host[at]
        for edge in range(traffic.shape[1]):
            cells.traffic[row, edge] = traffic[at, edge]
        for card in range(width):
            for dim in range(dims):
                cells.left[row, card, dim] = left[at, card, dim]
            cells.effective[row, card] = effective_of(cells, row, card)
        cells.log[end] = row
        cells.changed[row] = base + end
        end += 1
    return end


@compiled
def changed_since(cells: Cells, base: int, end: int, seen: int, out: I32) -> int:
    """The rows whose last change is at or after position `seen`, each once, into `out`; how many.

    The caller has made sure that `seen >= base`.
    """
    count = 0
    for at in range(seen - base, end):
        row = cells.log[at]
        if cells.changed[row] == base + at:
            out[count] = row
            count += 1
    return count
