"""Jobs over time: one row a job, grey while it waits, coloured by stage while it holds its cards."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Final

from aliquot.core.report.charts import Bar
from aliquot.core.report.metrics import Bilingual
from aliquot.core.report.result import RunResult
from aliquot.core.report.wording import format_duration
from aliquot.interfaces.reports.drawing import Clock, Figure, Spec, words
from aliquot.interfaces.reports.strings import OUTCOMES, STAGES, text

NAMED_BARS: Final = 64
"""Up to so many jobs are named beside their rows."""


class Strip:
    """Pieces of bars that look alike."""

    def __init__(self, clock: Clock, start: int, end: int) -> None:
        self.clock, self.start, self.end = clock, start, end
        self.spec: Spec = {"y": [], "base": [], "x": [], "hovertext": []}

    def add(self, row: int, begin: int, until: int, hover: Spec) -> None:
        """One piece; nothing where it is empty or outside the window."""
        begin, until = max(begin, self.start), min(until, self.end)
        if until > begin:
            values = (row, self.clock(begin - self.start), self.clock(until - begin), hover)
            for column, value in zip(self.spec.values(), values, strict=True):
                column.append(value)

    def trace(self, name: Bilingual, marker: Spec, **more: object) -> Spec:
        """As a trace."""
        look = {"type": "bar", "orientation": "h", "hoverinfo": "text", "textposition": "none"}
        return {**look, **self.spec, "name": words(name), "marker": marker, **more}


def gantt_figure(at: int, run: RunResult, clock: Clock) -> Figure:
    """The chart of one run, which has a timeline."""
    assert run.timeline is not None
    bars = run.timeline.gantt.bars
    start, end = run.scorecard.window_start_ms, run.scorecard.window_end_ms
    hovers = [_hover(bar, end) for bar in bars]
    traces = [_waiting(bars, hovers, Strip(clock, start, end))]
    for stage, name in STAGES.items():
        strips = Strip(clock, start, end), Strip(clock, start, end)
        traces += _holding(bars, hovers, strips, stage, name)
    rows = len(bars)
    yaxis: Spec = {"autorange": False, "range": [rows - 0.4, -0.6], "showgrid": False, "zeroline": False}
    if rows <= NAMED_BARS:
        yaxis |= {"tickvals": list(range(rows)), "ticktext": [bar.job for bar in bars], "ticks": ""}
    else:
        yaxis |= {"showticklabels": False, "ticks": "", "title": {"text": words(text("jobs"))}}
    layout = {
        "xaxis": clock.xaxis(),
        "yaxis": yaxis,
        "barmode": "overlay",
        "bargap": 0.25,
        "showlegend": True,
    }
    return Figure(
        id=f"gantt-{at}",
        group="gantt",
        height=min(900, max(170, 16 * rows + 90)),
        data=[trace for trace in traces if trace["y"]],
        layout=layout,
        title=Bilingual(run.name, run.name),
    )


def _waiting(bars: tuple[Bar, ...], hovers: list[Spec], strip: Strip) -> Spec:
    for row, bar in enumerate(bars):
        for begin, until in _waits(bar, strip.end):
            strip.add(row, begin, until, hovers[row])
    return strip.trace(text("wait"), {"color": "var(--waiting)"}, width=0.36)


def _waits(bar: Bar, end: int) -> Iterator[tuple[int, int]]:
    """From submission or the end of an attempt to the next attempt, or to the job's end."""
    over = end if bar.end_ms is None else bar.end_ms
    if not bar.segments:
        yield bar.submitted_ms, over
        return
    yield bar.submitted_ms, bar.segments[0].start_ms
    for one, after in pairwise(bar.segments):
        yield end if one.end_ms is None else one.end_ms, after.start_ms
    last = bar.segments[-1].end_ms
    if last is not None:
        yield last, over


def _holding(
    bars: tuple[Bar, ...], hovers: list[Spec], strips: tuple[Strip, Strip], stage: str, name: Bilingual
) -> list[Spec]:
    """Attempts that were the job's last, and, hatched, those that were lost or refused before."""
    kept, lost = strips
    for row, bar in enumerate(bars):
        if bar.stage != stage:
            continue
        for at, segment in enumerate(bar.segments):
            is_last = at + 1 == len(bar.segments)
            over = segment.end_ms is not None and bar.end_ms is None
            strip = kept if is_last and not over else lost
            strip.add(
                row, segment.start_ms, strip.end if segment.end_ms is None else segment.end_ms, hovers[row]
            )
    shade = f"var(--{stage})"
    gone = Bilingual(f"{name.en}: {text('lost-attempt').en}", f"{name.zh}：{text('lost-attempt').zh}")
    hatch = {"shape": "/", "solidity": 0.4, "fgcolor": "var(--surface)"}
    return [kept.trace(name, {"color": shade}), lost.trace(gone, {"color": shade, "pattern": hatch})]


def _hover(bar: Bar, end: int) -> Spec:
    """What one job's bars say when pointed at."""
    waited = format_duration((end if bar.started_ms is None else bar.started_ms) - bar.submitted_ms)
    held = format_duration(sum((end if s.end_ms is None else s.end_ms) - s.start_ms for s in bar.segments))
    nodes = ", ".join(dict.fromkeys(node for segment in bar.segments for node in segment.nodes))
    outcome = OUTCOMES.get(bar.outcome, Bilingual(bar.outcome, bar.outcome))
    return {
        "en": _lines(
            bar, [f"waited {waited.en}", f"held {held.en} on {nodes}", f"{bar.moves} moves", outcome.en]
        ),
        "zh": _lines(
            bar, [f"等待 {waited.zh}", f"占用 {held.zh}，位于 {nodes}", f"迁移 {bar.moves} 次", outcome.zh]
        ),
    }


def _lines(bar: Bar, said: list[str]) -> str:
    """Leaves out what did not happen. Plotly reads its own small markup here, so names are escaped."""
    waited, held, moved, outcome = said
    kept = [waited, *([held] if bar.segments else []), *([moved] if bar.moves else []), outcome]
    return "<br>".join((f"<b>{escape(bar.job)}</b>", *map(escape, kept)))
