"""Queues, widths and failures as they are printed: what is shown, and what is left unsaid."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from aliquot.core.report.failures import FAILURES
from aliquot.core.report.result import RunResult
from aliquot.interfaces.cli.tables import (
    MOST_QUEUES,
    band_table,
    failure_lines,
    queue_table,
    scorecard_table,
)
from aliquot.interfaces.reports import render_report
from tests.core.test_report_case import slices, whole_cards
from tests.core.test_report_queues import Story, cards


def printed(table: Table | None) -> list[str]:
    """The lines of a table, blanks joined."""
    assert table is not None
    console = Console(file=io.StringIO(), width=300)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines() if line.strip()]


def quotas() -> RunResult:
    """Two queues with quotas, one of which borrows while the other waits for its own."""
    story = Story(cards("lab", 8), cards("lab/x", 4), cards("b", 4)).job("lab/x", 8, 0, 0).job("b", 4, 0, 1)
    return RunResult("quotas", "fair", story.card())


def test_queues_stand_side_by_side_by_policy() -> None:
    lines = printed(queue_table([whole_cards(), slices()]))
    assert lines[0] == "Queue Policy Jobs Wait, mean p95 longest Slowdown Card-h Of its part Evicted"
    assert lines[2:] == [
        "inference whole cards 20 0 s 0 s 0 s 1.00 × 52.3 100.0 % 0",
        "slices 20 0 s 0 s 0 s 1.00 × 5.2 100.0 % 0",
        "training whole cards 3 2 h 32 min 2 h 32 min 2 h 32 min 1.84 × 72.0 92.9 % 0",
        "slices 3 0 s 0 s 0 s 1.00 × 72.0 171.4 % 0",
    ]


def test_quotas_are_shown_where_there_are_some_and_one_policy_needs_no_column() -> None:
    lines = printed(queue_table([quotas()]))
    assert lines[0] == "Queue Jobs Wait, mean p95 longest Slowdown Card-h Quota met Borrowed Evicted"
    assert [line for line in lines[2:] if line.startswith("b ")] == [
        "b 1 1 h 1 h 1 h unknown 4.0 50.0 % 0.0 % 0"
    ]
    assert any(line.startswith("lab (all below) 1 0 s 0 s 0 s unknown 16.0 100.0 % 0.0 %") for line in lines)
    assert any(line.startswith("lab/x 1 0 s 0 s 0 s unknown 16.0 100.0 % 50.0 %") for line in lines)


def test_one_queue_is_no_table() -> None:
    run = RunResult("plain", "p", Story().job("", 4, 0, 1, 2).card())
    assert queue_table([run]) is None
    assert band_table([run]) is None


def test_of_many_queues_those_with_the_most_jobs_are_shown() -> None:
    story = Story()
    for at in range(MOST_QUEUES + 5):
        story.job(f"q{at:02}", 1, 0)
    story.job("q16", 1, 0)
    lines = printed(queue_table([RunResult("many", "p", story.card())]))
    assert len(lines) == 2 + MOST_QUEUES
    assert any(line.startswith("q16 2 none started none started none started unknown") for line in lines)


def test_waits_by_width() -> None:
    runs = []
    for policy, wait in (("slow", 2), ("quick", 0)):
        story = Story().job("", 1, 0, 0, 1).job("", 4, 0, wait, wait + 1).job("", 12, 0, 3)
        runs.append(RunResult("widths", policy, story.card(6)))
    lines = printed(band_table(runs))
    assert lines[0] == "Cards Policy Jobs Wait, mean p95 longest Slowdown"
    assert lines[4:] == [
        "2-4 slow 1 2 h 2 h 2 h 3.00 ×",
        "quick 1 0 s 0 s 0 s 1.00 ×",
        "9+ slow 1 3 h 3 h 3 h unknown",
        "quick 1 3 h 3 h 3 h unknown",
    ]


def test_two_widths_are_in_the_scorecard_already() -> None:
    assert band_table([whole_cards()]) is None
    assert "Wait of jobs of 8 cards or more, mean 2 h 32 min" in printed(scorecard_table([whole_cards()]))


def test_failures_are_counted_and_the_rest_is_named() -> None:
    first, gaps = failure_lines([whole_cards(), replace(slices(), policy="other")])
    assert first.startswith(
        "Counted under whole cards: Jobs holding cards of which they asked less than half: 20;"
    )
    assert "but scattered: 3" in first
    assert gaps.startswith("Not measured: Jobs below their own throughput (how far: MFU), ")
    assert gaps.count(",") == sum(failure.unmeasured is not None for failure in FAILURES) - 1


def test_a_share_that_is_unknown_is_not_0() -> None:
    lines = printed(scorecard_table([quotas(), replace(slices(), scenario="other")]))
    met = next(line for line in lines if line.startswith("Quota satisfaction"))
    assert met == "Quota satisfaction 75.0 % unknown"


@pytest.mark.parametrize(
    ("figure", "row"),
    [
        ("start_by_met", "Promised starts kept 0.0 %"),
        ("finish_by_met", "Promised ends kept 0.0 %"),
        ("quota_satisfaction", "Quota satisfaction 0.0 %"),
        ("allocation", "Allocation rate 0.0 %"),
        ("finished", "Succeeded 0"),
        ("goodput", "Goodput: progress that stayed 0.0 %"),
    ],
)
def test_the_worst_that_a_figure_can_be_is_shown_though_it_is_0(figure: str, row: str) -> None:
    run = quotas()
    run = replace(run, scorecard=replace(run.scorecard, **{figure: 0}))
    assert any(line.startswith(row) for line in printed(scorecard_table([run])))
    title = row.split(" 0", maxsplit=1)[0]
    shown, _, rest = render_report([run], title="x").partition("Figures that are zero or unknown everywhere")
    assert title in shown
    assert title not in rest.partition("</details>")[0]


def test_a_figure_of_which_0_is_the_best_is_left_unsaid() -> None:
    run = quotas()
    lines = printed(scorecard_table([replace(run, scorecard=replace(run.scorecard, evicted=0, waiting=0))]))
    assert not [line for line in lines if line.startswith(("Evictions", "Still waiting"))]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("Quotas by resource", id="quotas"),
        pytest.param("按资源的配额", id="quotas in Chinese"),
        pytest.param("What failure looks like", id="failures"),
        pytest.param("没有作业上报吞吐量", id="why there is no MFU"),
        pytest.param('id="queues"', id="a section of its own"),
        pytest.param("8.0 cards", id="amounts in cards"),
        pytest.param("not measured", id="unknown is a word"),
    ],
)
def test_the_report_speaks_of_queues(said: str) -> None:
    assert said in render_report([quotas()], title="t")


def test_a_report_without_queues_has_no_section_for_them() -> None:
    plain = RunResult("plain", "p", Story().job("", 4, 0, 1, 2).card())
    assert 'id="queues"' not in render_report([plain], title="t")
