"""Money per calendar month: exact use, what may start, the turn of the month, and who is stopped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.budget import PRICED_MS
from aliquot.core.ids import JobId
from aliquot.core.image import image_of, world_of
from aliquot.core.months import begin_of, month_of
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import Queue
from aliquot.core.records import Asked, JobRecord, Spent
from aliquot.core.settings import Preemption, Rates, Settings
from aliquot.core.spending import Spending, due_by, used_by
from aliquot.core.steps import Cause, Evict, Gate, Lack
from tests.support.build import a_job, a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
CENTS = 73_000  # a month: one card costs a whole 1.00 an hour
FEBRUARY = begin_of(month_of(0) + 1)
RATES = Rates(cents_a_month=(("H100", CENTS),))


def how(*queues: Queue, **more: Any) -> Settings:
    """Queues with budgets, and cards at 1.00 an hour."""
    return settings(queues=queues, rates=RATES, **more)


def lab(cents: int, **more: Any) -> Queue:
    """A queue with so much for each month."""
    return Queue("lab", budget_cents=cents, **more)


def lack_of(site: WorldBuilder, rules: Settings, name: str) -> Lack:
    """What keeps a job waiting: money."""
    wait = explain_wait(site.frozen, rules, JobId(name), Memo(), site.at)
    assert wait.gate is Gate.QUOTA
    assert wait.lack is not None
    return wait.lack


def site(cards: int = 8) -> WorldBuilder:
    """One node, on the first of January."""
    return WorldBuilder().nodes(1, cards)


@pytest.mark.parametrize(
    ("told", "starts"),
    [
        pytest.param({"estimate_ms": 10 * HOUR}, True, id="as-much-as-there-is"),
        pytest.param({"estimate_ms": 10 * HOUR + 1}, False, id="a-little-more"),
        pytest.param({"limit_ms": 10 * HOUR}, True, id="the-limit-counts-without-an-estimate"),
        pytest.param({}, True, id="unknown-while-anything-is-left"),
        pytest.param({"cards": 2, "estimate_ms": 6 * HOUR}, False, id="two-cards-cost-twice"),
    ],
)
def test_a_job_starts_if_what_it_will_cost_is_left(told: dict[str, Any], starts: bool) -> None:
    rules = how(lab(1000))
    assert bool(nodes_of(planned(site().submit("j", queue="lab", **told), rules))) is starts


def test_jobs_that_run_and_jobs_of_the_same_pass_count_with_what_they_will_cost() -> None:
    rules, there = how(lab(1000)), site()
    for name in ("a", "b", "c"):
        there.submit(name, queue="lab", estimate_ms=4 * HOUR)
    assert list(nodes_of(carried_out(there, rules))) == ["a", "b"]
    there.started("a").started("b").later(HOUR)
    lack = lack_of(there, rules, "c")
    assert (lack.used, lack.due, lack.budget, lack.need, lack.have) == (200, 600, 1000, 400, 200)


def test_who_ends_early_gives_back_what_was_spoken_for() -> None:
    rules, there = how(lab(1000)), site().submit("a", queue="lab", estimate_ms=9 * HOUR)
    carried_out(there, rules)
    there.submit("b", queue="lab", estimate_ms=8 * HOUR)
    assert gates(planned(there, rules)) == {"b": Gate.QUOTA}
    there.started("a").later(HOUR).ended("a")
    assert list(nodes_of(planned(there, rules))) == ["b"]


def test_every_queue_above_has_to_have_it_left_too() -> None:
    rules = how(Queue("lab/one", budget_cents=5000), Queue("lab", budget_cents=300))
    there = site().submit("j", queue="lab/one", estimate_ms=4 * HOUR)
    lack = lack_of(there, rules, "j")
    assert (lack.queue, lack.budget) == ("lab", 300)


def test_the_new_month_has_a_new_budget_and_the_plan_asks_to_be_woken_then() -> None:
    rules, there = how(lab(100)), site().submit("a", queue="lab", estimate_ms=HOUR)
    carried_out(there, rules)
    there.started("a").later(HOUR).ended("a").submit("b", queue="lab", estimate_ms=HOUR)
    decided = carried_out(there, rules)
    assert (gates(decided), decided.wake_ms) == ({"b": Gate.QUOTA}, FEBRUARY)
    assert lack_of(there, rules, "b").renews_ms == FEBRUARY
    there.later(FEBRUARY - there.at)
    assert list(nodes_of(carried_out(there, rules))) == ["b"]


def test_only_what_falls_into_this_month_is_paid_by_it() -> None:
    rules, there = how(lab(100)), site().later(FEBRUARY - HOUR)
    there.submit("long", queue="lab", estimate_ms=50 * HOUR)
    assert list(nodes_of(carried_out(there, rules))) == ["long"]
    there.later(2 * HOUR).submit("next", queue="lab", estimate_ms=1)
    lack = lack_of(there, rules, "next")
    assert (lack.used, lack.due) == (100, 4800)


def test_who_runs_when_the_money_is_used_up_runs_on() -> None:
    rules, there = how(lab(100)), site().submit("a", queue="lab")
    carried_out(there, rules)
    there.started("a").later(5 * HOUR).submit("b", queue="lab")
    decided = planned(there, rules)
    assert (gates(decided), [step for step in decided.steps if isinstance(step, Evict)]) == (
        {"b": Gate.QUOTA},
        [],
    )
    assert lack_of(there, rules, "b").need == 0, "nobody knows what it would cost"


def test_or_is_stopped_where_the_queue_says_so() -> None:
    """Nobody waits; the plan asks to be woken when the last cent is used."""
    rules, there = how(lab(150, spent_grace_ms=60_000)), site()
    there.submit("a", queue="lab").submit("free", a_request(0, cpu=1000), queue="lab").submit(
        "other", queue=""
    )
    carried_out(there, rules)
    for name in ("a", "free", "other"):
        there.started(name)
    assert planned(there, rules).wake_ms == 3 * HOUR // 2
    decided = carried_out(there.later(3 * HOUR // 2), rules)
    stopped = [(step.job, step.cause, step.grace_ms) for step in decided.steps if isinstance(step, Evict)]
    assert stopped == [("a", Cause.BUDGET, 60_000)]


def test_nothing_may_be_spent_of_a_budget_of_0_but_what_costs_nothing_starts() -> None:
    rules = how(lab(0))
    there = site().submit("j", queue="lab").submit("free", a_request(0, cpu=1000), queue="lab")
    decided = planned(there, rules)
    assert (list(nodes_of(decided)), gates(decided)) == (["free"], {"j": Gate.QUOTA})


def test_nobody_is_stopped_for_a_job_without_money() -> None:
    rules, there = how(lab(100), Queue("rich"), preemption=Preemption()), site(1)
    carried_out(there.submit("low", queue="lab", estimate_ms=HOUR), rules)
    there.started("low").submit("high", queue="lab", priority=9, estimate_ms=HOUR)
    assert not [step for step in planned(there, rules).steps if isinstance(step, Evict)]


def test_cheaper_jobs_behind_one_that_costs_too_much_start() -> None:
    rules, there = how(lab(100)), site()
    there.submit("dear", queue="lab", estimate_ms=2 * HOUR).submit("cheap", queue="lab", estimate_ms=HOUR)
    decided = planned(there, rules)
    assert (list(nodes_of(decided)), gates(decided)) == (["cheap"], {"dear": Gate.QUOTA})


def test_cards_without_a_price_need_something_to_be_left() -> None:
    unpriced = how(lab(0)), how(lab(1))
    there = site().submit("j", queue="lab", estimate_ms=HOUR)
    starts = [bool(nodes_of(planned(there, settings(queues=rules.queues)))) for rules in unpriced]
    assert starts == [False, True]


def test_a_month_at_full_time_costs_its_price_for_730_hours() -> None:
    rules, there = how(lab(10**6)), site().submit("a", queue="lab")
    carried_out(there, rules)
    there.later(PRICED_MS)
    (spent,) = there.frozen.spent.values()
    assert used_by(spent, there.at) * CENTS == CENTS * 1000 * PRICED_MS


Change = tuple[int, int, int]  # (ms later, milli-cards, hours it is said to run; 0: nothing is said)
CHANGES = st.tuples(st.integers(0, 40 * 24 * HOUR), st.integers(1, 4000), st.integers(0, 99))


@given(st.lists(CHANGES, max_size=8))
def test_use_is_what_a_stopwatch_would_say(changes: list[Change]) -> None:
    """Each holds something from its turn on; every second turn also ends the one before."""
    spending, at = Spending(), 0
    spells: list[tuple[int, int | None, int, int]] = []  # (from, until, milli-cards, hours)
    for number, (later, milli, hours) in enumerate(changes):
        at += later
        if number % 2:
            since, _, held, said = spells[-1]
            spending.close(spender(said), (Asked("H100", held, 0),), since, at)
            spells[-1] = (since, at, held, said)
        spending.open(spender(hours), (Asked("H100", milli, 0),), at)
        spells.append((at, None, milli, hours))
    month = begin_of(month_of(at))
    spans = [(max(start, month), at if end is None else end, milli) for start, end, milli, _ in spells]
    expected = sum(milli * max(0, end - start) for start, end, milli in spans)
    assert sum(used_by(spent, at) for spent in spending.book.values()) == expected


def spender(hours: int) -> JobRecord:
    """A job that says how long it runs, or not."""
    return JobRecord(a_job("j", queue="q", estimate_ms=hours * HOUR or None))


def test_what_is_expected_ends_with_the_month_and_is_never_below_nothing() -> None:
    spent = Spent(month_of(0), 0, 3000, 0, known=2000, ends=2000 * 10 * HOUR)
    assert due_by(spent, HOUR, 99 * HOUR) == 2000 * 9 * HOUR
    assert due_by(spent, HOUR, 4 * HOUR) == 2000 * 3 * HOUR
    assert due_by(spent, 20 * HOUR, 99 * HOUR) == 0


def test_what_was_spent_is_in_the_image_and_in_the_fold() -> None:
    there = site().submit("a", queue="lab", estimate_ms=HOUR)
    carried_out(there, how(lab(100)))
    again = world_of(image_of(there.world)).freeze()
    assert again.spent == there.frozen.spent == there.rebuilt().freeze().spent
    there.started("a").later(HOUR).ended("a")
    (spent,) = there.frozen.spent.values()
    assert (spent.milli, spent.known, spent.ends) == (0, 0, 0)
