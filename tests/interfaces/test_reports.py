"""The report as a file: whole or not at all, equal bytes for equal runs, escaped, nothing from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from msgspec.structs import replace

from aliquot.core.errors import NotFoundError, SpecError
from aliquot.core.report.compare import compare
from aliquot.core.report.metrics import METRICS
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.wording import STANDINGS, why_sentence
from aliquot.interfaces.reports import render_report, write_report
from aliquot.interfaces.reports.drawing import Clock, Figure
from aliquot.interfaces.reports.figures import figures_of
from aliquot.interfaces.reports.strings import TEXTS
from tests.core.test_report_case import slices, whole_cards


@pytest.fixture(scope="module")
def results() -> list[RunResult]:
    return [whole_cards(), slices()]


@pytest.fixture(scope="module")
def page(results: list[RunResult]) -> str:
    return render_report(results, title="The case")


def without_plotly(page: str) -> str:
    """The page without the longest of its scripts."""
    scripts = re.findall(r"<script>.*?</script>", page, re.DOTALL)
    return page.replace(max(scripts, key=len), "")


def test_the_page_asks_nothing_of_anyone(page: str) -> None:
    own = without_plotly(page)
    assert len(own) < len(page) / 10
    assert re.findall(r"https?://|//[\w-]+\.\w|\bsrc=|\bhref=|@import|url\(", own) == []
    assert "default-src 'none'" in own


def test_plotly_is_in_it_once(page: str) -> None:
    assert page.count("plotly.js v") == 1


def test_every_text_is_there_in_both_languages(results: list[RunResult], page: str) -> None:
    for metric in METRICS:
        assert metric.title.en in page
        assert metric.title.zh in page
    for why in compare(results).whys:
        sentence = why_sentence(why)
        assert sentence.en in page
        assert sentence.zh in page


def test_no_text_lacks_a_language() -> None:
    assert [key for key, found in TEXTS.items() if not found.en or not found.zh] == []


def test_a_calibrated_replay_says_so_before_its_figures(page: str) -> None:
    told = STANDINGS[Standing.CALIBRATED]
    assert 0 < page.index(told.en) < page.index("45.0 %")
    assert told.zh in page


def test_equal_results_make_equal_bytes(results: list[RunResult], page: str) -> None:
    assert render_report([whole_cards(), slices()], title="The case") == page


def test_names_and_notes_cannot_break_out(results: list[RunResult]) -> None:
    evil = "</script><script>alert(1)</script>{{plotly}}"
    hostile = replace(results[0], policy=evil, scenario=evil, notes=(evil,), assumptions=(evil,))
    page = render_report([hostile], title=evil)
    assert "<script>alert" not in page
    assert page.count("plotly.js v") == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_opens_in_the_language_asked_for(results: list[RunResult], language: Any) -> None:
    assert f'data-language="{language}"' in render_report(results, title="t", language=language)


def test_a_run_without_a_timeline_still_has_its_tables(results: list[RunResult]) -> None:
    page = render_report([replace(results[0], timeline=None)], title="t")
    assert 'id="scorecard"' in page
    assert 'class="chart"' not in page


def test_a_replay_is_drawn_over_load_with_its_seeds_as_a_band(results: list[RunResult]) -> None:
    runs = [replace(results[0], standing=Standing.REPLAY, seed=seed) for seed in (42, 43)]
    figures = {figure.id: figure for figure in figures_of(runs)}
    assert "load-allocation" in figures
    assert not any(name.startswith(("time-", "gantt-")) for name in figures)
    assert [trace.get("fill") for trace in figures["load-allocation"].data] == ["toself", None, None]


def test_every_figure_is_a_figure_plotly_accepts(results: list[RunResult]) -> None:
    runs = [*results, *(replace(run, standing=Standing.REPLAY, scenario="replayed") for run in results)]
    for figure in [*figures_of(results), *figures_of(runs[2:])]:
        data, layout = plain(figure)
        go.Figure(data=data, layout=layout)


def plain(figure: Figure) -> tuple[Any, Any]:
    """The figure as the page's script makes it: one language, colours looked up, the heat scale named."""
    text = re.sub(r"var\(--[\w-]+\)", "#123456", json.dumps([figure.data, figure.layout]))
    data, layout = english(json.loads(text))
    for trace in data:
        if trace.get("colorscale") == "heat":
            trace["colorscale"] = "Blues"
            del trace["rows"]
    return data, layout


def english(value: Any) -> Any:
    if isinstance(value, list):
        return [english(item) for item in value]
    if isinstance(value, dict):
        return (
            value["en"] if set(value) == {"en", "zh"} else {key: english(item) for key, item in value.items()}
        )
    return value


@pytest.mark.parametrize(
    ("length", "unit"),
    [
        pytest.param(90_000, 1_000, id="seconds"),
        pytest.param(600_000, 60_000, id="minutes"),
        pytest.param(20_220_000, 3_600_000, id="hours"),
        pytest.param(864_000_000, 86_400_000, id="days"),
        pytest.param(0, 1_000, id="an empty window"),
    ],
)
def test_time_axes_count_in_a_unit_that_reads(length: int, unit: int) -> None:
    assert Clock.for_length(length).unit_ms == unit


def test_the_file_is_written_whole_and_leaves_nothing_beside_it(
    results: list[RunResult], tmp_path: Path
) -> None:
    target = tmp_path / "report.html"
    assert write_report(target, results, title="t") == target
    assert target.read_text(encoding="utf-8").endswith("</html>\n")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_the_old_report(results: list[RunResult], tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.mkdir()  # a folder of that name can't be replaced by a file
    with pytest.raises(OSError, match="report"):
        write_report(target, results, title="t")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nothing to report"):
        write_report(tmp_path / "r.html", [], title="t")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(results: list[RunResult], tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        write_report(tmp_path / "nowhere" / "r.html", results, title="t")
