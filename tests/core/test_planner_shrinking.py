"""Running jobs that give way by going on narrower, through planner, commit and fold."""

from __future__ import annotations

from aliquot.core.jobs import Elastic, Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.settings import Defrag, Preemption
from aliquot.core.steps import Evict, Gate, Move, Place, Reserve, Resize, Wait
from tests.support.build import a_node, a_placement, a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

HOW = settings(preemption=Preemption(grace_ms=30_000))
MINUTE = 60_000


def running(site: WorldBuilder) -> WorldBuilder:
    """Whoever waits is placed, and all have been running for ten minutes."""
    carried_out(site, HOW)
    for name in site.holding:
        site.started(name)
    return site.later(10 * MINUTE)


def resizes(site: WorldBuilder) -> list[Resize]:
    """What the next plan resizes."""
    return [step for step in planned(site, HOW).steps if isinstance(step, Resize)]


def test_a_gang_gives_up_its_last_members_and_runs_on() -> None:
    site = running(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=2))
    site.submit("high", cards=4, priority=10)
    decided = carried_out(site, HOW)
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert (step.job, step.for_job, step.was, step.width) == ("c", "high", 8, 4)
    assert [type(step) for step in decided.steps] == [Reserve, Resize, Wait]
    assert gates(decided) == {"high": Gate.RELEASE}
    assert nodes_of(carried_out(site.started("c"), HOW)) == {"high": ["n"]}
    assert site.phase("c") is Phase.RUNNING
    assert len(site.world.grants[step.job]) == 4
    assert site.job("c").evictions == 0


def test_what_it_then_is_charged_for_is_what_it_keeps() -> None:
    site = running(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=2))
    carried_out(site.submit("high", cards=4, priority=10), HOW)
    assert sum(part.milli for part in site.job("c").asked) == 4000


def test_no_gang_goes_below_its_minimum_it_is_stopped_instead() -> None:
    site = running(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=6))
    decided = carried_out(site.submit("high", cards=4, priority=10), HOW)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["c"]
    assert not [step for step in decided.steps if isinstance(step, Resize)]


def test_an_elastic_job_is_narrowed_where_no_rules_of_elasticity_are_set() -> None:
    elastic = Elastic((2, 4, 8), (1000, 1800, 3000))
    site = WorldBuilder().node("n", 8).submit("c", cards=8, elastic=elastic)
    running(site).submit("high", cards=4, priority=10)
    (step,) = resizes(site)
    assert (step.was, step.width) == (8, 4)


def test_a_restart_dearer_than_the_work_done_stops_another() -> None:
    site = WorldBuilder().node("n", 8)
    site.submit("c", [a_request(1)] * 4, minimum=2, stop=Stop(restart_ms=60 * MINUTE))
    running(site.submit("b", cards=4))
    decided = planned(site.submit("high", cards=2, priority=10), HOW)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["b"]


def test_the_cheaper_of_one_narrower_and_one_gone() -> None:
    site = WorldBuilder().node("n", 8)
    site.submit("c", [a_request(1)] * 6, minimum=2).submit("b", cards=2, stop=Stop(checkpoint_ms=MINUTE))
    running(site)
    decided = planned(site.submit("high", cards=2, priority=10), HOW)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["b"]
    assert [step for step in decided.steps if isinstance(step, Resize)] == []


def test_moves_gather_room_for_several_gangs_in_one_plan() -> None:
    site = WorldBuilder()
    for at in range(6):
        node = a_node(f"n{at}", 4)
        site.node(node).submit(f"r{at}", movable=True).granted(f"r{at}", a_placement(node, [0]))
        site.started(f"r{at}")
    for name in ("one", "two"):
        site.submit(name, [a_request(4)] * 2)
    how = settings(defrag=Defrag(after_ms=0, pause_ms=0))
    decided = carried_out(site, how)
    assert {step.for_job for step in decided.steps if isinstance(step, Move)} == {"one", "two"}
    assert len([step for step in decided.steps if isinstance(step, Move)]) == 4
    assert {step.job for step in decided.steps if isinstance(step, Place)} == {"one", "two"}


def test_a_gang_that_moves_cannot_help_moves_nobody() -> None:
    site = WorldBuilder()
    for at in range(3):
        node = a_node(f"n{at}", 4)
        site.node(node).submit(f"r{at}", movable=at < 1).granted(f"r{at}", a_placement(node, [0]))
        site.started(f"r{at}")
    site.submit("one", [a_request(4)] * 2)
    decided = planned(site, settings(defrag=Defrag(after_ms=0, pause_ms=0)))
    assert not [step for step in decided.steps if isinstance(step, Move)]


def test_where_shrinking_is_forbidden_the_gang_is_stopped_whole() -> None:
    site = running(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=2))
    how = settings(preemption=Preemption(grace_ms=30_000, shrink=False))
    decided = carried_out(site.submit("high", cards=4, priority=10), how)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["c"]
