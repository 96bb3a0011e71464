"""Four goals and their weights into values of a policy: what a stage or a site cares for, as numbers.

Weights are thousandths that add up to 1000. At a quarter each every value has its default here; a value then
grows or shrinks with the weight of its goal in proportion, within bounds that keep it sensible.

    performance    jobs by size before submit time, once it outweighs fairness
    utilisation    backfill that trusts estimates more, more reservations, more moves to make room
    fairness       past use counts, and longer back in comparison the less it weighs; sooner reservations for
                   those who wait; priority that rises with waiting; borrowed quota is taken back
    stability      jobs are left alone for longer, get more time to stop, are stopped less often; moves must
                   gain more; with more than half of the weight nothing is stopped for another
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from aliquot.core.settings import (
    HOUR_MS,
    Backfill,
    Objectives,
    Order,
    Preemption,
    Rescue,
    Settings,
)

QUARTER: Final = 250
WHOLE: Final = 1000
MINUTE_MS: Final = 60_000


class Preset(NamedTuple):
    """Weights with a name, for a stage of work or a kind of site."""

    name: str
    about: str
    objectives: Objectives


def _preset(name: str, about: str, *weights: int) -> Preset:
    return Preset(name, about, Objectives(*weights))


# name, what for; performance, utilisation, fairness, stability
PRESETS: Final = (
    _preset("development", "many people, short turns: everybody gets some soon", 250, 250, 400, 100),
    _preset("training", "long jobs on many cards: work done, few cards idle", 350, 350, 150, 150),
    _preset("inference", "services that have to stay up", 300, 150, 100, 450),
    _preset("balanced", "nothing outweighs the rest", 250, 250, 250, 250),
    _preset("internal-platform", "teams share one site: full cards, fair shares", 150, 350, 350, 150),
    _preset("latency-service", "a site that answers users: fast and steady first", 400, 100, 100, 400),
)


class Values(NamedTuple):
    """What weights come to."""

    order: Order
    backfill: Backfill
    preemption: Preemption | None
    rescue: Rescue


def weigh(objectives: Objectives) -> Values:
    """The values of a policy that follow from weights: pure, the same for the same weights.

    With fairness 400: half-life 24 h x 250 / 400 = 15 h, and a reservation after 18 h x 250 / 400 = 11.25 h.
    """
    return Values(_order(objectives), _backfill(objectives), _preemption(objectives), _rescue(objectives))


def weighed(settings: Settings, objectives: Objectives) -> Settings:
    """`settings` with all that follows from `objectives`."""
    values = weigh(objectives)
    return replace(settings, objectives=objectives, **values._asdict())


def _order(goals: Objectives) -> Order:
    fair = goals.fairness_milli
    if not fair:
        return Order(half_life_ms=0, by_size=goals.performance_milli > 0)
    return Order(
        aging_ms=_shrink(HOUR_MS, fair, 10 * MINUTE_MS, 24 * HOUR_MS),
        half_life_ms=_shrink(24 * HOUR_MS, fair, 2 * HOUR_MS, 7 * 24 * HOUR_MS),
        by_size=goals.performance_milli > fair,
    )


def _backfill(goals: Objectives) -> Backfill:
    fair, use = goals.fairness_milli, goals.utilisation_milli
    return Backfill(
        by_size=goals.performance_milli >= fair,
        overdue_ms=_shrink(18 * HOUR_MS, fair, HOUR_MS, 72 * HOUR_MS),
        overdue_wide_ms=_shrink(9 * HOUR_MS, fair, HOUR_MS // 2, 36 * HOUR_MS),
        reservations=_grow(8, use, 1, 32),
        doubt_milli=_shrink(3000, use, 1000, 6000),
    )


def _preemption(goals: Objectives) -> Preemption | None:
    steady = goals.stability_milli
    if steady > WHOLE // 2:
        return None
    return Preemption(
        reclaim=goals.fairness_milli > 0,
        least_run_ms=_grow(10 * MINUTE_MS, steady, 0, 60 * MINUTE_MS),
        grace_ms=_grow(30_000, steady, 10_000, 120_000),
        most_evictions=_shrink(5, steady, 1, 10),
    )


def _rescue(goals: Objectives) -> Rescue:
    steady = goals.stability_milli
    thousandths = _grow(30, goals.utilisation_milli, 0, 100)
    return Rescue(
        share=thousandths / WHOLE,
        worth_milli=_shrink(1000, steady, 250, 1000),
        tidy_gain=_grow(30, steady, 10, 120),
    )


def _grow(usual: int, weight: int, least: int, most: int) -> int:
    """`usual` at a quarter, twice that at a half."""
    return min(most, max(least, usual * weight // QUARTER))


def _shrink(usual: int, weight: int, least: int, most: int) -> int:
    """`usual` at a quarter, half of that at a half; `most` without any weight."""
    return min(most, max(least, usual * QUARTER // weight)) if weight else most
