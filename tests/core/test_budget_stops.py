"""Who is stopped for a budget goes on where that leads somewhere, and every plan knows when to look again."""

from __future__ import annotations

from typing import Any

import pytest

from aliquot.core.events import Outcome
from aliquot.core.ids import JobId
from aliquot.core.image import image_of, world_of
from aliquot.core.jobs import Stop
from aliquot.core.months import begin_of, month_of
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import CARDS, Measure, Queue, Quota, Resource
from aliquot.core.settings import Rates, Settings
from aliquot.core.steps import Gate, Lack, Wait
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

HOUR, MINUTE = 3_600_000, 60_000
CENTS = 73_000  # a month: one card costs a whole 1.00 an hour
FEBRUARY = begin_of(month_of(0) + 1)
RATES = Rates(cents_a_month=(("H100", CENTS),), compute_milli=(("H100", 1000),))
SAVES = Stop(checkpoint_ms=HOUR)


def how(*queues: Queue) -> Settings:
    """Cards at 1.00 an hour."""
    return settings(queues=queues, rates=RATES)


def stops(cents: int, name: str = "lab") -> Queue:
    """A queue whose jobs are stopped when so much is used up in a month."""
    return Queue(name, budget_cents=cents, spent_grace_ms=MINUTE)


def stopped(rules: Settings, hours: int, **more: Any) -> WorldBuilder:
    """A job of `lab` that was stopped after so long, as the budget was used up."""
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab", **more)
    carried_out(there, rules)
    there.started("j").later(hours * HOUR)
    carried_out(there, rules)
    return there.ended("j", Outcome.FAILED)


def lack_of(there: WorldBuilder, rules: Settings, name: str = "j") -> Lack:
    """What keeps a job waiting: money."""
    wait = explain_wait(there.frozen, rules, JobId(name), Memo(), there.at)
    assert wait.gate is Gate.QUOTA
    assert wait.lack is not None
    return wait.lack


def in_february(there: WorldBuilder) -> WorldBuilder:
    """At the turn of the month."""
    return there.later(FEBRUARY - there.at)


def test_a_plan_that_starts_a_job_is_woken_when_that_job_has_used_the_budget_up() -> None:
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab", cards=2)
    assert planned(there, how(stops(300))).wake_ms == 3 * HOUR // 2


def test_and_at_the_turn_of_the_month_where_it_lasts_until_then_but_not_for_a_month() -> None:
    there = WorldBuilder().nodes(1, 8).later(FEBRUARY - HOUR).submit("j", queue="lab")
    assert planned(there, how(stops(300))).wake_ms == FEBRUARY


def test_and_never_where_a_month_of_it_is_paid() -> None:
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab")
    assert planned(there, how(stops(32 * 24 * 100))).wake_ms is None


@pytest.mark.parametrize(
    ("budget", "again"),
    [
        pytest.param(0, None, id="nothing-is-left-in-any-month"),
        pytest.param(100, FEBRUARY - HOUR, id="late-enough-that-what-is-left-lasts-for-the-month"),
    ],
)
def test_a_job_dearer_than_what_there_is_wakes_the_planner_when_it_may_start(
    budget: int, again: int | None
) -> None:
    rules = how(Queue("lab", budget_cents=budget))
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab", estimate_ms=2 * HOUR)
    assert (planned(there, rules).wake_ms, lack_of(there, rules).again_ms) == (again, again)
    if again is not None:
        assert list(nodes_of(planned(there.later(again), rules))) == ["j"]


def test_a_budget_above_that_is_never_there_is_named_before_one_that_comes_again() -> None:
    rules = how(Queue("lab", budget_cents=100), Queue("", budget_cents=0))
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab", estimate_ms=2 * HOUR)
    lack = lack_of(there, rules)
    assert (lack.queue, lack.again_ms, planned(there, rules).wake_ms) == ("", None, None)


def test_who_saved_something_goes_on_in_the_next_month() -> None:
    rules = how(stops(150))
    there = stopped(rules, 2, stop=SAVES)
    assert lack_of(there, rules).again_ms == FEBRUARY
    assert list(nodes_of(planned(in_february(there), rules))) == ["j"]


@pytest.mark.parametrize("stop", [Stop(), Stop(checkpoint_ms=3 * HOUR)])
def test_who_ran_on_a_whole_budget_with_nothing_saved_is_not_started_again(stop: Stop) -> None:
    rules = how(stops(200))
    there = stopped(rules, 2, stop=stop)
    decided = planned(in_february(there), rules)
    assert (gates(decided), decided.wake_ms) == ({"j": Gate.QUOTA}, None)
    lack = lack_of(there, rules)
    assert (lack.again_ms, lack.in_vain_ms, lack.need) == (None, 2 * HOUR, 201)
    assert list(nodes_of(planned(there, how(stops(300))))) == ["j"], "a larger budget changes that"


def test_who_had_to_share_the_budget_is_tried_once_more_when_it_may_last_longer() -> None:
    """b used half of it: j ran for an hour, and may run for two in the next month, but not for four."""
    rules = how(stops(200))
    there = WorldBuilder().nodes(1, 8).submit("j", queue="lab").submit("b", queue="lab")
    carried_out(there, rules)
    carried_out(there.started("j").started("b").later(HOUR), rules)
    there.ended("j", Outcome.FAILED).ended("b", Outcome.FAILED)
    assert lack_of(there, rules).again_ms == FEBRUARY
    assert "j" in nodes_of(carried_out(in_february(there), rules))
    carried_out(there.started("j").later(2 * HOUR), rules)
    there.ended("j", Outcome.FAILED)
    assert there.job("j").in_vain_ms == 2 * HOUR
    assert lack_of(there, rules).again_ms is None


def test_each_try_in_vain_doubles_what_the_next_one_needs() -> None:
    rules = how(stops(10_000))
    there = stopped(how(stops(200)), 2)
    carried_out(in_february(there), rules)
    carried_out(there.started("j").later(1), how(stops(0)))
    there.ended("j", Outcome.FAILED)
    assert there.job("j").in_vain_ms == 4 * HOUR


def test_what_was_in_vain_is_in_the_image_and_in_the_fold() -> None:
    there = stopped(how(stops(200)), 2)
    again = world_of(image_of(there.world)).freeze()
    known = [world.jobs[JobId("j")].in_vain_ms for world in (again, there.rebuilt().freeze())]
    assert known == [2 * HOUR, 2 * HOUR]


@pytest.mark.parametrize(
    ("resource", "nominal"),
    [
        pytest.param(CARDS, 4000, id="cards"),
        pytest.param(Resource(Measure.COMPUTE), 4000, id="compute"),
        pytest.param(Resource(Measure.MONEY), 4 * CENTS, id="money"),
    ],
)
def test_a_nominal_of_the_pool_below_what_it_has_is_a_limit(resource: Resource, nominal: int) -> None:
    rules = how(Queue("", quotas=(Quota(resource, nominal),)), Queue("lab", quotas=(Quota(CARDS, 1000),)))
    there = WorldBuilder().nodes(1, 8)
    there.submit("a", queue="lab", cards=3).submit("b", queue="lab", cards=2).submit("c", queue="lab")
    decided = planned(there, rules)
    assert (list(nodes_of(decided)), gates(decided)) == (["a", "c"], {"b": Gate.QUOTA})
    (wait,) = [step for step in decided.steps if isinstance(step, Wait)]
    assert wait.lack is not None
    assert (wait.lack.resource, wait.lack.queue) == (resource, "")
