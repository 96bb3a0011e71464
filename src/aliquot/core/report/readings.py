"""What a meter read over its window: sums, and every class's counts and times. Values only."""

from __future__ import annotations

from collections import Counter
from enum import Enum

import msgspec

from aliquot.core.ids import CardId
from aliquot.core.report.gauges import Totals
from aliquot.core.report.lives import Cell, ClassKey, Lives


class WindowRule(Enum):
    """Why the window ends where it does."""

    GIVEN = "given"
    LAST_COMPLETION = "last completion"  # nothing was held any more
    LAST_EVENT = "last event"  # something is held still, or nothing ever ended


class Window(msgspec.Struct, frozen=True):
    """The time that was measured, in ms."""

    start_ms: int
    end_ms: int
    rule: WindowRule

    @property
    def length_ms(self) -> int:
        """End minus start."""
        return self.end_ms - self.start_ms


class Waiting(msgspec.Struct, frozen=True):
    """Jobs that had not started (again) when the readings were taken. They are no part of any wait."""

    jobs: int = 0
    oldest_ms: int | None = None  # since its submission


class CellReading(msgspec.Struct, frozen=True):
    """One class of jobs. Times in ms, sums in milli-card ms; `waits` are of the jobs that started."""

    key: ClassKey
    submitted: int
    placed: int
    started: int
    finished: int
    failed: int
    cancelled: int
    withdrawn: int
    waiting: int
    attempts: int
    lost: int
    refused: int
    moved: int
    booked_milli: int
    busy_milli: int
    dark_milli: int
    waits: tuple[int, ...]
    runs: tuple[int, ...]
    turnarounds: tuple[int, ...]


class Readings(msgspec.Struct, frozen=True):
    """Everything a scorecard is made from."""

    window: Window
    totals: Totals
    cells: tuple[CellReading, ...]  # by class
    card_milli_ms: tuple[tuple[CardId, int], ...]  # booked milli-cards x ms, in order of appearance
    waiting: Waiting


def read_cell(cell: Cell, at: int, waiting: int) -> CellReading:
    """The state of one class at `at`."""
    share = cell.share
    return CellReading(
        key=cell.key,
        submitted=cell.submitted,
        placed=cell.placed,
        started=cell.started,
        finished=cell.finished,
        failed=cell.failed,
        cancelled=cell.cancelled,
        withdrawn=cell.withdrawn,
        waiting=waiting,
        attempts=cell.attempts,
        lost=cell.lost,
        refused=cell.refused,
        moved=cell.moved,
        booked_milli=share.booked.until(at),
        busy_milli=share.busy.until(at),
        dark_milli=share.dark.until(at),
        waits=tuple(cell.waits),
        runs=tuple(cell.runs),
        turnarounds=tuple(cell.turnarounds),
    )


def read_cells(lives: Lives, at: int) -> tuple[CellReading, ...]:
    """Every class, in the order of their keys."""
    waiting = Counter(life.cell.key for life in lives.waiting())
    return tuple(read_cell(cell, at, waiting[key]) for key, cell in sorted(lives.cells.items()))


def read_waiting(lives: Lives, at: int) -> Waiting:
    """How many jobs wait, and how long the longest has."""
    ages = [at - life.job.submitted_ms for life in lives.waiting()]
    return Waiting(len(ages), max(ages, default=None))
