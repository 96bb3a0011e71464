"""What a meter read over its window: sums, and every class's counts and times. Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum

import msgspec

from aliquot.core.ids import CardId
from aliquot.core.report.cells import COUNTS, Cell, ClassKey
from aliquot.core.report.claims import QueueReading
from aliquot.core.report.gauges import Totals
from aliquot.core.report.lives import Life, Lives
from aliquot.core.steps import Cause


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
    most: int = 0  # that ever waited at once


class CellReading(msgspec.Struct, frozen=True):
    """One class of jobs; see `cells.Cell`. Times in ms, sums in milli-card ms, in the window.

    `waits` are of the jobs that started, `runs`, `turnarounds` and `rhos` of those that succeeded, in one
    order. Attempts under way count in `held`, `unready` and `restart` up to the end of the window, and who is
    past a promised time without having kept it counts as having missed it.
    """

    key: ClassKey
    submitted: int
    placed: int
    started: int
    finished: int
    failed: int
    cancelled: int
    withdrawn: int
    attempts: int
    lost: int
    refused: int
    moved: int
    resized: int
    evicted_again: int
    evicted_for_others: int
    hindered: int
    short: int
    slowed: int
    together: int
    over_held: int
    scattered: int
    passed: int
    start_met: int
    start_missed: int
    finish_met: int
    finish_missed: int
    held: int
    unready: int
    restart: int
    lost_work: int
    waiting: int
    evicted: tuple[tuple[Cause, int], ...]  # by cause, in the order of `Cause`
    booked_milli: int
    busy_milli: int
    dark_milli: int
    gflops: int  # x ms: of jobs that report, what they did
    peak_gflops: int  # x ms: and what the cards they held could do at most
    lag: int  # milli-card ms' worth of speed that neighbours cost
    waits: tuple[int, ...]
    waits_again: tuple[int, ...]
    recoveries: tuple[int, ...]
    runs: tuple[int, ...]
    turnarounds: tuple[int, ...]
    rhos: tuple[int, ...]


class Readings(msgspec.Struct, frozen=True):
    """Everything a scorecard is made from."""

    window: Window
    totals: Totals
    cells: tuple[CellReading, ...]  # by class
    card_milli_ms: tuple[tuple[CardId, int], ...]  # booked milli-cards x ms, in order of appearance
    waiting: Waiting
    queues: tuple[QueueReading, ...] = ()
    stated: bool = False  # whether any queue has a quota
    overpromised_ms: int | None = None  # the pool had less than the nominals below it; None: there are none
    crowd_ms: int = 0  # nearly all cards in use for a while, and jobs waiting or slowed meanwhile
    crowds: tuple[tuple[str, int], ...] = ()  # the same by the queue of the jobs
    speeds_known: bool = True  # whether the speed of jobs where they run is known


def read_cell(cell: Cell, at: int, more: Mapping[str, int]) -> CellReading:
    """The state of one class at `at`; `more`: what jobs that are not over add to its counts."""
    share = cell.share
    return CellReading(
        **{name: getattr(cell, name) + more.get(name, 0) for name in COUNTS},
        key=cell.key,
        waiting=more.get("waiting", 0),
        evicted=tuple((cause, cell.evicted[cause]) for cause in Cause if cause in cell.evicted),
        booked_milli=share.booked.until(at),
        busy_milli=share.busy.until(at),
        dark_milli=share.dark.until(at),
        gflops=cell.gflops.until(at),
        peak_gflops=cell.peak.until(at),
        lag=cell.lag.until(at),
        waits=tuple(cell.waits),
        waits_again=tuple(cell.waits_again),
        recoveries=tuple(cell.recoveries),
        runs=tuple(cell.runs),
        turnarounds=tuple(cell.turnarounds),
        rhos=tuple(cell.rhos),
    )


def read_cells(lives: Lives, at: int) -> tuple[CellReading, ...]:
    """Every class, in the order of their keys."""
    more: dict[ClassKey, Counter[str]] = {key: Counter() for key in lives.cells}
    for life in lives.open.values():
        _add_open(more[life.cell.key], life, at, lives.start)
    return tuple(read_cell(cell, at, more[key]) for key, cell in sorted(lives.cells.items()))


def read_waiting(lives: Lives, at: int, most: int = 0) -> Waiting:
    """How many jobs wait, and how long the longest has; `most`: that ever waited at once."""
    ages = [at - life.job.submitted_ms for life in lives.waiting()]
    return Waiting(len(ages), max(ages, default=None), most)


def _add_open(more: Counter[str], life: Life, at: int, start: int) -> None:
    """What a job that is not over adds to its class up to `at`."""
    bound = life.job.bound
    if life.granted_ms is None:
        more["waiting"] += 1
        more["scattered"] += life.is_scattered(at)
    else:
        toll = life.toll(at, start)
        more["held"] += toll.held
        more["unready"] += toll.unready
        more["restart"] += toll.restart
    if bound.start_by_ms is not None and life.started_ms is None:
        more["start_missed"] += at > bound.start_by_ms
    if bound.finish_by_ms is not None:
        more["finish_missed"] += at > bound.finish_by_ms
