"""Writes the report: one HTML file with everything in it, plotly included once.

Equal results make equal bytes: no date, no random id. The file appears whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import msgspec

from aliquot.core.errors import NotFoundError, SpecError
from aliquot.core.report.compare import compare, group_runs
from aliquot.core.report.result import RunResult
from aliquot.core.report.wording import UNKNOWN
from aliquot.interfaces.reports.drawing import Figure
from aliquot.interfaces.reports.figures import figures_of
from aliquot.interfaces.reports.markup import both, section, tag
from aliquot.interfaces.reports.queues import failures, queues
from aliquot.interfaces.reports.sections import (
    banner,
    classes,
    foundations,
    headlines,
    scorecard,
    subtitle,
    whys,
)
from aliquot.interfaces.reports.strings import ROW_UNITS, text

Language = Literal["en", "zh"]

_SECTIONS: Final = ("over-load", "over-time", "cards-map", "gantt", "waits")


def write_report(
    path: str | os.PathLike[str], results: Sequence[RunResult], *, title: str, language: Language = "en"
) -> Path:
    """Write the report of `results` to `path`; `language` is what it opens in. Returns the path.

    Raises SpecError without results, NotFoundError where the folder is not there; other failures to write are
    OSError. A file that was there stays until the new one is complete.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise NotFoundError(f"no folder {target.parent} to write the report {target.name} to")
    page = render_report(results, title=title, language=language)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o644)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return target


def render_report(results: Sequence[RunResult], *, title: str, language: Language = "en") -> str:
    """The report as one HTML text."""
    if not results:
        raise SpecError("there is nothing to report", field="results", value=[], hint="one run or more")
    from plotly.offline import get_plotlyjs

    comparison = compare(results)
    figures = figures_of(results)
    body = [
        banner(results),
        headlines(comparison),
        whys(comparison),
        scorecard(comparison),
        *(_charts(key, figures, results) for key in _SECTIONS),
        queues(results),
        classes(results),
        failures(results),
        foundations(results),
    ]
    parts = {
        "language": language,
        "title": both(title),
        "subtitle": subtitle(results, comparison),
        "body": "\n".join(part for part in body if part),
        "footer": both(text("made-with", version=_version())),
        "kicker": both(text("report")),
        "theme": both(text("theme")),
        "no-script": both(text("no-script")),
        "style": _asset("page.css"),
        "script": _asset("page.js"),
        "figures": _json(figures),
        "plotly": get_plotlyjs(),
    }
    return _fill(_asset("page.html"), parts)


def _charts(key: str, figures: Sequence[Figure], results: Sequence[RunResult]) -> str:
    shown = [figure for figure in figures if figure.group == key]
    if not shown:
        return ""
    boxes = [_box(figure) for figure in shown]
    note = tag("p", both(text(f"{key}-note")), _extra(key, results), class_="note")
    pair = "charts pair" if key in {"over-load", "over-time"} else "charts"
    return section(key, text(key), note, tag("div", *boxes, class_=pair))


def _box(figure: Figure) -> str:
    """A chart's place, of its final size from the start so that nothing jumps."""
    title = tag("figcaption", both(figure.title)) if figure.title is not None else ""
    place = tag("div", id=f"chart-{figure.id}", class_="chart", style=f"height:{figure.height}px")
    return tag("figure", title, place)


def _extra(key: str, results: Sequence[RunResult]) -> str:
    """What the chart leaves out or joins."""
    timelines = [group[0].timeline for group in group_runs(results)]
    drawn = [timeline for timeline in timelines if timeline is not None]
    if key == "cards-map":
        units = dict.fromkeys(timeline.heat.unit for timeline in drawn)
        return "".join(" " + tag("span", both(ROW_UNITS[unit])) for unit in units)
    if key == "gantt":
        more = max(timeline.gantt.left_out for timeline in drawn)
        return " " + tag("strong", both(text("left-out", count=more))) if more else ""
    return ""


def _json(figures: Sequence[Figure]) -> str:
    """Safe inside a script element: no `<` can end it."""
    return msgspec.json.encode(figures).decode().replace("<", "\\u003c")


def _asset(name: str) -> str:
    return files("aliquot.interfaces.reports").joinpath(name).read_text(encoding="utf-8")


def _fill(page: str, parts: dict[str, str]) -> str:
    """`page` with its `{{name}}` marks replaced, each once, in one pass: no part is searched for marks."""
    pieces = page.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled)


def _version() -> str:
    try:
        return version("aliquot")
    except PackageNotFoundError:
        return UNKNOWN.en
