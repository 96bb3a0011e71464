"""Scorecards side by side, the differences and what explains them, in the words of `core.report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich import box
from rich.table import Table

from aliquot.core.report.classes import ClassScore
from aliquot.core.report.compare import compare, group_runs
from aliquot.core.report.failures import FAILURE_OF, FAILURES
from aliquot.core.report.metrics import METRICS, Group, Metric, Unit, is_silent
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.wording import STANDINGS, format_value, name_queue, why_sentence

_GROUPS: Final = {
    Group.USE: "Use",
    Group.WASTE: "Waste",
    Group.TIME: "Time",
    Group.FAIRNESS: "Fairness and promises",
    Group.STOPS: "Progress and stops",
    Group.JOBS: "Jobs",
}

_SILENT: Final = {"goodput": 1.0}
"""What a figure is where it has nothing to say, if that is not what `is_silent` says: its row is left out."""

FEWEST_BANDS: Final = 3
"""Bands of width below which the scorecard's own rows are enough."""

MOST_QUEUES: Final = 12
"""Queues shown for each policy: those with the most jobs. All are in the JSON and in the report."""


def scorecard_table(results: Sequence[RunResult]) -> Table:
    """One column a policy; runs of one policy under several seeds are one column of means."""
    comparison = compare(results)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("")
    for column in comparison.columns:
        seeds = len(column.seeds)
        table.add_column(column.name if seeds == 1 else f"{column.name}\nmean of {seeds}", justify="right")
    group: Group | None = None
    for metric, row in zip(METRICS, comparison.rows, strict=True):
        values = [column.values[metric.id] for column in comparison.columns]
        if all(_is_silent(metric, None if value is None else value.mean) for value in values):
            continue
        if metric.group is not group:
            if group is not None:
                table.add_row()
            group = metric.group
            table.add_row(f"[bold]{_GROUPS[group]}[/bold]")
        cells = []
        for at, value in enumerate(values):
            text = format_value(None if value is None else value.mean, metric.unit).en
            cells.append(f"[bold]{text}[/bold]" if len(values) > 1 and at in row.best else text)
        table.add_row(f"  {metric.title.en}", *cells)
    return table


def queue_table(results: Sequence[RunResult]) -> Table | None:
    """Queues by policy: waits and shares; None where there is one queue and no quota. First seeds only."""
    runs = [group[0] for group in group_runs(results)]
    names = _busiest(runs)
    if not names:
        return None
    stated = any(queue.quotas for run in runs for queue in run.scorecard.queues)
    heads = ["Jobs", "Wait, mean", "p95", "longest", "Slowdown", "Card-h"]
    heads += ["Quota met", "Borrowed"] if stated else ["Of its part"]
    crowded, known = _is_crowded(runs), _has_throughput(runs)
    heads += [*(["Crowded"] if crowded else []), *(["MFU"] if known else [])]
    table = _by_run("Queue", [*heads, "Evicted"], runs)
    for name in names:
        for at, run in enumerate(runs):
            queue = next((queue for queue in run.scorecard.queues if queue.name == name), None)
            if queue is None:
                continue
            parts = (queue.satisfaction, queue.borrowed) if stated else (queue.got,)
            label = name_queue(name).en + (" (all below)" if queue.inner else "")
            table.add_row(
                *_label(label, run, at, len(runs)),
                *_waits(queue.scores),
                f"{queue.scores.allocated_card_hours:,.1f}",
                *(format_value(part, Unit.SHARE).en for part in parts),
                *([format_value(queue.crowd_ms, Unit.MS).en] if crowded else []),
                *([format_value(queue.scores.mfu, Unit.SHARE).en] if known else []),
                str(queue.scores.evicted),
            )
    return table


def _is_silent(metric: Metric, value: float | None) -> bool:
    return is_silent(metric, value) or value == _SILENT.get(metric.id)


def _is_crowded(runs: Sequence[RunResult]) -> bool:
    return any(queue.crowd_ms for run in runs for queue in run.scorecard.queues)


def _has_throughput(runs: Sequence[RunResult]) -> bool:
    return any(queue.scores.mfu is not None for run in runs for queue in run.scorecard.queues)


def band_table(results: Sequence[RunResult]) -> Table | None:
    """Waits by width and policy; None where jobs are of one or two bands or none waited. First seeds only."""
    runs = [group[0] for group in group_runs(results)]
    bands = [run.scorecard.per_class.band for run in runs]
    names = list(dict.fromkeys(part.name for parts in bands for part in parts))
    if len(names) < FEWEST_BANDS or not any(part.wait_max_ms for parts in bands for part in parts):
        return None
    table = _by_run("Cards", ["Jobs", "Wait, mean", "p95", "longest", "Slowdown"], runs)
    for name in names:
        for at, run in enumerate(runs):
            part = next((part for part in run.scorecard.per_class.band if part.name == name), None)
            if part is not None:
                table.add_row(*_label(name, run, at, len(runs)), *_waits(part))
    return table


def failure_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """What went wrong, counted, for each policy; then what no run can count."""
    for group in group_runs(results):
        counts = [
            f"{FAILURE_OF[found.id].title.en}: {found.count:,}"
            for found in group[0].scorecard.failures
            if found.count
        ]
        if counts:
            yield f"Counted under {group[0].name}: {'; '.join(counts)}."
    known = {found.id for result in results for found in result.scorecard.failures if found.count is not None}
    gaps = [failure.title.en for failure in FAILURES if failure.unmeasured and failure.id not in known]
    yield f"Not measured: {', '.join(gaps)}."


def difference_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """Why each further policy differs from the first, as far as the numbers say."""
    comparison = compare(results)
    for at, column in enumerate(comparison.columns[1:], start=1):
        sentences = [why_sentence(why).en for why in comparison.whys if why.column == at]
        if sentences:
            yield f"Why {column.name} differs from {comparison.columns[0].name}:"
            yield from (f"  {sentence}" for sentence in sentences)


def standing_lines(results: Sequence[RunResult]) -> Iterator[str]:
    """What kind of evidence this is, then every assumption and note once."""
    said = [STANDINGS[result.standing].en for result in results if result.standing is not Standing.WHAT_IF]
    said += [f"Assumed: {text}" for result in results for text in result.assumptions]
    said += [f"Note: {text}" for result in results for text in result.notes]
    yield from dict.fromkeys(said)


def _busiest(runs: Sequence[RunResult]) -> list[str]:
    """The queues to show, parents first as they come: of more than twelve those with the most jobs."""
    jobs: dict[str, int] = {}
    for run in runs:
        for queue in run.scorecard.queues:
            jobs[queue.name] = max(jobs.get(queue.name, 0), queue.scores.jobs)
    kept = set(sorted(jobs, key=lambda name: -jobs[name])[:MOST_QUEUES])
    return [name for name in jobs if name in kept]


def _by_run(first: str, heads: Sequence[str], runs: Sequence[RunResult]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    if len(runs) > 1:
        table.add_column("Policy")
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _label(name: str, run: RunResult, at: int, runs: int) -> list[str]:
    return [name if at == 0 else "", run.name] if runs > 1 else [name]


def _waits(part: ClassScore) -> list[str]:
    times = (part.wait_mean_ms, part.wait_p95_ms, part.wait_max_ms)
    return [
        f"{part.jobs:,}",
        *(format_value(time, Unit.MS).en if time is not None else "none started" for time in times),
        format_value(part.slowdown, Unit.RATIO).en,
    ]
