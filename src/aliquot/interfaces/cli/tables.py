"""Scorecards side by side, the differences and what explains them, in the words of `core.report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table

from aliquot.core.report.compare import compare
from aliquot.core.report.metrics import METRICS, Group
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.wording import STANDINGS, format_value, why_sentence

_GROUPS = {Group.USE: "Use", Group.WASTE: "Waste", Group.TIME: "Time", Group.JOBS: "Jobs"}


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
        if all(value is None or value.mean == 0 for value in values):
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
