"""The scorecard of one run: ratios and statistics of what the meter read.

Everything before the last division is an exact integer. `None` is unknown, never 0: no job finished, a price
or an activity is not known, nothing was sampled. What each figure means stands in `metrics.METRICS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aliquot.core.jobs import Stage
from aliquot.core.report.cells import is_wide
from aliquot.core.report.charts import LoadPoint
from aliquot.core.report.classes import (
    HOUR_MS,
    ClassScore,
    PerClass,
    goodput,
    merged,
    mfu,
    per_class,
    slowdown,
    total,
    unfair,
)
from aliquot.core.report.divided import Division, QueueScore, divide
from aliquot.core.report.failures import FailureCount, count_failures
from aliquot.core.report.readings import CellReading, Readings, Window, WindowRule
from aliquot.core.report.stats import mean, percentile, ratio, variance
from aliquot.core.steps import Cause
from aliquot.core.units import FULL

__all__ = ["ClassScore", "PerClass", "Scorecard", "score"]

MINUTE_MS: Final = 60_000

Parts = dict[str, Any]
"""Fields of a scorecard; which of them are numbers, counts or unknown is settled where it is put together."""


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
    wait_wide_ms: float | None  # of jobs of 8 whole cards or more
    wait_again_ms: float | None
    slowdown: float | None
    unfair: float | None
    rho_mean: float | None
    rho_p95: float | None
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
    resized: int
    together: int
    waiting_oldest_ms: int | None
    scattered_ms: int  # how long the widest waiting request fitted the sum of free cards but no node
    crowded_ms: int  # how long it did not even fit the sum
    held_back_ms: int  # how long a node had the cards, and it waited for its turn, cpu, memory or links
    busy_card_hours: float
    allocated_card_hours: float
    surplus_card_hours: float
    stranded_card_hours: float
    quota_satisfaction: float | None
    borrowed: float | None
    jain: float | None
    overdrawn_ms: int | None  # the longest that a queue used more than it may; None without quotas
    overpromised_ms: int | None  # how long the pool had less than the nominals add up to
    goodput: float | None
    mfu: float | None  # None: no job reports its throughput, or the peak of its cards is not known
    crowd_ms: int  # nearly all cards in use for ten minutes or more, and jobs waiting or slowed meanwhile
    neighbour_card_hours: float | None  # worth of speed that neighbours on shared cards cost; None: unknown
    evicted: int
    evicted_by_cause: dict[str, int]
    evicted_again: int
    lost_work_card_minutes: float
    restart_card_minutes: float
    unready_card_minutes: float
    recovery_ms: float | None
    start_by_met: float | None
    finish_by_met: float | None
    failures: tuple[FailureCount, ...]
    queues: tuple[QueueScore, ...]
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
    division = divide(readings)
    parts = {
        **_use(readings),
        **_waste(readings),
        **_times(readings),
        **_fairness(readings.cells, division),
        "overpromised_ms": readings.overpromised_ms,
        "crowd_ms": readings.crowd_ms,
        "neighbour_card_hours": total(readings.cells, "lag") / (FULL * HOUR_MS)
        if readings.speeds_known
        else None,
        **_stops(readings.cells),
        **_counts(readings.cells),
        "fragmentation": fragmentation,
        "never": never,
        "allocation_full": next((point.allocation for point in load if point.percent == 100), None),
        "allocation_last": load[-1].allocation if load else None,
        "failures": count_failures(readings, division),
        "queues": division.queues,
        "per_class": per_class(readings.cells),
    }
    return Scorecard(**parts)


def _use(readings: Readings) -> Parts:
    totals, window = readings.totals, readings.window
    return {
        "window_start_ms": window.start_ms,
        "window_end_ms": window.end_ms,
        "window_rule": window.rule,
        "cards": ratio(totals.up_milli, window.length_ms * FULL),
        "allocation": ratio(totals.booked_milli, totals.up_milli),
        "utilisation": None if totals.dark_milli else ratio(totals.busy_milli, totals.up_milli),
        "utilisation_allocated": ratio(totals.busy_milli, totals.booked_milli - totals.dark_milli),
        "activity_unknown": ratio(totals.dark_milli, totals.booked_milli),
        "memory_occupancy": ratio(totals.asked_mib, totals.up_mib),
        "memory_booked": ratio(totals.booked_mib, totals.up_mib),
        "busy_card_hours": totals.busy_milli / (FULL * HOUR_MS),
        "allocated_card_hours": totals.booked_milli / (FULL * HOUR_MS),
    }


def _waste(readings: Readings) -> Parts:
    totals, length = readings.totals, readings.window.length_ms
    priced = not totals.unpriced_cards
    return {
        "idle_cards": ratio(totals.idle_cards, length),
        "surplus_cards": ratio(totals.surplus_milli, length * FULL),
        "idle_money_cents": ratio(totals.idle_cents, length) if priced else None,
        "surplus_money_cents": ratio(totals.surplus_millicents, length * 1000) if priced else None,
        "scatter": ratio(totals.free_cards - totals.largest_cards, totals.free_cards),
        "blocked_card_hours": totals.blocked_cards / HOUR_MS,
        "stranded_cards": ratio(totals.stranded_cards, length),
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
    waits = merged(cells, _waits)
    return {
        "makespan_ms": _makespan(readings.window),
        "wait_mean_ms": mean(waits),
        "wait_p50_ms": percentile(waits, 50),
        "wait_p95_ms": percentile(waits, 95),
        "wait_p99_ms": percentile(waits, 99),
        "wait_max_ms": waits[-1] if waits else None,
        "wait_variance_ms2": variance(waits),
        "wait_training_ms": mean(merged(training, _waits)),
        "wait_wide_ms": mean(merged([cell for cell in cells if is_wide(cell.key.width)], _waits)),
        "wait_again_ms": mean(merged(cells, lambda cell: cell.waits_again)),
        "slowdown": slowdown(cells),
        "completion_mean_ms": mean(merged(cells, _turnarounds)),
        "completion_training_ms": mean(merged(training, _turnarounds)),
        "completion_inference_ms": mean(merged(inference, _turnarounds)),
        "waiting": readings.waiting.jobs,
        "waiting_oldest_ms": readings.waiting.oldest_ms,
    }


def _fairness(cells: Sequence[CellReading], division: Division) -> Parts:
    rhos = merged(cells, lambda cell: cell.rhos)
    mean_rho, p95 = mean(rhos), percentile(rhos, 95)
    return {
        "unfair": unfair(cells),
        "rho_mean": None if mean_rho is None else mean_rho / 1000,
        "rho_p95": None if p95 is None else p95 / 1000,
        "quota_satisfaction": division.satisfaction,
        "borrowed": division.borrowed,
        "jain": division.jain,
        "overdrawn_ms": division.overdrawn_ms,
        "start_by_met": _met(cells, "start"),
        "finish_by_met": _met(cells, "finish"),
    }


def _stops(cells: Sequence[CellReading]) -> Parts:
    causes = {cause.value: 0 for cause in Cause}
    for cell in cells:
        for cause, count in cell.evicted:
            causes[cause.value] += count
    minutes = FULL * MINUTE_MS
    return {
        "goodput": goodput(cells),
        "mfu": mfu(cells),
        "evicted": sum(causes.values()),
        "evicted_by_cause": {cause: count for cause, count in causes.items() if count},
        "evicted_again": total(cells, "evicted_again"),
        "lost_work_card_minutes": total(cells, "lost_work") / minutes,
        "restart_card_minutes": total(cells, "restart") / minutes,
        "unready_card_minutes": total(cells, "unready") / minutes,
        "recovery_ms": mean(merged(cells, lambda cell: cell.recoveries)),
    }


def _met(cells: Sequence[CellReading], what: str) -> float | None:
    """Of the promises that are decided, those kept."""
    met = total(cells, f"{what}_met")
    return ratio(met, met + total(cells, f"{what}_missed"))


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
        "resized",
        "together",
    )
    counts: Parts = {name: total(cells, name) for name in counted}
    return counts | {"jobs": total(cells, "submitted")}


def _makespan(window: Window) -> int | None:
    return window.length_ms if window.rule is WindowRule.LAST_COMPLETION else None


def _waits(cell: CellReading) -> Sequence[int]:
    return cell.waits


def _turnarounds(cell: CellReading) -> Sequence[int]:
    return cell.turnarounds
