"""What the charts of a report are drawn from: bounded, frozen values, the same in JSON and in HTML.

Shares are thousandths, or None where there was nothing to take a share of. Columns are equal
stretches of time.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import Final

import msgspec

from aliquot.core.report.readings import Readings


class RowUnit(Enum):
    """What one row of the heat map is."""

    CARD = "card"
    NODE = "node"
    NODES = "nodes"  # neighbours in the node order


class HeatMap(msgspec.Struct, frozen=True):
    """How much of each row was booked: `cells[row][column]`, None where its cards were not up."""

    unit: RowUnit
    rows: tuple[str, ...]
    start_ms: int
    width_ms: int
    cells: tuple[tuple[int | None, ...], ...]


class Course(msgspec.Struct, frozen=True):
    """Means over the columns: shares of the cards that are up, and how many jobs waited."""

    start_ms: int
    width_ms: int
    allocation: tuple[int | None, ...]
    utilisation: tuple[int | None, ...]
    waiting: tuple[float, ...]


class LoadPoint(msgspec.Struct, frozen=True):
    """The site when `percent` of its capacity had been asked for in all: mean over the arrivals there."""

    percent: int
    allocation: float | None
    fragmentation: float | None


class FragmentPoint(msgspec.Struct, frozen=True):
    """One sample: FGD's rate, 1 - largest block / free cards, stranded cards."""

    at_ms: int
    rate: float | None
    scatter: float | None
    stranded_cards: int


class Segment(msgspec.Struct, frozen=True):
    """One attempt of a job: when it held its pieces, and where. `end_ms` None: it still does."""

    start_ms: int
    end_ms: int | None
    nodes: tuple[str, ...]


class Bar(msgspec.Struct, frozen=True):
    """One job. `outcome` is its phase at the end of the window."""

    job: str
    stage: str
    queue: str
    width: str
    submitted_ms: int
    started_ms: int | None
    end_ms: int | None
    outcome: str
    moves: int
    segments: tuple[Segment, ...]


class Gantt(msgspec.Struct, frozen=True):
    """The first jobs in order of submission; `left_out` more are not shown."""

    bars: tuple[Bar, ...]
    left_out: int


class WaitBins(msgspec.Struct, frozen=True):
    """Jobs that started, by how long they had waited: bin i is below `edges_ms[i]`, the last is open."""

    edges_ms: tuple[int, ...]
    counts: tuple[int, ...]
    by_stage: tuple[tuple[str, tuple[int, ...]], ...]


class Timeline(msgspec.Struct, frozen=True):
    """All that is drawn of one run."""

    course: Course
    load: tuple[LoadPoint, ...]
    fragments: tuple[FragmentPoint, ...]
    heat: HeatMap
    gantt: Gantt
    waits: WaitBins


_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
WAIT_EDGES_MS: Final = (
    _SECOND, 10 * _SECOND, _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE, _HOUR, 2 * _HOUR, 4 * _HOUR,
    12 * _HOUR, _DAY, 3 * _DAY,
)  # fmt: skip  # a scale reads as one line


def bin_waits(readings: Readings) -> WaitBins:
    """The waits of `readings` on the fixed scale, in all and by stage."""
    counts: dict[str, list[int]] = {}
    for cell in readings.cells:
        bins = counts.setdefault(cell.key.stage, [0] * (len(WAIT_EDGES_MS) + 1))
        for wait in cell.waits:
            bins[_bin_of(wait)] += 1
    total = tuple(map(sum, zip(*counts.values(), strict=True))) or (0,) * (len(WAIT_EDGES_MS) + 1)
    stages = tuple((stage, tuple(counts[stage])) for stage in sorted(counts))
    return WaitBins(WAIT_EDGES_MS, total, stages)


def _bin_of(wait_ms: int) -> int:
    """A wait of exactly an edge is not below it."""
    return bisect_right(WAIT_EDGES_MS, wait_ms)
