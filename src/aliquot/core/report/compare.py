"""Several runs side by side: the differences, which is better, and which integral explains it.

Runs of one policy under several seeds are one column of means with their least and greatest. The first column
is what the others are compared with. A sentence is only said where the numbers say it; see `wording`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec

from aliquot.core.report.metrics import METRIC_OF, METRICS, Better
from aliquot.core.report.result import RunResult
from aliquot.core.report.scorecard import Scorecard


class Spread(msgspec.Struct, frozen=True):
    """A figure over the runs of a column that know it."""

    mean: float
    least: float
    most: float
    known: int


class Column(msgspec.Struct, frozen=True):
    """All runs of one name in one scenario. `values` by metric id; None: unknown in every run."""

    scenario: str
    name: str
    seeds: tuple[int | None, ...]
    values: dict[str, Spread | None]


class Row(msgspec.Struct, frozen=True):
    """One metric across the columns. `changes[i]`: column i - column 0; `best`: which share the best."""

    metric: str
    changes: tuple[float | None, ...]
    best: tuple[int, ...]


class Reason(Enum):
    """What explains a difference."""

    SURPLUS = "surplus"  # whole cards held by jobs that asked for less
    SCATTERED = "scattered"  # free cards, but on too many nodes
    CROWDED = "crowded"  # too few free cards
    HELD_BACK = "held-back"  # cards were there; order, cpu, memory or links were not
    SAME_WORK = "same-work"  # the same work in another time
    OTHER_WORK = "other-work"  # more or less work done
    STRANDED = "stranded"
    FRAGMENTS = "fragments"
    LOST = "lost"
    MOVES = "moves"
    EVICTIONS = "evictions"  # running work stopped for others
    QUOTAS = "quotas"  # queues got more or less of what was their own
    SLOWER = "slower"  # a class of jobs pays for it


class Why(msgspec.Struct, frozen=True):
    """One explanation: `column` against column 0. `numbers` are what its sentence is made of."""

    reason: Reason
    column: int
    first: str
    other: str
    numbers: dict[str, float]


class Comparison(msgspec.Struct, frozen=True):
    """The whole."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    whys: tuple[Why, ...]


NOTICEABLE = 0.01
"""A share of the whole below which a difference is not spoken of."""

NOTICEABLE_MS = 60_000


def compare(results: Sequence[RunResult]) -> Comparison:
    """Columns in order of first appearance; no results make an empty comparison."""
    columns = tuple(_column(runs) for runs in group_runs(results))
    rows = tuple(_row(metric.id, columns) for metric in METRICS)
    whys = tuple(why for at in range(1, len(columns)) for why in explain(columns[0], columns[at], at))
    return Comparison(columns, rows, whys)


def group_runs(results: Iterable[RunResult]) -> list[list[RunResult]]:
    """Runs that differ only in their seed, together, in order of first appearance."""
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for result in results:
        groups.setdefault((result.scenario, result.name), []).append(result)
    return list(groups.values())


def explain(first: Column, other: Column, at: int) -> list[Why]:
    """What the numbers say about `other` (column `at`) against `first`."""
    found = []
    for reason, numbers in (
        (_work(first, other)),
        (Reason.SURPLUS, _surplus(first, other)),
        (Reason.SCATTERED, _times(first, other, "scattered_ms", "blocked_card_hours")),
        (Reason.CROWDED, _times(first, other, "crowded_ms")),
        (Reason.HELD_BACK, _times(first, other, "held_back_ms")),
        (Reason.FRAGMENTS, _shares(first, other, "fragmentation", "allocation")),
        (Reason.STRANDED, _stranded(first, other)),
        (Reason.LOST, _different(first, other, "lost_card_hours")),
        (Reason.MOVES, _different(first, other, "moved")),
        (Reason.EVICTIONS, _different(first, other, "evicted", "lost_work_card_minutes")),
        (Reason.QUOTAS, _shares(first, other, "quota_satisfaction")),
        (Reason.SLOWER, _slower(first, other)),
    ):
        if numbers:
            found.append(Why(reason, at, first.name, other.name, numbers))
    return found


def value_of(column: Column, field: str) -> float | None:
    """The mean of a figure over the runs of a column."""
    spread = column.values.get(field)
    return None if spread is None else spread.mean


# --- columns and rows --------------------------------------------------------------------------------------

_SUPPORT = (
    "busy_card_hours", "allocated_card_hours", "surplus_card_hours", "stranded_card_hours", "scattered_ms",
    "crowded_ms", "held_back_ms", "cards",
)  # fmt: skip  # one list, not one name a line
"""Fields of a scorecard that are no metric of their own but explain one."""


