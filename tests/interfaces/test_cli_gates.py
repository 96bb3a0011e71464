"""Every gate has words, and says its numbers."""

from __future__ import annotations

import re

import pytest

from aliquot.control.foresight import find_places
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Array
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import CARDS, MEMORY, Discipline, Measure, Queue, Quota, Resource
from aliquot.core.settings import Backfill, Order, Preemption, Settings, SpotCap
from aliquot.core.steps import Gate, Lack, Wait
from aliquot.core.wishes import Level, Wish
from aliquot.interfaces.cli.gates import GATES, gate_lines
from aliquot.interfaces.cli.sentences import explain_reason
from tests.support.build import a_request
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder


def test_every_gate_has_words() -> None:
    assert set(GATES) == set(Gate)
    assert len(set(GATES.values())) == len(Gate)


@pytest.mark.parametrize(
    ("lack", "words"),
    [
        (Lack(CARDS, 4500, 2000, "lab"), "It asks for 4.5 of cards; queue lab has 2 left"),
        (
            Lack(CARDS, 3000, 0, "lab", most=2000),
            "queue lab can never give it more than 2, whatever else runs or ends: under this quota it will",
        ),
        (Lack(MEMORY, 40_960, 0, ""), "It asks for 40 GiB of memory; the pool has 0 MiB left"),
        (Lack(Resource(Measure.MONEY), 12_345, 99, "x/y"), "123.45 a month of money; queue x/y has 0.99 a"),
    ],
)
def test_a_limit_is_said_in_the_unit_of_its_measure(lack: Lack, words: str) -> None:
    (line,) = gate_lines(Wait(JobId("j"), Gate.QUOTA, lack=lack))
    assert words in line


def test_of_many_jobs_that_are_waited_for_the_first_are_named() -> None:
    others = tuple(JobId(f"j{at}") for at in range(7))
    (line,) = gate_lines(Wait(JobId("j"), Gate.DEPENDENCY, others=others))
    assert line == "It waits for j0, j1, j2, j3, j4 and 2 more."


# --- every gate, as a plan gives it, says numbers or names --------------------------------------------

HOUR = 3_600_000


def strict() -> tuple[WorldBuilder, Settings]:
    how = settings(queues=(Queue("s", discipline=Discipline.STRICT),), order=Order(half_life_ms=0))
    site = WorldBuilder().node("n", 8).submit("wide", cards=9, queue="s")
    return site.submit("j", queue="s"), how


def plainly_strict() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("held", after=(After(JobId("wide")),)).submit("wide", cards=9)
    return site.submit("j"), settings(discipline=Discipline.STRICT)


def over_quota() -> tuple[WorldBuilder, Settings]:
    how = settings(queues=(Queue("q", quotas=(Quota(CARDS, 1000, borrowing=0),)),))
    return WorldBuilder().node("n", 8).submit("j", cards=2, queue="q"), how


def lent() -> tuple[WorldBuilder, Settings]:
    queues = (Queue("q", quotas=(Quota(CARDS, 1000),)), Queue("r", quotas=(Quota(CARDS, 7000, lending=0),)))
    return WorldBuilder().node("n", 8).submit("j", cards=2, queue="q"), settings(queues=queues)


def after_another() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("first")
    return site.submit("j", after=(After(JobId("first")),)), settings()


def in_an_array() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("a0", array=Array("a", 2, 1))
    carried_out(site)
    return site.submit("j", array=Array("a", 2, 1)), settings()


def refused() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("j")
    carried_out(site)
    return site.refused("j"), settings()


def kept_for_another() -> tuple[WorldBuilder, Settings]:
    how = settings(backfill=Backfill(overdue_ms=0, overdue_wide_ms=0))
    site = WorldBuilder().node("n", 8).submit("busy", cards=6, estimate_ms=HOUR)
    carried_out(site, how)
    site.started("busy").submit("wide", cards=8, estimate_ms=HOUR)
    carried_out(site, how)
    return site.submit("j", cards=2, estimate_ms=9 * HOUR), how


def ending() -> tuple[WorldBuilder, Settings]:
    how = settings(preemption=Preemption(least_run_ms=0))
    site = WorldBuilder().node("n", 8).submit("low", cards=8)
    carried_out(site, how)
    site.started("low").submit("j", cards=8, priority=5)
    carried_out(site, how)
    return site, how


def full() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("busy", cards=8)
    carried_out(site)
    return site.submit("j"), settings()


def half_a_gang() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 8).submit("busy", cards=5)
    carried_out(site)
    return site.submit("j", [a_request(2)] * 2), settings()


def scattered() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().nodes(2, 8).submit("a", cards=5).submit("b", cards=5)
    carried_out(site)
    return site.submit("j", cards=5), settings()


def far_apart() -> tuple[WorldBuilder, Settings]:
    site = WorldBuilder().node("n", 4, rack="r1").node("m", 4, rack="r2")
    carried_out(site.submit("a", cards=1).submit("b", cards=1), settings("spread"))
    return site.submit("j", [a_request(2)] * 2, wish=Wish(required=Level.RACK)), settings()


def too_large() -> tuple[WorldBuilder, Settings]:
    return WorldBuilder().node("n", 8).submit("j", cards=9), settings()


def behind_the_cap() -> tuple[WorldBuilder, Settings]:
    how = settings(spot_cap=SpotCap())
    site = WorldBuilder().node("n", 2).submit("other", cards=2)
    carried_out(site, how)
    return site.submit("more", cards=2).submit("j", spot=True), how


STORIES = {
    Gate.ORDER: (strict, plainly_strict),
    Gate.QUOTA: (over_quota,),
    Gate.BORROWING: (lent,),
    Gate.DEPENDENCY: (after_another,),
    Gate.ARRAY: (in_an_array,),
    Gate.SPOT: (behind_the_cap,),
    Gate.RESERVATION: (kept_for_another,),
    Gate.RELEASE: (ending,),
    Gate.FIT: (full,),
    Gate.GANG: (half_a_gang,),
    Gate.TOPOLOGY: (far_apart,),
    Gate.FRAGMENTATION: (scattered,),
    Gate.NEVER: (too_large,),
    Gate.BACKOFF: (refused,),
}


@pytest.mark.parametrize("gate", Gate)
def test_who_waits_at_a_gate_is_told_numbers_or_names_and_his_place(gate: Gate) -> None:
    for story in STORIES[gate]:
        site, how = story()
        wait = explain_wait(site.frozen, how, JobId("j"), Memo(), site.at)
        assert wait.gate is gate, story.__name__
        said = [*gate_lines(wait), *map(explain_reason, wait.reasons)]
        assert said, "a gate alone tells nobody how far off it is"
        if gate not in {Gate.DEPENDENCY, Gate.ORDER, Gate.RELEASE, Gate.RESERVATION}:
            assert re.search(r"\d", " ".join(said))
        assert find_places(site.frozen, how, site.at, Memo())[JobId("j")].position >= 1


def test_who_is_before_it_in_a_strict_queue_is_named() -> None:
    for story in (strict, plainly_strict):
        site, how = story()
        wait = explain_wait(site.frozen, how, JobId("j"), Memo(), site.at)
        assert list(gate_lines(wait)) == ["Before it stands wide."]
