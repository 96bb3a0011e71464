"""The scorecard of one run: ratios and statistics of what the meter read.

Everything before the last division is an exact integer. `None` is unknown, never 0: no job finished, a price
or an activity is not known, nothing was sampled. What each figure means stands in `metrics.METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from aliquot.core.jobs import Stage
from aliquot.core.report.charts import LoadPoint
from aliquot.core.report.readings import CellReading, Readings, Window, WindowRule
from aliquot.core.units import FULL

HOUR_MS: Final = 3_600_000
SHORTEST_RUN_MS: Final = 10_000
"""Bounded slowdown takes no run as shorter than this, so that trivial jobs do not rule the mean."""


Parts = dict[str, Any]
"""Fields of a scorecard; which of them are numbers, counts or unknown is settled where it is put together."""


class ClassScore(msgspec.Struct, frozen=True):
    """One stage, queue or width. Counts add up to the whole, `allocated_card_hours` too."""

    name: str
    jobs: int
    placed: int
    finished: int
    waiting: int
    withdrawn: int
    allocated_card_hours: float
    utilisation_allocated: float | None
    wait_mean_ms: float | None
    wait_p95_ms: int | None
    wait_max_ms: int | None
    completion_mean_ms: float | None


class PerClass(msgspec.Struct, frozen=True):
    """The same jobs divided three ways."""

    stage: tuple[ClassScore, ...] = ()
    queue: tuple[ClassScore, ...] = ()
    width: tuple[ClassScore, ...] = ()


class Scorecard(msgspec.Struct, frozen=True):
    """How well a run went. Shares are 0..1, times ms, money cents of capital."""

    window_start_ms: int
    window_end_ms: int
    window_rule: WindowRule
    cards: float | None  # mean number of cards whose node answered
    allocation: float | None
    allocation_full: float | None
    allocation_last: float | None
    utilisation: float | None
    utilisation_allocated: float | None
    activity_unknown: float | None
    memory_occupancy: float | None
    memory_booked: float | None
    idle_cards: float | None
    surplus_cards: float | None
    idle_money_cents: float | None
    surplus_money_cents: float | None
    fragmentation: float | None
    scatter: float | None
    blocked_card_hours: float
    stranded_cards: float | None
    lost_card_hours: float
    makespan_ms: int | None
    wait_mean_ms: float | None
    wait_p50_ms: int | None
    wait_p95_ms: int | None
    wait_p99_ms: int | None
    wait_max_ms: int | None
    wait_variance_ms2: float | None
    wait_training_ms: float | None
    slowdown: float | None
    completion_mean_ms: float | None
    completion_training_ms: float | None
    completion_inference_ms: float | None
    jobs: int
    placed: int
    finished: int
    failed: int
    waiting: int
    never: int | None
    withdrawn: int
    cancelled: int
    attempts: int
    lost: int
    refused: int
    moved: int
    waiting_oldest_ms: int | None
    scattered_ms: int  # how long the widest waiting request fitted the sum of free cards but no node
    crowded_ms: int  # how long it did not even fit the sum
    held_back_ms: int  # how long a node had the cards, and it waited for its turn, cpu, memory or links
    busy_card_hours: float
    allocated_card_hours: float
    surplus_card_hours: float
    stranded_card_hours: float
    per_class: PerClass


def score(
    readings: Readings,
    *,
    fragmentation: float | None = None,
    never: int | None = None,
    load: Sequence[LoadPoint] = (),
) -> Scorecard:
    """The scorecard of `readings`.

    `fragmentation`: FGD's rate as sampled by the caller. `never`: jobs that the planner found can never fit.
    `load`: allocation by offered load; given only for a replay in which nothing leaves.
    """
    parts = {
        **_use(readings),
        **_waste(readings),
        **_times(readings),
        **_counts(readings.cells),
        "fragmentation": fragmentation,
        "never": never,
        "allocation_full": next((point.allocation for point in load if point.percent == 100), None),
        "allocation_last": load[-1].allocation if load else None,
        "per_class": _per_class(readings.cells),
    }
    return Scorecard(**parts)


def mean(values: Sequence[int]) -> float | None:
    """The arithmetic mean, or None of nothing."""
    return sum(values) / len(values) if values else None


def variance(values: Sequence[int]) -> float | None:
    """The population variance, exact before the one division. Of 1, 2, 3: 2/3."""
    count = len(values)
    if not count:
        return None
    return (count * sum(value * value for value in values) - sum(values) ** 2) / (count * count)


def percentile(ordered: Sequence[int], percent: int) -> int | None:
    """Nearest rank: the least value that at least `percent` of them do not exceed. Of 1..20, 95: 19."""
    if not ordered:
        return None
    return ordered[-(-percent * len(ordered) // 100) - 1]


def bounded_slowdown(turnaround_ms: int, run_ms: int) -> float:
    """max(1, turnaround / max(run, 10 s)): 90 s of waiting before a run of 10 s is 10."""
    return max(1.0, turnaround_ms / max(run_ms, SHORTEST_RUN_MS))


def _use(readings: Readings) -> Parts:
    totals, window = readings.totals, readings.window
    return {
        "window_start_ms": window.start_ms,
        "window_end_ms": window.end_ms,
        "window_rule": window.rule,
        "cards": _ratio(totals.up_milli, window.length_ms * FULL),
        "allocation": _ratio(totals.booked_milli, totals.up_milli),
        "utilisation": None if totals.dark_milli else _ratio(totals.busy_milli, totals.up_milli),
        "utilisation_allocated": _ratio(totals.busy_milli, totals.booked_milli - totals.dark_milli),
        "activity_unknown": _ratio(totals.dark_milli, totals.booked_milli),
        "memory_occupancy": _ratio(totals.asked_mib, totals.up_mib),
        "memory_booked": _ratio(totals.booked_mib, totals.up_mib),
        "busy_card_hours": totals.busy_milli / (FULL * HOUR_MS),
        "allocated_card_hours": totals.booked_milli / (FULL * HOUR_MS),
    }


def _waste(readings: Readings) -> Parts:
    totals, length = readings.totals, readings.window.length_ms
    priced = not totals.unpriced_cards
    return {
        "idle_cards": _ratio(totals.idle_cards, length),
        "surplus_cards": _ratio(totals.surplus_milli, length * FULL),
        "idle_money_cents": _ratio(totals.idle_cents, length) if priced else None,
        "surplus_money_cents": _ratio(totals.surplus_millicents, length * 1000) if priced else None,
        "scatter": _ratio(totals.free_cards - totals.largest_cards, totals.free_cards),
        "blocked_card_hours": totals.blocked_cards / HOUR_MS,
        "stranded_cards": _ratio(totals.stranded_cards, length),
        "lost_card_hours": totals.lost_milli / (FULL * HOUR_MS),
        "scattered_ms": totals.scattered,
        "crowded_ms": totals.crowded,
        "held_back_ms": totals.held_back,
        "surplus_card_hours": totals.surplus_milli / (FULL * HOUR_MS),
        "stranded_card_hours": totals.stranded_cards / HOUR_MS,
    }


def _times(readings: Readings) -> Parts:
    cells = readings.cells
    training = [cell for cell in cells if cell.key.stage == Stage.TRAINING.value]
    inference = [cell for cell in cells if cell.key.stage == Stage.INFERENCE.value]
    waits = _merged(cells, _waits)
    return {
        "makespan_ms": _makespan(readings.window),
        "wait_mean_ms": mean(waits),
        "wait_p50_ms": percentile(waits, 50),
        "wait_p95_ms": percentile(waits, 95),
        "wait_p99_ms": percentile(waits, 99),
        "wait_max_ms": waits[-1] if waits else None,
        "wait_variance_ms2": variance(waits),
        "wait_training_ms": mean(_merged(training, _waits)),
        "slowdown": _slowdown(cells),
        "completion_mean_ms": mean(_merged(cells, _turnarounds)),
        "completion_training_ms": mean(_merged(training, _turnarounds)),
        "completion_inference_ms": mean(_merged(inference, _turnarounds)),
        "waiting": readings.waiting.jobs,
        "waiting_oldest_ms": readings.waiting.oldest_ms,
    }


def _counts(cells: Sequence[CellReading]) -> Parts:
    counted = (
        "placed",
        "finished",
        "failed",
        "withdrawn",
        "cancelled",
        "attempts",
        "lost",
        "refused",
        "moved",
    )
    counts: Parts = {name: sum(getattr(cell, name) for cell in cells) for name in counted}
    return counts | {"jobs": sum(cell.submitted for cell in cells)}


def _per_class(cells: Sequence[CellReading]) -> PerClass:
    return PerClass(
        stage=_classes(cells, lambda cell: cell.key.stage),
        queue=_classes(cells, lambda cell: cell.key.queue),
        width=_classes(cells, lambda cell: cell.key.width),
    )


def _classes(cells: Sequence[CellReading], name_of: Callable[[CellReading], str]) -> tuple[ClassScore, ...]:
    groups: dict[str, list[CellReading]] = {}
    for cell in cells:
        groups.setdefault(name_of(cell), []).append(cell)
    return tuple(_class(name, groups[name]) for name in sorted(groups, key=_by_width))


def _class(name: str, cells: Sequence[CellReading]) -> ClassScore:
    waits = _merged(cells, _waits)
    booked = sum(cell.booked_milli for cell in cells)
    dark = sum(cell.dark_milli for cell in cells)
    return ClassScore(
        name=name,
        jobs=sum(cell.submitted for cell in cells),
        placed=sum(cell.placed for cell in cells),
        finished=sum(cell.finished for cell in cells),
        waiting=sum(cell.waiting for cell in cells),
        withdrawn=sum(cell.withdrawn for cell in cells),
        allocated_card_hours=booked / (FULL * HOUR_MS),
        utilisation_allocated=_ratio(sum(cell.busy_milli for cell in cells), booked - dark),
        wait_mean_ms=mean(waits),
        wait_p95_ms=percentile(waits, 95),
        wait_max_ms=waits[-1] if waits else None,
        completion_mean_ms=mean(_merged(cells, _turnarounds)),
    )


def _by_width(name: str) -> tuple[int, str]:
    """Numbers by size, behind names: `cpu`, `shared`, `2`, `10`."""
    return (int(name), "") if name.isdigit() else (0, name)


def _slowdown(cells: Iterable[CellReading]) -> float | None:
    slowdowns = [
        bounded_slowdown(turnaround, run)
        for cell in cells
        for turnaround, run in zip(cell.turnarounds, cell.runs, strict=True)
    ]
    return math.fsum(slowdowns) / len(slowdowns) if slowdowns else None


def _makespan(window: Window) -> int | None:
    return window.length_ms if window.rule is WindowRule.LAST_COMPLETION else None


def _waits(cell: CellReading) -> Sequence[int]:
    return cell.waits


def _turnarounds(cell: CellReading) -> Sequence[int]:
    return cell.turnarounds


def _merged(cells: Iterable[CellReading], times: Callable[[CellReading], Sequence[int]]) -> list[int]:
    return sorted(value for cell in cells for value in times(cell))


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None
