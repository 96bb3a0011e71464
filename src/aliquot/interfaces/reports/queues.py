"""The part of the page that speaks of queues, and of what failure looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.report.compare import group_runs
from aliquot.core.report.divided import QueueScore, QuotaScore
from aliquot.core.report.failures import FAILURES, Failure, Goal
from aliquot.core.report.metrics import Bilingual, Unit
from aliquot.core.report.result import RunResult
from aliquot.core.report.wording import format_value, name_queue
from aliquot.core.units import FULL
from aliquot.interfaces.reports.markup import both, section, table, tag
from aliquot.interfaces.reports.sections import head_cell, swatch, time_cell
from aliquot.interfaces.reports.strings import GOALS, text

_TIMES: Final = ("jobs", "wait-mean", "wait-variance", "wait-p95", "wait-max", "slowdown", "unfair")
_REST: Final = ("card-hours", "goodput", "evicted")
_QUOTA_HEADS: Final = (
    "queue", "resource", "nominal", "used-mean", "wanted-mean", "quota-met", "borrowed",
)  # fmt: skip  # one list, not one name a line


def queues(results: Sequence[RunResult]) -> str:
    """Every queue of the first run of each column; nothing where no run divides its site."""
    parts = []
    for at, group in enumerate(group_runs(results)):
        found = group[0].scorecard.queues
        if not found:
            continue
        stated = any(queue.quotas for queue in found)
        shares = ("quota-met", "borrowed") if stated else ("of-its-part",)
        heads = [head_cell(key) for key in ("queue", *_TIMES, *shares, *_REST)]
        parts.append(tag("h3", swatch(at), both(group[0].name)))
        parts.append(table(heads, [_queue_row(queue, stated) for queue in found], class_="classes"))
        quotas = [_quota_row(queue, quota) for queue in found for quota in queue.quotas]
        if quotas:
            inside = table([head_cell(key) for key in _QUOTA_HEADS], quotas, class_="classes")
            parts.append(tag("details", tag("summary", both(text("quotas"))), inside))
    return section("queues", text("queues"), *parts, note=text("queues-note")) if parts else ""


def failures(results: Sequence[RunResult]) -> str:
    """The consequences of missed goals, counted; what is not measured says why."""
    runs = [group[0] for group in group_runs(results)]
    heads = [head_cell("failure")]
    heads += [tag("th", swatch(at), both(run.name), scope="col") for at, run in enumerate(runs)]
    rows = []
    for goal in Goal:
        span = str(len(runs) + 1)
        rows.append(tag("tr", tag("th", both(GOALS[goal]), colspan=span, scope="rowgroup"), class_="group"))
        rows += [_failure_row(failure, runs) for failure in FAILURES if failure.goal is goal]
    return section(
        "failures", text("failures"), table(heads, rows, class_="classes"), note=text("failures-note")
    )


def _queue_row(queue: QueueScore, stated: bool) -> str:
    part = queue.scores
    cells = [
        format_value(part.jobs, Unit.COUNT),
        time_cell(part.wait_mean_ms),
        Bilingual("–", "–")
        if part.wait_variance_ms2 is None
        else format_value(part.wait_variance_ms2, Unit.MS2),
        time_cell(part.wait_p95_ms),
        time_cell(part.wait_max_ms),
        format_value(part.slowdown, Unit.RATIO),
        format_value(part.unfair, Unit.SHARE),
        *(format_value(share, Unit.SHARE) for share in _shares(queue, stated)),
        format_value(part.allocated_card_hours, Unit.CARD_HOURS),
        format_value(part.goodput, Unit.SHARE),
        format_value(part.evicted, Unit.COUNT),
    ]
    below = tag("small", " ", both(text("all-below"))) if queue.inner else ""
    title = tag("th", both(name_queue(queue.name)), below, scope="row")
    return tag("tr", title, *(tag("td", both(cell)) for cell in cells))


def _shares(queue: QueueScore, stated: bool) -> tuple[float | None, ...]:
    return (queue.satisfaction, queue.borrowed) if stated else (queue.got,)


def _quota_row(queue: QueueScore, quota: QuotaScore) -> str:
    amounts = (
        text("unlimited") if quota.nominal is None else _amount(quota.resource, quota.nominal),
        _amount(quota.resource, quota.used_mean),
        _amount(quota.resource, quota.wanted_mean),
    )
    shares = (format_value(quota.satisfaction, Unit.SHARE), format_value(quota.borrowed, Unit.SHARE))
    title = tag("th", both(name_queue(queue.name)), scope="row")
    cells = (Bilingual(quota.resource, quota.resource), *amounts, *shares)
    return tag("tr", title, *(tag("td", both(cell)) for cell in cells))


def _amount(resource: str, value: float | None) -> Bilingual:
    """An amount in the unit of its resource: cards, GiB, normalised cards, money a month."""
    if value is None or resource.startswith(("cards", "compute")):
        return format_value(None if value is None else value / FULL, Unit.CARDS)
    if resource.startswith("money"):
        return format_value(value, Unit.CENTS)
    size = f"{value / 1024:,.1f} GiB"
    return Bilingual(size, size)


def _failure_row(failure: Failure, runs: Sequence[RunResult]) -> str:
    cells, counts = (
        [],
        [next(found.count for found in run.scorecard.failures if found.id == failure.id) for run in runs],
    )
    why = tag("small", both(failure.unmeasured)) if failure.unmeasured is not None and None in counts else ""
    for count in counts:
        said = text("not-measured") if count is None else format_value(count, Unit.COUNT)
        cells.append(tag("td", both(said)))
    return tag("tr", tag("th", both(failure.title), why, scope="row"), *cells)
