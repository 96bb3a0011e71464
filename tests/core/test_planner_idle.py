"""Idle jobs in the planner: measured, warned, and stopped for good or for a while."""

from __future__ import annotations

from typing import Any

from aliquot.core.events import Evicting, Idle, JobCancelled, Warned
from aliquot.core.jobs import Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.settings import Idling
from aliquot.core.steps import Evict, Warn, Withdraw
from tests.support.planning import carried_out, planned, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOW = settings(idling=Idling(warn_after_ms=30 * MINUTE, stop_after_ms=60 * MINUTE))


def idle_job(**more: Any) -> WorldBuilder:
    """A job that runs and has been idle since minute 10, which it is now."""
    site = WorldBuilder().node("n", 8).submit("j", **more)
    carried_out(site, HOW)
    site.started("j").later(10 * MINUTE)
    return site.happen(Idle(site.at, site.job("j").job.id, 1, site.at))


def test_first_nothing_then_a_warning_then_the_end() -> None:
    site = idle_job()
    decided = planned(site, HOW)
    assert (decided.steps, decided.wake_ms) == ((), 40 * MINUTE)
    carried_out(site.later(30 * MINUTE), HOW)
    assert isinstance(site.events[-1], Warned)
    decided = planned(site, HOW)
    assert (decided.steps, decided.wake_ms) == ((), 70 * MINUTE)
    carried_out(site.later(30 * MINUTE), HOW)
    told = site.events[-1]
    assert isinstance(told, JobCancelled)
    assert told.reason == "its cards were not used for 60 min"
    assert site.phase("j") is Phase.STOPPING
    assert site.ended("j").phase("j") is None


def test_one_that_makes_checkpoints_goes_back_to_its_queue() -> None:
    site = idle_job(stop=Stop(checkpoint_ms=MINUTE))
    carried_out(site.later(30 * MINUTE), HOW)
    carried_out(site.later(30 * MINUTE), HOW)
    assert isinstance(site.events[-1], Evicting)
    assert site.ended("j").phase("j") is None  # it ended by itself after all


def test_who_works_again_is_not_stopped_and_is_warned_anew_another_time() -> None:
    site = idle_job()
    job = site.job("j").job.id
    carried_out(site.later(30 * MINUTE), HOW)
    site.happen(Idle(site.at, job, 1, None))
    assert planned(site.later(90 * MINUTE), HOW).steps == ()
    site.happen(Idle(site.at, job, 1, site.at))
    carried_out(site.later(30 * MINUTE), HOW)
    assert [type(step) for step in planned(site, HOW).steps] == []
    assert [type(step) for step in planned(site.later(30 * MINUTE), HOW).steps] == [Withdraw]


def test_a_late_warning_still_leaves_its_owner_the_time_between() -> None:
    site = idle_job()
    carried_out(site.later(500 * MINUTE), HOW)
    assert planned(site.later(29 * MINUTE), HOW).steps == ()
    assert [type(step) for step in planned(site.later(MINUTE), HOW).steps] == [Withdraw]


def test_what_must_not_be_stopped_is_warned_only() -> None:
    site = idle_job(stop=Stop(preemptible=False))
    assert [type(step) for step in carried_out(site.later(30 * MINUTE), HOW).steps] == [Warn]
    assert planned(site.later(300 * MINUTE), HOW).steps == ()


def test_without_rules_or_without_a_measurement_nothing_happens() -> None:
    site = idle_job()
    assert planned(site.later(300 * MINUTE), settings()).steps == ()
    quiet = WorldBuilder().node("n", 8).submit("j")
    carried_out(quiet, HOW)
    assert planned(quiet.started("j").later(900 * MINUTE), HOW).steps == ()


def test_being_stopped_for_another_it_is_not_stopped_twice() -> None:
    site = idle_job(stop=Stop(checkpoint_ms=MINUTE))
    carried_out(site.later(30 * MINUTE), HOW)
    decided = planned(site.later(30 * MINUTE), HOW)
    assert [type(step) for step in decided.steps] == [Evict]
    site.check(*decided.steps, *decided.steps)
    assert len(site.verdict.refused) == 1
