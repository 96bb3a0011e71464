"""Bounds in the planner: who must not wait longer goes first and gets a reservation."""

from __future__ import annotations

from aliquot.core.events import Outcome
from aliquot.core.jobs import Bound
from aliquot.core.planner import Memo
from aliquot.core.settings import Backfill, Preemption
from aliquot.core.standing import is_overdue, overdue_at
from aliquot.core.turning import line_up
from tests.support.planning import carried_out, nodes_of, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE
RULES = Backfill(first=0)
HOW = settings(backfill=RULES)


def full_site() -> WorldBuilder:
    """One card, busy for an hour, and two who wait for it: the longer one must start within two hours."""
    site = WorldBuilder().node("n", 1).submit("busy", estimate_ms=HOUR)
    carried_out(site, HOW)
    site.submit("bounded", estimate_ms=5 * HOUR, bound=Bound(start_by_ms=2 * HOUR))
    return site.submit("short", estimate_ms=HOUR)


def test_a_bound_makes_overdue_before_its_last_moment() -> None:
    record = full_site().job("bounded")
    assert not is_overdue(record, HOW, 90 * MINUTE - 1)
    assert is_overdue(record, HOW, 90 * MINUTE)
    assert not is_overdue(record, settings(), 90 * MINUTE), "only where there are reservations at all"


def test_a_far_bound_changes_nothing() -> None:
    site = WorldBuilder().submit("j", bound=Bound(start_by_ms=500 * HOUR)).submit("k")
    far, none = site.job("j").job, site.job("k").job
    for job in (far, none):
        assert not overdue_at(job, RULES, RULES.overdue_ms - 1)
        assert overdue_at(job, RULES, RULES.overdue_ms)


def test_a_bound_that_is_lost_presses_no_more_and_one_that_can_be_kept_goes_before_it() -> None:
    """Who came first and is late already does not make the next late too."""
    site = WorldBuilder().node("n", 1).submit("busy", estimate_ms=2 * HOUR)
    carried_out(site, HOW)
    site.later(MINUTE).submit("lost", estimate_ms=HOUR, bound=Bound(finish_by_ms=30 * MINUTE))
    site.later(MINUTE).submit("kept", estimate_ms=HOUR, bound=Bound(finish_by_ms=3 * HOUR))
    carried_out(site, HOW)
    site.later(2 * HOUR - 2 * MINUTE).started("busy").ended("busy")
    assert nodes_of(carried_out(site, HOW)) == {"kept": ["n"]}


def test_before_its_bound_is_in_danger_the_shorter_job_goes_first() -> None:
    site = full_site().later(HOUR).started("busy").ended("busy")
    assert list(nodes_of(carried_out(site, HOW))) == ["short"]


def test_once_it_is_in_danger_it_goes_before_the_shorter_job() -> None:
    site = full_site().later(95 * MINUTE).started("busy").ended("busy")
    assert list(nodes_of(carried_out(site, HOW))) == ["bounded"]


def test_it_has_a_right_to_a_reservation_then() -> None:
    site = full_site()
    carried_out(site, HOW)
    assert site.frozen.kept == ()
    site.later(95 * MINUTE)
    carried_out(site, HOW)
    assert [kept.job for kept in site.frozen.kept] == ["bounded"]


def test_a_warm_memo_knows_of_bounds_as_an_empty_one_does() -> None:
    warm, site = Memo(), full_site()
    carried_out(site, HOW, memo=warm)
    site.later(95 * MINUTE).started("busy").ended("busy")
    assert list(nodes_of(carried_out(site, HOW, memo=warm))) == ["bounded"]


def test_the_line_is_in_the_order_of_a_plan_and_changes_no_plan() -> None:
    memo, site = Memo(), full_site()
    carried_out(site, HOW, memo=memo)
    assert line_up(memo.standing.turns(site.frozen, HOW, site.at)) == ["short", "bounded"]
    assert line_up(memo.standing.turns(site.frozen, settings(), site.at)) == ["bounded", "short"]
    site.later(95 * MINUTE)
    assert line_up(memo.standing.turns(site.frozen, HOW, site.at)) == ["bounded", "short"]
    site.started("busy").ended("busy")
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {"bounded": ["n"]}


def test_who_started_on_room_made_for_it_and_is_over_leaves_no_trace() -> None:
    """A keep that is used and a job that ends, both between two plans with one memo."""
    memo, how = Memo(), settings(preemption=Preemption())
    site = WorldBuilder().node("n", 1).submit("low", estimate_ms=HOUR)
    carried_out(site, how, memo=memo)
    site.started("low").submit("high", priority=5, estimate_ms=HOUR)
    carried_out(site, how, memo=memo)
    assert [kept.job for kept in site.frozen.kept] == ["high"]
    carried_out(site, how, memo=memo)
    site.ended("low", Outcome.FAILED)
    carried_out(site, how, memo=memo)
    assert "high" in site.holding
    site.started("high").ended("high")
    assert nodes_of(carried_out(site, how, memo=memo)) == {"low": ["n"]}