def _column(runs: list[RunResult]) -> Column:
    cards = [run.scorecard for run in runs]
    fields = (*(metric.id for metric in METRICS), *_SUPPORT)
    values = {field: _spread(cards, field) for field in fields}
    return Column(runs[0].scenario, runs[0].name, tuple(run.seed for run in runs), values)


def _spread(cards: Sequence[Scorecard], field: str) -> Spread | None:
    known = [value for card in cards if (value := getattr(card, field)) is not None]
    if not known:
        return None
    return Spread(sum(known) / len(known), min(known), max(known), len(known))


def _row(metric: str, columns: Sequence[Column]) -> Row:
    means = [value_of(column, metric) for column in columns]
    first = means[0] if means else None
    changes = tuple(None if first is None or mean is None else mean - first for mean in means)
    known = [mean for mean in means if mean is not None]
    better = METRIC_OF[metric].better
    if better is Better.NEITHER or len(known) < 2 or min(known) == max(known):
        return Row(metric, changes, ())
    target = max(known) if better is Better.HIGHER else min(known)
    return Row(metric, changes, tuple(at for at, mean in enumerate(means) if mean == target))


# --- reasons -----------------------------------------------------------------------------------------------

Numbers = dict[str, float] | None


def _pair(first: Column, other: Column, field: str) -> tuple[float, float] | None:
    a, b = value_of(first, field), value_of(other, field)
    return None if a is None or b is None else (a, b)


def _numbers(first: Column, other: Column, *fields: str) -> dict[str, float]:
    """All of `fields` of both columns; nothing where one is unknown, since the sentence names them all."""
    numbers = {}
    for field in fields:
        pair = _pair(first, other, field)
        if pair is None:
            return {}
        numbers[f"{field}_first"], numbers[f"{field}_other"] = pair
    return numbers


def _work(first: Column, other: Column) -> tuple[Reason, Numbers]:
    """Utilisation is busy time over cards times length: either the work differs or the length does."""
    busy = _pair(first, other, "busy_card_hours")
    length = _pair(first, other, "makespan_ms")
    use = _pair(first, other, "utilisation")
    if busy is None or length is None or use is None or not any(busy) or abs(use[1] - use[0]) < NOTICEABLE:
        return Reason.SAME_WORK, None
    same = abs(busy[1] - busy[0]) <= NOTICEABLE * max(busy)
    numbers = _numbers(first, other, "busy_card_hours", "makespan_ms", "utilisation")
    return (Reason.SAME_WORK if same else Reason.OTHER_WORK), numbers


def _surplus(first: Column, other: Column) -> Numbers:
    surplus = _pair(first, other, "surplus_card_hours")
    allocated = _pair(first, other, "allocated_card_hours")
    if surplus is None or allocated is None or not max(allocated):
        return None
    if abs(surplus[1] - surplus[0]) < NOTICEABLE * max(allocated):
        return None
    return _numbers(first, other, "surplus_card_hours", "allocated_card_hours")


def _times(first: Column, other: Column, field: str, *more: str) -> Numbers:
    pair = _pair(first, other, field)
    if pair is None or abs(pair[1] - pair[0]) < NOTICEABLE_MS:
        return None
    return _numbers(first, other, field, *more)


def _shares(first: Column, other: Column, field: str, *more: str) -> Numbers:
    pair = _pair(first, other, field)
    if pair is None or abs(pair[1] - pair[0]) < NOTICEABLE:
        return None
    return _numbers(first, other, field, *more)


def _stranded(first: Column, other: Column) -> Numbers:
    cards = _pair(first, other, "cards")
    stranded = _pair(first, other, "stranded_cards")
    if cards is None or stranded is None or abs(stranded[1] - stranded[0]) < NOTICEABLE * max(cards):
        return None
    return _numbers(first, other, "stranded_cards", "stranded_card_hours")


def _different(first: Column, other: Column, field: str, *more: str) -> Numbers:
    pair = _pair(first, other, field)
    return _numbers(first, other, field, *more) if pair is not None and pair[0] != pair[1] else None


def _slower(first: Column, other: Column) -> Numbers:
    """A class of jobs that finishes noticeably later than in the first column."""
    numbers: dict[str, float] = {}
    for field in ("completion_training_ms", "completion_inference_ms"):
        pair = _pair(first, other, field)
        if pair is not None and pair[1] > pair[0] * (1 + NOTICEABLE):
            numbers |= _numbers(first, other, field)
    return numbers or None
