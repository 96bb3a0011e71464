"""Jobs divided by stage, by queue and by width: how each class fared. Made from the readings of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from aliquot.core.report.cells import BANDS, band_of
from aliquot.core.report.readings import CellReading
from aliquot.core.report.stats import bounded_slowdown, mean, percentile, ratio, variance
from aliquot.core.units import FULL

HOUR_MS: Final = 3_600_000
UNFAIR_MILLI: Final = 1050
"""Finish-time fairness above which a job was treated unfairly, in thousandths (Shockwave's threshold)."""


class ClassScore(msgspec.Struct, frozen=True):
    """One stage, queue or width. Counts add up to the whole, `allocated_card_hours` too."""

    name: str
    jobs: int
    placed: int
    finished: int
    waiting: int
    withdrawn: int
    evicted: int
    allocated_card_hours: float
    utilisation_allocated: float | None
    goodput: float | None
    mfu: float | None
    neighbour_card_hours: float  # worth of speed that neighbours on shared cards cost
    wait_mean_ms: float | None
    wait_p50_ms: int | None
    wait_p95_ms: int | None
    wait_p99_ms: int | None
    wait_max_ms: int | None
    wait_variance_ms2: float | None  # to be shown beside the mean only
    slowdown: float | None
    unfair: float | None
    completion_mean_ms: float | None


class PerClass(msgspec.Struct, frozen=True):
    """The same jobs divided four ways; bands are widths as they are usually told apart."""

    stage: tuple[ClassScore, ...] = ()
    queue: tuple[ClassScore, ...] = ()
    width: tuple[ClassScore, ...] = ()
    band: tuple[ClassScore, ...] = ()


def per_class(cells: Sequence[CellReading]) -> PerClass:
    """All cells, four ways."""
    return PerClass(
        stage=_classes(cells, lambda cell: cell.key.stage),
        queue=_classes(cells, lambda cell: cell.key.queue),
        width=_classes(cells, lambda cell: cell.key.width),
        band=_classes(cells, lambda cell: band_of(cell.key.width)),
    )


def score_class(name: str, cells: Sequence[CellReading]) -> ClassScore:
    """How the jobs of `cells` fared together."""
    waits = merged(cells, lambda cell: cell.waits)
    booked = total(cells, "booked_milli")
    return ClassScore(
        name=name,
        jobs=total(cells, "submitted"),
        placed=total(cells, "placed"),
        finished=total(cells, "finished"),
        waiting=total(cells, "waiting"),
        withdrawn=total(cells, "withdrawn"),
        evicted=sum(count for cell in cells for _, count in cell.evicted),
        allocated_card_hours=booked / (FULL * HOUR_MS),
        utilisation_allocated=ratio(total(cells, "busy_milli"), booked - total(cells, "dark_milli")),
        goodput=goodput(cells),
        mfu=mfu(cells),
        neighbour_card_hours=total(cells, "lag") / (FULL * HOUR_MS),
        wait_mean_ms=mean(waits),
        wait_p50_ms=percentile(waits, 50),
        wait_p95_ms=percentile(waits, 95),
        wait_p99_ms=percentile(waits, 99),
        wait_max_ms=waits[-1] if waits else None,
        wait_variance_ms2=variance(waits),
        slowdown=slowdown(cells),
        unfair=unfair(cells),
        completion_mean_ms=mean(merged(cells, lambda cell: cell.turnarounds)),
    )


def total(cells: Iterable[CellReading], field: str) -> int:
    """The sum of one count."""
    return sum(getattr(cell, field) for cell in cells)


def merged(cells: Iterable[CellReading], times: Callable[[CellReading], Sequence[int]]) -> list[int]:
    """All times of one kind, ascending."""
    return sorted(value for cell in cells for value in times(cell))


def slowdown(cells: Iterable[CellReading]) -> float | None:
    """Mean bounded slowdown of the jobs that succeeded."""
    slowdowns = [
        bounded_slowdown(turnaround, run)
        for cell in cells
        for turnaround, run in zip(cell.turnarounds, cell.runs, strict=True)
    ]
    return math.fsum(slowdowns) / len(slowdowns) if slowdowns else None


def goodput(cells: Sequence[CellReading]) -> float | None:
    """Of the card time that attempts held, the part in which they made progress that stayed.

    10 card-h held, of which 1 restarting and 2 lost at an eviction: 0.7.
    """
    useless = sum(cell.unready + cell.restart + cell.lost_work for cell in cells)
    held = total(cells, "held")
    return ratio(held - useless, held)


def mfu(cells: Sequence[CellReading]) -> float | None:
    """What models did of what the cards held for them could do at most; None where no job reports that."""
    return ratio(total(cells, "gflops"), total(cells, "peak_gflops"))


def unfair(cells: Sequence[CellReading]) -> float | None:
    """Of the jobs that succeeded, those that took over 1.05 times what their fair part alone would take."""
    count = sum(len(cell.rhos) for cell in cells)
    return ratio(sum(rho > UNFAIR_MILLI for cell in cells for rho in cell.rhos), count)


def _classes(cells: Sequence[CellReading], name_of: Callable[[CellReading], str]) -> tuple[ClassScore, ...]:
    groups: dict[str, list[CellReading]] = {}
    for cell in cells:
        groups.setdefault(name_of(cell), []).append(cell)
    return tuple(score_class(name, groups[name]) for name in sorted(groups, key=_by_width))


def _by_width(name: str) -> tuple[int, str]:
    """Numbers and bands by size, behind names: `cpu`, `shared`, `2`, `5-7`, `10`."""
    least = name.rstrip("+").partition("-")[0]
    return (int(least), "") if least.isdigit() and (name.isdigit() or name in BANDS) else (0, name)
