"""Preemption over many cycles of plan, commit and fold: room is made once, then nothing moves any more."""

from __future__ import annotations

from aliquot.core.events import Outcome
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo, plan
from aliquot.core.settings import Preemption, Settings
from aliquot.core.steps import Evict, Place
from tests.support.build import a_request
from tests.support.full_sites import a_quota, runs, singles
from tests.support.planning import settings
from tests.support.worlds import WorldBuilder

GRACE_MS = 10_000


def cycles(site: WorldBuilder, how: Settings, count: int) -> list[Evict]:
    """So many cycles of five seconds; who is stopped ends after the grace, who starts runs at once."""
    memo, stopped = Memo(), []
    for _ in range(count):
        decided = plan(site.frozen, how, site.at, memo)
        site.check(*decided.steps)
        assert site.verdict.refused == ()
        stopped += [step for step in decided.steps if isinstance(step, Evict)]
        for step in decided.steps:
            if isinstance(step, Place):
                site.started(step.job)
        site.later(5_000)
        for name in site.holding:
            record = site.job(name)
            if record.evicting is not None and site.at - record.since_ms >= GRACE_MS:
                site.ended(name, Outcome.FAILED)
    return stopped


def test_singles_that_come_one_by_one_and_a_wide_job_stop_sixteen_in_all() -> None:
    """Fault B17."""
    how = settings(preemption=Preemption(grace_ms=GRACE_MS))
    site = WorldBuilder().nodes(4)
    for node in range(4):
        singles(site, f"n{node}")
    stopped = []
    for at in range(8):
        site.submit(f"high-{at}", priority=10)
        stopped += cycles(site, how, 5)
        assert site.phase(f"high-{at}") is Phase.RUNNING
    assert len({evict.job.split("-")[0] for evict in stopped}) == 1
    site.submit("wide", cards=8, priority=10)
    stopped += cycles(site, how, 20)
    assert site.phase("wide") is Phase.RUNNING
    assert len(stopped) == 16


def test_two_queues_do_not_evict_each_other_in_turn() -> None:
    """Fault B31."""
    how = settings(queues=(a_quota("one", 4), a_quota("two", 4)), preemption=Preemption(grace_ms=GRACE_MS))
    site = WorldBuilder().node("n", 8)
    runs(site, "five", *(("n", [at]) for at in range(5)), queue="one")
    site.submit("four", [a_request(1)] * 4, queue="two")
    stopped = cycles(site, how, 200)
    assert [(evict.job, evict.for_job) for evict in stopped] == [("five", "four")]
    assert (site.phase("four"), site.phase("five")) == (Phase.RUNNING, Phase.PENDING)


def test_the_victim_does_not_come_back_before_the_job_it_was_stopped_for() -> None:
    """Faults B34 and B38: it waits with its first submit time and one attempt more."""
    how = settings(queues=(a_quota("a", 2), a_quota("b", 2)), preemption=Preemption(grace_ms=GRACE_MS))
    site = WorldBuilder().node("n", 8)
    runs(site, "low", ("n", range(4)), queue="b")
    runs(site, "lower", ("n", range(4, 8)), queue="b", priority=-1)
    site.later(1_000).submit("high", cards=4, queue="a", priority=9)
    stopped = cycles(site, how, 100)
    assert [(evict.job, evict.for_job) for evict in stopped] == [("lower", "high")]
    assert site.phase("high") is Phase.RUNNING
    victim = site.job("lower")
    assert (victim.phase, victim.attempt, victim.evictions) == (Phase.PENDING, 2, 1)
    assert victim.job.submitted_ms == 0


def test_gangs_of_several_nodes_get_their_room_and_each_victim_goes_once() -> None:
    how = settings(preemption=Preemption(grace_ms=GRACE_MS))
    site = WorldBuilder().nodes(6)
    for node in range(6):
        singles(site, f"n{node}")
    site.submit("large", [a_request(8)] * 3, priority=5).submit("small", [a_request(2)] * 5, priority=5)
    stopped = cycles(site, how, 30)
    assert (site.phase("large"), site.phase("small")) == (Phase.RUNNING, Phase.RUNNING)
    assert len(stopped) == len({evict.job for evict in stopped}) == 3 * 8 + 10
