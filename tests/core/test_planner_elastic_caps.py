"""Elastic jobs under monthly money and the cap of spot work: growth obeys them as a start does."""

from __future__ import annotations

from typing import Any

import pytest

from aliquot.core.jobs import Elastic
from aliquot.core.months import begin_of, month_of
from aliquot.core.queues import Queue
from aliquot.core.settings import ElasticRules, Order, Preemption, Rates, Settings, SpotCap
from aliquot.core.spending import used_by
from aliquot.core.steps import Gate, Resize
from tests.support.build import a_node, a_placement
from tests.support.planning import carried_out, gates, planned, ran, settings, width
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
MINUTE = 60_000
LINEAR = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
HALF = Elastic((1, 2, 4, 8), (1000, 1500, 2250, 3375))  # each card more costs a third more for the same work
RATES = Rates(cents_a_month=(("H100", 73_000),))  # one card costs 1.00 an hour
FEBRUARY = begin_of(month_of(0) + 1)


def rich(cents: int, **more: Any) -> Settings:
    """Elastic jobs, and a queue that may spend so much each month."""
    lab = Queue("lab", budget_cents=cents)
    rules = {"elastic": ElasticRules(dwell_ms=0), "order": Order(half_life_ms=0), "rates": RATES}
    return settings(queues=(lab,), **(rules | more))


def grown(how: Settings, **job: Any) -> WorldBuilder:
    """`e` had one card of eight as long as `r` held the others; then it may grow."""
    site = WorldBuilder().node("n", 8).submit("r", cards=7)
    ran(site, how).submit("e", cards=8, **job)
    ran(site, how).ended("r")
    assert width(site, "e") == 1
    carried_out(site, how)
    return site


MONEY = [
    pytest.param(100, LINEAR, 4, 1, id="not even its narrowest: it waits"),
    pytest.param(400, LINEAR, 4, 8, id="four hours of one card are half an hour of eight"),
    pytest.param(534, HALF, 4, 2, id="two are dearer, and there is enough"),
    pytest.param(533, HALF, 4, 1, id="a cent too little for two"),
    pytest.param(711, HALF, 4, 2, id="a cent too little for four"),
    pytest.param(712, HALF, 4, 4, id="enough for four"),
    pytest.param(1, LINEAR, None, 8, id="unknown while anything is left"),
]


@pytest.mark.parametrize(("cents", "elastic", "hours", "expected"), MONEY)
def test_it_starts_as_wide_as_the_money_of_the_month_allows(
    cents: int, elastic: Elastic, hours: int | None, expected: int
) -> None:
    how = rich(cents)
    length = None if hours is None else hours * HOUR
    site = WorldBuilder().node("n", 8).submit("e", cards=8, elastic=elastic, queue="lab", estimate_ms=length)
    decided = carried_out(site, how)
    if cents < 400 and hours:
        assert gates(decided) == {"e": Gate.QUOTA}
    else:
        assert width(site, "e") == expected


@pytest.mark.parametrize(
    ("cents", "elastic", "expected"),
    [
        pytest.param(10_000, HALF, 8, id="there is enough"),
        pytest.param(733, HALF, 4, id="what it has used counts"),
        pytest.param(550, HALF, 2, id="enough for two"),
        pytest.param(549, HALF, 1, id="a cent too little for two"),
        pytest.param(417, LINEAR, 8, id="wider costs no more where speed is linear"),
    ],
)
def test_it_grows_as_far_as_the_money_of_the_month_allows(
    cents: int, elastic: Elastic, expected: int
) -> None:
    """It has run for ten minutes on one card, and used 0.17; it is reckoned to run its whole length anew."""
    site = grown(rich(cents), elastic=elastic, queue="lab", estimate_ms=4 * HOUR)
    assert width(site, "e") == expected


def test_when_the_money_is_used_up_one_of_unknown_length_runs_on_but_does_not_grow() -> None:
    assert width(grown(rich(17), elastic=LINEAR, queue="lab"), "e") == 8, "a third of a cent is left"
    assert width(grown(rich(16), elastic=LINEAR, queue="lab"), "e") == 1


