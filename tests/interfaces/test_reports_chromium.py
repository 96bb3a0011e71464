"""The report as a reader sees it: in headless Chromium, drawn, in both languages, with the network cut."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from aliquot.core.report.result import RunResult
from aliquot.interfaces.reports import write_report
from aliquot.interfaces.reports.figures import figures_of
from tests.core.test_report_case import slices, whole_cards

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=10000",
    "--window-size=1300,5000",
)


@pytest.fixture(scope="module")
def results() -> list[RunResult]:
    return [whole_cards(), slices()]


@pytest.fixture(scope="module")
def report(results: list[RunResult], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report") / "case.html", results, title="The case")


@pytest.fixture(scope="module")
def browse(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Opens an address and returns the page as it then stands."""
    profile = tmp_path_factory.mktemp("profile")

    def run(address: str, *more: str) -> str:
        done = subprocess.run(
            [chromium, *FLAGS, f"--user-data-dir={profile}", *more, "--dump-dom", address],
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return run


def test_every_chart_is_drawn_without_the_network(
    browse: Callable[..., str], report: Path, results: list[RunResult], tmp_path: Path
) -> None:
    log = tmp_path / "net.json"
    page = browse(report.as_uri(), f"--log-net-log={log}")
    wanted = {f"chart-{figure.id}" for figure in figures_of(results)}
    assert drawn_charts(page) == wanted
    assert len(wanted) == 9
    assert page_requests(log) == []
    assert "hours since the start" in chart_texts(page)
    assert "training" in chart_texts(page)


def test_language_and_theme_reach_the_charts(browse: Callable[..., str], report: Path) -> None:
    light, dark = (browse(f"{report.as_uri()}{choice}") for choice in ("#lang=en", "#lang=zh&theme=dark"))
    assert 'data-language="zh"' in dark
    assert 'lang="zh-CN"' in dark
    assert "开始后的小时数" in chart_texts(dark)
    assert "训练" in chart_texts(dark)
    assert "hours since the start" not in chart_texts(dark)
    assert inks(light).isdisjoint(inks(dark))


def chart_texts(page: str) -> str:
    """All that is written inside drawings."""
    return " ".join(re.findall(r"<text[^>]*>([^<]+)</text>", page))


def inks(page: str) -> set[str]:
    """The colours that axis titles are written in."""
    return set(re.findall(r'<text class="xtitle"[^>]*fill: (rgb\([^)]*\))', page))


def drawn_charts(page: str) -> set[str]:
    """Ids of the chart boxes that hold a drawing with at least one mark in it."""
    boxes = re.split(r'<div id="(?=chart-)', page)[1:]
    return {box[: box.index('"')] for box in boxes if 'class="main-svg"' in box and "<path" in box}


def page_requests(log: Path) -> list[str]:
    """Addresses that the page itself asked for; what the browser asks of its makers is not the page's."""
    text = log.read_text(encoding="utf-8")
    record = json.loads(text)
    started = record["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    return [
        event["params"]["url"]
        for event in record["events"]
        if event["type"] == started
        and event.get("params", {}).get("initiator") not in {None, "not an origin"}
        and not event["params"]["url"].startswith(("data:", "blob:", "file:"))
    ]
