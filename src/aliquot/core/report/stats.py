"""Means, variances, percentiles and ratios of integers: exact before the one division; None of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SHORTEST_RUN_MS: Final = 10_000
"""Bounded slowdown takes no run as shorter than this, so that trivial jobs do not rule the mean."""


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


def jain(values: Sequence[float]) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 where all are alike, 1/n where one has everything.

    Of 1, 1, 2: 16 / 18. None of nothing, and where all are 0.
    """
    most = max(values, default=0.0)
    if most <= 0:
        return None
    parts = [value / most for value in values]  # so that squares neither vanish nor overflow
    return min(1.0, sum(parts) ** 2 / (len(parts) * sum(part * part for part in parts)))


def rho_milli(taken_ms: int, exclusive_ms: int, contention_milli: int) -> int:
    """Finish-time fairness in thousandths: time taken over the time with one's fair part alone.

    Alone it takes its run time (10 s at least) times the contention, the cards all jobs ask for over the
    cards there are, on average over its life and at least 1. 1 h of run at contention 2 that took 3 h: 1500.
    """
    alone = max(exclusive_ms, SHORTEST_RUN_MS) * max(1000, contention_milli)
    return taken_ms * 1_000_000 // alone


def ratio(numerator: int, denominator: int) -> float | None:
    """A quotient; None over nothing."""
    return numerator / denominator if denominator else None
