"""`aliquot queues`: columns only for what there is, and money told as money."""

from __future__ import annotations

from aliquot.control.views import BudgetView, QueueView
from aliquot.core.months import begin_of
from aliquot.interfaces.cli.live_queues import queue_lines

JANUARY = begin_of(2027 * 12)
BUDGET = BudgetView("2026-12", nominal=100_000, used=81_250, due=10_000, left=8750, renews_ms=JANUARY)


def a_queue(name: str, budget: BudgetView | None = None) -> QueueView:
    """One with nothing in it."""
    return QueueView(name, priority=0, waiting=0, running=0, cards_milli=0, budget=budget)


def test_a_budget_has_columns_and_a_line_that_adds_up() -> None:
    heads, lab, other, line = queue_lines([a_queue("lab", BUDGET), a_queue("other")])
    assert heads.split()[-3:] == ["BUDGET", "SPENT", "LEFT"]
    assert lab.split()[-3:] == ["1000.00", "812.50", "87.50"]
    assert other.split()[-3:] == ["-", "-", "-"], "no budget is no budget of nothing"
    assert line == (
        "lab: money of 2026-12: spent 812.50 of 1000.00, 100.00 more by those who run, 87.50 left;"
        " new budget on 2027-01-01"
    )


def test_what_has_no_price_is_not_free() -> None:
    budget = BudgetView("2026-12", 100, used=0, due=0, left=100, renews_ms=JANUARY, unpriced=("L4", "T4"))
    line = queue_lines([a_queue("lab", budget)])[-1]
    assert "spent at least 0.00 of 1.00, 1.00 left" in line
    assert line.endswith("no price is known of L4, T4, which were used")


def test_without_budgets_there_are_no_columns_of_money() -> None:
    heads, _ = queue_lines([a_queue("lab")])
    assert heads.split() == ["QUEUE", "PRIORITY", "WAITING", "RUNNING", "CARDS"]
