"""Who is passed over, as one like it found no room: nobody for whom a turn could change anything."""

from __future__ import annotations

import pytest

from aliquot.core.ids import JobId
from aliquot.core.jobs import After, When
from aliquot.core.planner import Memo, explain_wait, plan
from aliquot.core.queues import Discipline
from aliquot.core.settings import Backfill, Preemption, Rescue, Settings
from aliquot.core.steps import Gate, Place, Plan, Reserve, Wait, Withdraw
from tests.support.build import a_request
from tests.support.full_sites import HOUR, MINUTE, a_quota, runs, singles
from tests.support.planning import settings
from tests.support.worlds import WorldBuilder

BACKFILL = Backfill(reservations=1, first=1)
HOWS = [
    pytest.param(settings(backfill=BACKFILL), id="backfill"),
    pytest.param(settings(backfill=BACKFILL, rescue=Rescue(share=0.5)), id="moves"),
    pytest.param(settings(backfill=BACKFILL, preemption=Preemption()), id="preemption"),
    pytest.param(settings(preemption=Preemption()), id="no-reservations"),
]


def a_full_site(waiting: int = 20) -> WorldBuilder:
    """8 cards, all taken for an hour; so many wait for one."""
    site = WorldBuilder().node("n", 8)
    singles(site, "n", estimate_ms=HOUR)
    site.later(MINUTE)
    for at in range(waiting):
        site.submit(f"w{at}", estimate_ms=HOUR)
    return site


def decide(site: WorldBuilder, how: Settings) -> Plan:
    return plan(site.frozen, how, site.at, Memo())


def told(made: Plan) -> list[str]:
    """Who had a turn, and waits."""
    return [str(step.job) for step in made.steps if isinstance(step, Wait)]


@pytest.mark.parametrize("how", HOWS)
def test_on_a_full_site_one_answer_is_enough_for_those_alike(how: Settings) -> None:
    assert len(told(decide(a_full_site(), how))) < 4


@pytest.mark.parametrize("how", HOWS)
def test_everybody_is_told_why_when_asked(how: Settings) -> None:
    site = a_full_site()
    for at in range(20):
        wait = explain_wait(site.frozen, how, JobId(f"w{at}"), Memo(), site.at)
        assert (wait.gate, wait.unsearched) == (Gate.FIT, False)


def test_who_could_stop_others_has_a_turn_behind_those_who_can_not() -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", estimate_ms=HOUR, queue="mild", priority=1)
    site.later(MINUTE)
    for at in range(20):
        site.submit(f"w{at}", estimate_ms=HOUR, queue="rough", priority=9)
    site.submit("owner", estimate_ms=HOUR, queue="mild", priority=5)
    rules = (a_quota("rough", 0), a_quota("mild", 8))
    made = decide(site, settings(backfill=BACKFILL, preemption=Preemption(), queues=rules))
    assert [step.job for step in made.steps if isinstance(step, Reserve) and step.firm] == ["owner"]


def test_what_is_kept_for_a_short_while_is_found_by_the_one_that_is_short() -> None:
    """Long jobs are refused beside the reservation; one of the same size that is over before it is not."""
    site = WorldBuilder().node("n", 2)
    runs(site, "running", ("n", [0]), estimate_ms=HOUR)
    site.submit("wide", a_request(2), estimate_ms=HOUR)
    for at in range(5):
        site.submit(f"long-{at}", estimate_ms=HOUR)
    site.submit("short", estimate_ms=MINUTE)
    made = decide(site, settings(backfill=Backfill(reservations=1, by_size=False)))
    assert [step.job for step in made.steps if isinstance(step, Place)] == ["short"]
    assert len(told(made)) == 2


def test_in_a_strict_queue_the_first_has_its_turn_and_those_behind_it_wait_for_it() -> None:
    site = a_full_site()
    for at in range(3):
        site.submit(f"s{at}", estimate_ms=HOUR, queue="strict")
    rules = (a_quota("strict", 8, discipline=Discipline.STRICT),)
    made = decide(site, settings(backfill=BACKFILL, queues=rules))
    assert "s0" in told(made)


def test_what_a_queue_is_promised_is_held_for_its_own_though_those_like_it_were_refused() -> None:
    """Two cards of queue `mine` are lent: who waits there within its nominal has a turn, and holds them."""
    site = WorldBuilder().node("n", 8)
    singles(site, "n", estimate_ms=HOUR, queue="theirs")
    site.later(MINUTE)
    for at in range(6):
        site.submit(f"their-{at}", estimate_ms=HOUR, queue="theirs", priority=9)
        site.submit(f"my-{at}", estimate_ms=HOUR, queue="mine")
    made = decide(site, settings(backfill=BACKFILL, queues=(a_quota("mine", 2), a_quota("theirs", 6))))
    assert {"my-0", "my-1"} <= set(told(made))


def test_who_can_never_start_is_withdrawn_though_those_like_it_were_refused() -> None:
    site = a_full_site()
    site.submit("first", a_request(8), estimate_ms=HOUR).cancel("first")
    site.submit("after", estimate_ms=HOUR, after=(After(JobId("first"), When.SUCCEEDED),))
    made = decide(site, settings(backfill=BACKFILL))
    assert [step.job for step in made.steps if isinstance(step, Withdraw)] == ["after"]
