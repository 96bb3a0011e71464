"""Money of queues as people see it: of this month, spent, due and left, with what is above and below."""

from __future__ import annotations

from aliquot.control.purses import budget_views
from aliquot.control.views import BudgetView
from aliquot.core.months import begin_of, month_of
from aliquot.core.queues import Queue
from aliquot.core.settings import Rates, Settings
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
RATES = Rates(cents_a_month=(("H100", 73_000),))  # one card costs 1.00 an hour
QUEUES = (Queue("lab", budget_cents=2000), Queue("lab/a", budget_cents=500), Queue("lab/b"))
HOW = settings(queues=QUEUES, rates=RATES)
FEBRUARY = begin_of(month_of(0) + 1)


def running(site: WorldBuilder, rules: Settings = HOW) -> WorldBuilder:
    """`b` runs on two cards for five hours, as far as one knows; two hours have passed."""
    site.submit("b", cards=2, queue="lab/b", estimate_ms=5 * HOUR)
    carried_out(site, rules)
    return site.started("b").later(2 * HOUR)


def test_a_budget_shows_what_is_spent_due_and_left_of_this_month() -> None:
    site = running(WorldBuilder().node("n", 8))
    assert budget_views(site.frozen, HOW, site.at) == {
        "lab": BudgetView("1970-01", 2000, used=400, due=600, left=1000, renews_ms=FEBRUARY),
        "lab/a": BudgetView("1970-01", 500, used=0, due=0, left=500, renews_ms=FEBRUARY),
    }


def test_each_month_begins_with_the_whole_budget_and_pays_for_what_runs_on() -> None:
    site = running(WorldBuilder().node("n", 8).later(FEBRUARY - HOUR))
    lab = budget_views(site.frozen, HOW, site.at)["lab"]
    assert (lab.month, lab.used, lab.due, lab.left) == ("1970-02", 200, 600, 1200)
    assert lab.renews_ms == begin_of(month_of(0) + 2)


def test_what_is_beyond_the_budget_is_not_left_and_no_debt_either() -> None:
    site = running(WorldBuilder().node("n", 8)).later(20 * HOUR)
    lab = budget_views(site.frozen, HOW, site.at)["lab"]
    assert (lab.used, lab.due, lab.left) == (4400, 0, 0)


def test_cards_without_a_price_are_named_since_they_are_not_free() -> None:
    rules = settings(queues=QUEUES)
    site = running(WorldBuilder().node("n", 8), rules)
    lab = budget_views(site.frozen, rules, site.at)["lab"]
    assert (lab.used, lab.unpriced) == (0, ("H100",))
    assert budget_views(site.frozen, rules, site.at)["lab/a"].unpriced == ()


def test_without_budgets_nothing_is_counted() -> None:
    assert budget_views(WorldBuilder().frozen, settings(queues=QUEUES[2:]), 0) == {}
