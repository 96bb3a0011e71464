"""The parts of the page that are text and tables; complete without a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aliquot.core.report.classes import ClassScore
from aliquot.core.report.compare import Column, Comparison, Row, group_runs, value_of
from aliquot.core.report.metrics import (
    METRIC_OF,
    METRICS,
    Better,
    Bilingual,
    Group,
    Metric,
    Over,
    Unit,
    is_silent,
)
from aliquot.core.report.result import RunResult
from aliquot.core.report.wording import (
    STANDINGS,
    format_change,
    format_duration,
    format_value,
    why_sentence,
)
from aliquot.interfaces.reports.drawing import COLOURS
from aliquot.interfaces.reports.markup import both, bullets, section, table, tag
from aliquot.interfaces.reports.strings import GROUPS, STAGES, WINDOW_RULES, text

HEADLINES: Final = (
    ("utilisation", "allocation_last", "allocation"),
    ("wait_training_ms", "wait_mean_ms"),
    ("makespan_ms", "placed"),
    ("completion_inference_ms", "fragmentation", "wait_p99_ms"),
)
"""One tile each: the first of these that every column knows."""


def banner(results: Sequence[RunResult]) -> str:
    """How far the figures may be trusted."""
    standings = dict.fromkeys(result.standing for result in results)
    return "".join(
        tag("p", both(STANDINGS[standing]), class_=f"standing {standing.value}") for standing in standings
    )


def subtitle(results: Sequence[RunResult], comparison: Comparison) -> str:
    """Scenario, policies with their colours, seeds, window."""
    scenarios = ", ".join(dict.fromkeys(result.scenario for result in results))
    chips = "".join(
        tag("span", swatch(at), both(column.name), _seeds(column), class_="chip")
        for at, column in enumerate(comparison.columns)
    )
    return tag("p", both(scenarios), class_="scenario") + tag("div", chips, class_="chips")


def headlines(comparison: Comparison) -> str:
    """A few figures as bars beside each other."""
    known = ([key for key in keys if _worth_a_tile(comparison, key)] for keys in HEADLINES)
    tiles = [_tile(comparison, METRIC_OF[keys[0]]) for keys in known if keys]
    if not tiles:
        return ""
    return section("glance", text("at-a-glance"), tag("div", *tiles, class_="tiles"))


def whys(comparison: Comparison) -> str:
    """The differences explained, one list for each column after the first."""
    if not comparison.whys:
        return ""
    parts = []
    for at, column in enumerate(comparison.columns):
        sentences = [why_sentence(why) for why in comparison.whys if why.column == at]
        if sentences:
            first = comparison.columns[0].name
            parts.append(tag("h3", swatch(at), both(column.name), tag("small", f" / {both(first)}")))
            parts.append(bullets(sentences))
    return section("why", text("why"), *parts, note=text("why-note"))


def scorecard(comparison: Comparison) -> str:
    """Every figure of every column, with the change against the first."""
    head = [tag("th", both(text("metric")), scope="col")]
    head += [
        tag("th", swatch(at), both(column.name), _seeds(column), scope="col")
        for at, column in enumerate(comparison.columns)
    ]
    by_id = {row.metric: row for row in comparison.rows}
    shown = [metric for metric in METRICS if _says_something(comparison, metric.id)]
    rest = [metric for metric in METRICS if metric not in shown]
    rows = []
    for group in Group:
        inside = [metric for metric in shown if metric.group is group]
        if inside:
            span = str(len(comparison.columns) + 1)
            name = tag("th", both(GROUPS[group]), colspan=span, scope="rowgroup")
            rows.append(tag("tr", name, class_="group"))
            rows += [_score_row(comparison, metric, by_id[metric.id]) for metric in inside]
    more = ""
    if rest:
        spare = [_score_row(comparison, metric, by_id[metric.id]) for metric in rest]
        more = tag("details", tag("summary", both(text("rest"))), table(head, spare, class_="score"))
    return section(
        "scorecard", text("scorecard"), table(head, rows, class_="score"), more, note=text("scorecard-note")
    )


def classes(results: Sequence[RunResult]) -> str:
    """Jobs by stage, queue and width, for the first run of each column."""
    parts = []
    for at, group in enumerate(group_runs(results)):
        run = group[0]
        ways: tuple[tuple[str, tuple[ClassScore, ...], Callable[[str], Bilingual | str]], ...] = (
            ("by-stage", run.scorecard.per_class.stage, lambda name: STAGES.get(name, name)),
            ("by-queue", run.scorecard.per_class.queue, lambda name: name or text("no-queue")),
            ("by-width", run.scorecard.per_class.width, lambda name: name),
            ("by-band", run.scorecard.per_class.band, lambda name: name),
        )
        rows = []
        for key, scores, name_of in ways:
            if len(scores) > 1 or key == "by-stage":
                rows += [_class_row(text(key), name_of(part.name), part) for part in scores]
        if rows:
            parts.append(tag("h3", swatch(at), both(run.name)))
            parts.append(table([head_cell(key) for key in _CLASS_HEADS], rows, class_="classes"))
    return section("classes", text("classes"), *parts) if parts else ""


def foundations(results: Sequence[RunResult]) -> str:
    """Windows, assumptions and notes."""
    windows = []
    for group in group_runs(results):
        card = group[0].scorecard
        length = format_duration(card.window_end_ms - card.window_start_ms)
        rule = WINDOW_RULES[card.window_rule]
        name = group[0].name
        windows.append(
            Bilingual(
                f"{text('window').en}, {name}: {length.en}, {rule.en}",
                f"{text('window').zh}，{name}：{length.zh}，{rule.zh}",
            )
        )
    assumed = list(dict.fromkeys(line for result in results for line in result.assumptions))
    notes = list(dict.fromkeys(line for result in results for line in result.notes))
    told = bullets(assumed) or tag("p", both(text("assumptions-none")))
    parts = [told, bullets(windows)]
    if notes:
        parts += [tag("h3", both(text("notes"))), bullets(notes)]
    return section("assumptions", text("assumptions"), *parts)


# --- pieces ------------------------------------------------------------------------------------------------


def swatch(at: int) -> str:
    """The colour of a column."""
    return tag("i", class_="swatch", style=f"background:var(--run-{at % COLOURS})")


def _seeds(column: Column) -> str:
    seeds = [seed for seed in column.seeds if seed is not None]
    if len(seeds) < 2:
        return ""
    return tag("small", f" {len(seeds)} ", both(text("seeds")))


def _says_something(comparison: Comparison, key: str) -> bool:
    return not all(is_silent(METRIC_OF[key], value_of(column, key)) for column in comparison.columns)


def _worth_a_tile(comparison: Comparison, key: str) -> bool:
    return all(value_of(column, key) is not None for column in comparison.columns) and _says_something(
        comparison, key
    )


def _tile(comparison: Comparison, metric: Metric) -> str:
    values = [value_of(column, metric.id) or 0.0 for column in comparison.columns]
    top = 1.0 if metric.unit is Unit.SHARE else max(values) or 1.0
    bars = []
    for at, (column, value) in enumerate(zip(comparison.columns, values, strict=True)):
        width = f"width:{max(0.6, 100 * value / top):.1f}%;background:var(--run-{at % COLOURS})"
        bars.append(
            tag(
                "li",
                tag("span", both(column.name), class_="who"),
                tag("span", both(format_value(value, metric.unit)), class_="value"),
                tag("span", tag("i", style=width), class_="track"),
            )
        )
    return tag("div", tag("h3", both(metric.title)), tag("ul", *bars), class_="tile")


def _score_row(comparison: Comparison, metric: Metric, row: Row) -> str:
    parts = [metric.window] if metric.over is Over.NONE else [metric.denominator, metric.window]
    under = Bilingual(" · ".join(part.en for part in parts), " · ".join(part.zh for part in parts))
    title = tag("th", both(metric.title), tag("small", both(under)), scope="row")
    return tag(
        "tr", title, *(_score_cell(column, metric, row, at) for at, column in enumerate(comparison.columns))
    )


def _score_cell(column: Column, metric: Metric, row: Row, at: int) -> str:
    spread = column.values.get(metric.id)
    value = both(format_value(None if spread is None else spread.mean, metric.unit))
    mark = tag("b", value) if at in row.best else value
    inside = [tag("span", mark, class_="figure")]
    if spread is not None and spread.known > 1 and spread.least != spread.most:
        least, most = format_value(spread.least, metric.unit), format_value(spread.most, metric.unit)
        inside.append(tag("small", both(least), " … ", both(most)))
    change = row.changes[at]
    if at and change is not None:
        said = format_change(change, metric.unit)
        inside.append(tag("small", both(said), class_=_verdict(metric, change, said)))
    return tag("td", *inside)


def _verdict(metric: Metric, change: float, said: Bilingual) -> str:
    """Better or worse, unless the difference rounds to nothing."""
    if metric.better is Better.NEITHER or said.en.startswith("±"):
        return "change"
    good = (change > 0) is (metric.better is Better.HIGHER)
    return "change good" if good else "change bad"


_CLASS_HEADS: Final = (
    "class",
    "jobs",
    "placed",
    "finished",
    "waiting",
    "card-hours",
    "busy",
    "wait-mean",
    "wait-p95",
    "wait-max",
    "completion",
)


def head_cell(key: str) -> str:
    """A column's title."""
    return tag("th", both(text(key)), scope="col")


def _class_row(way: Bilingual, name: Bilingual | str, part: ClassScore) -> str:
    cells = [
        *(format_value(count, Unit.COUNT) for count in (part.jobs, part.placed, part.finished, part.waiting)),
        format_value(part.allocated_card_hours, Unit.CARD_HOURS),
        format_value(part.utilisation_allocated, Unit.SHARE),
        *(
            time_cell(time)
            for time in (part.wait_mean_ms, part.wait_p95_ms, part.wait_max_ms, part.completion_mean_ms)
        ),
    ]
    title = tag("th", tag("small", both(way), " "), both(name), scope="row")
    return tag("tr", title, *(tag("td", both(cell)) for cell in cells))


def time_cell(ms: float | None) -> Bilingual:
    """A time, or a dash where nothing started or finished."""
    return Bilingual("–", "–") if ms is None else format_duration(ms)
