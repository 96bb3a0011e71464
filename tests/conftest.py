"""What every test may rely on: the shared traces, a browser, two hash seeds; and the rule about skips.

A skip is loud: the run ends with a list of what was left out and why. With `ALIQUOT_NO_SKIP=1` (CI sets it)
a skip is a failure, so nothing is left out unseen. An expected failure (`xfail`) is no skip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from aliquot.bootstrap import prepare

prepare()
# Two runs of the suite see the same examples; `make search` looks for new ones.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", derandomize=False, deadline=None)
settings.load_profile("search" if os.environ.get("ALIQUOT_SEARCH") else "same")

ROOT: Final = Path(__file__).resolve().parent.parent
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
HASH_SEEDS: Final = ("0", "1")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with traces and captures: `ALIQUOT_SHARED`, else `shared` beside the checkout; skips."""
    folder = Path(os.environ.get("ALIQUOT_SHARED") or ROOT.parent / "shared")
    if not (folder / "traces").is_dir():
        pytest.skip(f"no traces under {folder}; name their folder in ALIQUOT_SHARED")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium to run headless; skips where none is installed."""
    found = find_browser()
    if found is None:
        pytest.skip("no Chromium; Debian: apt-get install chromium")
    return found


@pytest.fixture(scope="session")
def under_hash_seeds() -> Callable[..., list[bytes]]:
    """Runs `python ARGUMENTS...` once per hash seed and returns each run's standard output."""

    def run(*arguments: str) -> list[bytes]:
        return [run_python(arguments, seed) for seed in HASH_SEEDS]

    return run


def find_browser() -> str | None:
    """The first installed browser of BROWSERS, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def run_python(arguments: tuple[str, ...], hash_seed: str) -> bytes:
    """Standard output of one interpreter run from the checkout; a failing run shows its errors."""
    paths = [str(ROOT / "src"), str(ROOT)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"hash seed {hash_seed}: {done.stderr.decode(errors='replace')}"
    return done.stdout


def skips_are_failures() -> bool:
    return os.environ.get("ALIQUOT_NO_SKIP", "") not in {"", "0"}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("chromium") and find_browser() is None:
        pytest.skip("no Chromium; Debian: apt-get install chromium")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if skips_are_failures() and report.skipped and not hasattr(report, "wasxfail"):
        fail_instead(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if skips_are_failures() and report.skipped:
        fail_instead(report)
    return report


def fail_instead(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip into a failure that still tells why it wanted to skip."""
    report.outcome = "failed"
    report.longrepr = f"skipped, and ALIQUOT_NO_SKIP forbids it: {skip_reason(report)}"


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    terminalreporter.section("LEFT OUT (a skip is no pass)", sep="!", yellow=True, bold=True)
    for reason, count in Counter(skip_reason(report) for report in skipped).most_common():
        terminalreporter.write_line(f"{count:5d}  {reason}", yellow=True)
