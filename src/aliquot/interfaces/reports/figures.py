"""All charts of a report but the Gantt: over offered load, over time, cards as a heat map, waits.

What a chart is made of stands in `drawing`; the Gantt has a module of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from aliquot.core.report.charts import HeatMap, LoadPoint
from aliquot.core.report.compare import group_runs
from aliquot.core.report.metrics import Bilingual
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.wording import format_duration
from aliquot.interfaces.reports.drawing import Clock, Figure, Spec, colour, words
from aliquot.interfaces.reports.gantt import gantt_figure
from aliquot.interfaces.reports.strings import text

DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
HATCHES: Final = ("", "/", ".", "x", "\\", "+")


def figures_of(results: Sequence[RunResult]) -> list[Figure]:
    """All charts that the results have something to draw for."""
    runs = [(at, group) for at, group in enumerate(group_runs(results)) if group[0].timeline is not None]
    if not runs:
        return []
    cards = [run.scorecard for _, group in runs for run in group]
    clock = Clock.for_length(max(card.window_end_ms - card.window_start_ms for card in cards))
    replay = all(run.standing is Standing.REPLAY for _, group in runs for run in group)
    if replay:
        clock = msgspec.structs.replace(clock, axis=text("by-arrival"), ticks=False)
    return [
        *(_load_figures(runs) if replay else _course_figures(runs, clock)),
        *(_heat(at, group[0], clock) for at, group in runs),
        *(gantt_figure(at, group[0], clock) for at, group in runs if not replay),
        *(() if replay else _waits(runs)),
    ]


Group = tuple[int, list[RunResult]]


# --- over offered load -------------------------------------------------------------------------------------


def _load_figures(runs: Sequence[Group]) -> list[Figure]:
    figures = []
    for field in ("allocation", "fragmentation"):
        data: list[Spec] = []
        for at, group in runs:
            curves = [run.timeline.load for run in group if run.timeline is not None]
            data += _load_traces(at, group[0].name, curves, field)
        if not data:
            continue
        if field == "allocation":
            data.append(_diagonal())
        layout = {
            "xaxis": {"title": {"text": words(text("offered"))}, "ticksuffix": " %", "rangemode": "tozero"},
            "yaxis": {"ticksuffix": " %", "rangemode": "tozero"},
        }
        figures.append(Figure(f"load-{field}", "over-load", 380, data, layout, text(field)))
    return figures


def _load_traces(at: int, name: str, curves: Sequence[Sequence[LoadPoint]], field: str) -> list[Spec]:
    """A line of means over the seeds, and behind it the band from the least to the greatest."""
    by_percent: dict[int, list[float]] = {}
    for curve in curves:
        for point in curve:
            value = getattr(point, field)
            if value is not None:
                by_percent.setdefault(point.percent, []).append(100 * value)
    x = sorted(by_percent)
    if not x:
        return []
    traces: list[Spec] = []
    if len(curves) > 1:
        outline = [max(by_percent[p]) for p in x] + [min(by_percent[p]) for p in reversed(x)]
        traces.append(
            {
                "x": x + x[::-1], "y": [round(y, 3) for y in outline], "fill": "toself",
                "fillcolor": colour(at), "opacity": 0.15,
                "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "mode": "lines",
            }
        )  # fmt: skip  # a trace reads as one block
    mean = [round(sum(by_percent[p]) / len(by_percent[p]), 3) for p in x]
    return [*traces, _line(at, name, x, mean)]


def _diagonal() -> Spec:
    """What a site that turned nothing away would show."""
    return {
        "x": [0, 100], "y": [0, 100], "mode": "lines", "name": words(text("as-offered")), "hoverinfo": "skip",
        "line": {"color": "var(--faint)", "width": 1, "dash": "dot"},
    }  # fmt: skip  # a trace reads as one block


def _line(at: int, name: str, x: Sequence[float], y: Sequence[float | None], *, step: bool = False) -> Spec:
    return {
        "x": list(x), "y": list(y), "name": name, "mode": "lines", "connectgaps": False,
        "line": {
            "color": colour(at), "width": 2.2, "dash": DASHES[at % len(DASHES)],
            "shape": "hv" if step else "linear",
        },
    }  # fmt: skip  # a trace reads as one block


# --- over time ---------------------------------------------------------------------------------------------


def _course_figures(runs: Sequence[Group], clock: Clock) -> list[Figure]:
    figures = []
    for field in ("utilisation", "allocation", "waiting-jobs", "fragmentation"):
        data = []
        for at, group in runs:
            times, values = _course(group[0], field)
            if any(value is not None for value in values):
                data.append(_line(at, group[0].name, [clock(ms) for ms in times], values, step=True))
        share = field != "waiting-jobs"
        yaxis: Spec = {"rangemode": "tozero"}
        if share:
            yaxis["ticksuffix"] = " %"
        if field in {"utilisation", "allocation"}:
            yaxis["range"] = [0, 102]
        layout = {"xaxis": clock.xaxis(), "yaxis": yaxis}
        if data:
            figures.append(Figure(f"time-{field}", "over-time", 280, data, layout, text(field)))
    return figures


def _course(run: RunResult, field: str) -> tuple[list[int], list[float | None]]:
    """(ms since the start, value) of one line; the last value once more where the run ends."""
    assert run.timeline is not None
    course, points = run.timeline.course, run.timeline.fragments
    times = [at * course.width_ms for at in range(len(course.waiting))]
    values: list[float | None]
    if field == "fragmentation":
        times = [point.at_ms - course.start_ms for point in points]
        values = [None if point.rate is None else round(100 * point.rate, 3) for point in points]
    elif field == "waiting-jobs":
        values = [round(value, 3) for value in course.waiting]
    else:
        values = [None if share is None else share / 10 for share in getattr(course, field)]
    end = run.scorecard.window_end_ms - run.scorecard.window_start_ms
    return [*times, end], [*values, *values[-1:]]


# --- cards over time ---------------------------------------------------------------------------------------


def _heat(at: int, run: RunResult, clock: Clock) -> Figure:
    timeline = run.timeline
    assert timeline is not None
    heat = timeline.heat
    data: list[Spec] = [
        {
            "type": "heatmap",
            "x0": clock(heat.width_ms / 2), "dx": heat.width_ms / clock.unit_ms,
            "y": list(range(len(heat.rows))),
            "z": [[None if cell is None else cell / 10 for cell in row] for row in heat.cells],
            "rows": list(heat.rows),
            "zmin": 0, "zmax": 100, "colorscale": "heat", "hoverongaps": False,
            "colorbar": {
                "title": {"text": words(text("booked")), "side": "right"}, "ticksuffix": " %",
                "thickness": 10, "outlinewidth": 0, "len": 1, "y": 0.5,
            },
            "hovertemplate": "%{text}<br>%{x:.2f}<br>%{z:.1f} %<extra></extra>",
        }
    ]  # fmt: skip  # a trace reads as one block
    height = min(640, max(190, 12 * len(heat.rows) + 90))
    yaxis = {"autorange": "reversed", "showgrid": False, "zeroline": False, **_row_ticks(heat)}
    length = run.scorecard.window_end_ms - run.scorecard.window_start_ms
    layout = {
        "xaxis": {**clock.xaxis(), "showgrid": False}, "yaxis": yaxis,
        "shapes": [_backdrop(clock(length)), *_node_lines(heat)],
    }  # fmt: skip  # a layout reads as one block
    return Figure(f"heat-{at}", "cards-map", height, data, layout, Bilingual(run.name, run.name))


def _nodes(heat: HeatMap) -> list[tuple[str, int, int]]:
    """(node, first row, rows) where rows are cards named `node / slot`, else one entry a row."""
    spans: list[tuple[str, int, int]] = []
    for at, label in enumerate(heat.rows):
        node = label.rsplit(" / ", 1)[0]
        if spans and spans[-1][0] == node:
            spans[-1] = (node, spans[-1][1], spans[-1][2] + 1)
        else:
            spans.append((node, at, 1))
    return spans


def _row_ticks(heat: HeatMap) -> Spec:
    """One label a node, at its middle; every so many of them where there are many."""
    spans = _nodes(heat)
    every = -(-len(spans) // 30)
    shown = spans[::every]
    return {
        "tickvals": [first + (rows - 1) / 2 for _, first, rows in shown],
        "ticktext": [node for node, _, _ in shown],
        "ticks": "",
    }


def _backdrop(end: float) -> Spec:
    """What shows where a card is not up; it ends with the run, which another run may outlast."""
    return {
        "type": "rect", "yref": "paper", "x0": 0, "x1": end, "y0": 0, "y1": 1, "layer": "below",
        "fillcolor": "var(--absent)", "line": {"width": 0},
    }  # fmt: skip  # a shape reads as one block


def _node_lines(heat: HeatMap) -> list[Spec]:
    spans = _nodes(heat)
    if len(spans) == len(heat.rows) or len(spans) > 40:
        return []
    return [
        {
            "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": first - 0.5, "y1": first - 0.5,
            "line": {"color": "var(--surface)", "width": 3},
        }
        for _, first, _ in spans[1:]
    ]  # fmt: skip  # a shape reads as one block


# --- waits -------------------------------------------------------------------------------------------------


def _waits(runs: Sequence[Group]) -> list[Figure]:
    found = []
    for at, group in runs:
        counts = [0] * len(group[0].timeline.waits.counts) if group[0].timeline else []
        for run in group:
            assert run.timeline is not None
            counts = [total + more for total, more in zip(counts, run.timeline.waits.counts, strict=True)]
        found.append((at, group[0], counts))
    last = max((at for _, _, counts in found for at, count in enumerate(counts) if count), default=None)
    if last is None:
        return []
    timeline = found[0][1].timeline
    assert timeline is not None
    data = [
        {
            "type": "bar", "name": run.name, "x": list(range(last + 1)),
            "y": [round(100 * count / (sum(counts) or 1), 3) for count in counts[: last + 1]],
            "customdata": counts[: last + 1],
            "hovertemplate": "%{y:.1f} %  (%{customdata})<extra>%{fullData.name}</extra>",
            "marker": {
                "color": colour(at), "pattern": {
                    "shape": HATCHES[at % len(HATCHES)], "fillmode": "overlay", "solidity": 0.22,
                    "fgcolor": "var(--surface)", "fgopacity": 0.75, "size": 7,
                },
            },
        }
        for at, run, counts in found
    ]  # fmt: skip  # a trace reads as one block
    labels = _bin_labels(timeline.waits.edges_ms)[: last + 1]
    layout = {
        "barmode": "group", "bargap": 0.25,
        "xaxis": {
            "tickvals": list(range(last + 1)), "ticktext": [words(label) for label in labels],
            "showgrid": False,
        },
        "yaxis": {"title": {"text": words(text("share-of-jobs"))}, "rangemode": "tozero"},
    }  # fmt: skip  # a layout reads as one block
    return [Figure("waits", "waits", 320, data, layout)]


def _bin_labels(edges: Sequence[int]) -> list[Bilingual]:
    """`< 1 s`, `1 s - 10 s`, ..., `> 3 d`."""
    named = [format_duration(edge) for edge in edges]
    labels = [Bilingual(f"< {named[0].en}", f"< {named[0].zh}")]
    labels += [Bilingual(f"{low.en} – {high.en}", f"{low.zh} – {high.zh}") for low, high in pairwise(named)]
    return [*labels, Bilingual(f"≥ {named[-1].en}", f"≥ {named[-1].zh}")]