def test_it_may_grow_with_the_new_month_and_the_plan_asks_to_be_woken_then() -> None:
    how = rich(16)
    site = grown(how, elastic=LINEAR, queue="lab")
    assert planned(site, how).wake_ms == FEBRUARY
    site.later(FEBRUARY - site.at)
    carried_out(site, how)
    assert width(site, "e") == 8


def test_two_that_grow_in_one_plan_do_not_both_take_the_last_money() -> None:
    """Each has one card and 4.00 is spoken for; at two it would be 5.33, and there are 2.00 left."""
    how, node = rich(1000), a_node("n", 4)
    site = WorldBuilder().node(node)
    for at, name in enumerate("ef"):
        site.submit(name, cards=2, elastic=Elastic((1, 2), (1000, 1500)), queue="lab", estimate_ms=4 * HOUR)
        site.granted(name, a_placement(node, [at])).started(name)
    decided = carried_out(site, how)
    assert [step.job for step in decided.steps if isinstance(step, Resize)] == ["e"]
    assert (width(site, "e"), width(site, "f")) == (2, 1)


def test_what_it_costs_is_counted_at_the_width_it_has() -> None:
    """Four hours at one card are two at three: 6.00 is spoken for, and nothing once it is over."""
    site = WorldBuilder().node("n", 3)
    three = Elastic((1, 3), (1000, 2000))
    site.submit("e", cards=3, elastic=three, queue="lab", estimate_ms=4 * HOUR)
    carried_out(site, rich(10_000))
    (spent,) = site.frozen.spent.values()
    assert (spent.known, spent.ends) == (3000, 3000 * 2 * HOUR)
    site.started("e").later(HOUR).ended("e")
    (spent,) = site.frozen.spent.values()
    assert (spent.known, spent.ends, used_by(spent, site.at)) == (0, 0, 3000 * HOUR)


# --- spot ---------------------------------------------------------------------------------------------

CAPPED = settings(
    spot_cap=SpotCap(), preemption=Preemption(), elastic=ElasticRules(dwell_ms=0), order=Order(half_life_ms=0)
)


def after_a_rush(rush: int) -> WorldBuilder:
    """Eight cards, of which `rush` were wanted once and may be again."""
    site = WorldBuilder().node("n", 8).submit("rush", cards=rush)
    carried_out(site, CAPPED)
    return site.started("rush").later(MINUTE).ended("rush")


@pytest.mark.parametrize(("rush", "expected"), [(1, 4), (4, 4), (5, 2), (7, 1)])
@pytest.mark.parametrize("asked", [1, 8])
def test_spot_work_starts_as_wide_as_others_are_expected_to_leave(
    rush: int, expected: int, asked: int
) -> None:
    site = after_a_rush(rush).submit("s", cards=asked, elastic=LINEAR, spot=True)
    carried_out(site, CAPPED)
    assert width(site, "s") == expected


@pytest.mark.parametrize(("rush", "expected"), [(5, 2), (6, 2), (7, 1)])
def test_spot_work_grows_no_further_than_that(rush: int, expected: int) -> None:
    how = settings(order=Order(half_life_ms=0))
    site = ran(after_a_rush(rush).submit("r", cards=7, spot=True), how)
    ran(site.submit("s", cards=8, elastic=LINEAR, spot=True), how).ended("r")
    assert width(site, "s") == 1
    carried_out(site, CAPPED)
    assert width(site, "s") == expected


def test_what_spot_work_holds_is_its_width_and_not_what_it_asked() -> None:
    """Four of eight may be spot work: two that asked for eight have two each."""
    two = Elastic((2, 8), (1000, 4000))
    site = after_a_rush(4).submit("s", cards=8, elastic=two, spot=True)
    carried_out(site, CAPPED)
    carried_out(site.started("s").submit("t", cards=8, elastic=two, spot=True), CAPPED)
    assert (width(site, "s"), width(site, "t")) == (2, 2)
    assert gates(carried_out(site.submit("u", cards=1, spot=True), CAPPED)) == {"u": Gate.SPOT}
