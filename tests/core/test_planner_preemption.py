"""Preemption in the planner, through both phases: who is stopped, what is kept for whom, and that it ends."""

from __future__ import annotations

import pytest

from aliquot.core.events import Evicting, Outcome
from aliquot.core.jobs import Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Order, Preemption, Settings
from aliquot.core.steps import Cause, Evict, Gate, Place, Reserve
from tests.support.build import a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

RULES = Preemption(grace_ms=30_000)
HOW = settings(preemption=RULES)
MINUTE = 60_000


def queues(*quotas: tuple[str, int], **more: object) -> Settings:
    """Queues with nominals in cards, and preemption."""
    made = tuple(Queue(name, quotas=(Quota(CARDS, cards * 1000),)) for name, cards in quotas)
    return settings(preemption=RULES, queues=made, order=Order(half_life_ms=0), **more)


def full(site: WorldBuilder, how: Settings = HOW) -> WorldBuilder:
    """Everybody who waits is placed and runs for ten minutes."""
    carried_out(site, how)
    for name in site.holding:
        site.started(name)
    return site.later(10 * MINUTE)


def evicted(site: WorldBuilder) -> list[str]:
    """Who was ever stopped for another, in order."""
    return [event.job for event in site.events if isinstance(event, Evicting)]


def settle(site: WorldBuilder, how: Settings, cycles: int) -> WorldBuilder:
    """The planner turns `cycles` times; who is stopped is gone a second later, who is placed starts."""
    for _ in range(cycles):
        carried_out(site, how)
        for name in list(site.holding):
            if site.phase(name) is Phase.STOPPING:
                site.later(1000).ended(name, Outcome.FAILED)
            elif site.phase(name) is Phase.STARTING:
                site.started(name)
        site.later(1000)
    return site


def test_two_phases_room_is_kept_until_those_who_held_it_are_gone() -> None:
    """B06's kind: what is being stopped is not free, and when it is, nobody else gets it."""
    site = full(WorldBuilder().node("n", 2).submit("low", cards=2))
    site.submit("high", cards=2, priority=10)
    decided = carried_out(site, HOW)
    assert [type(step) for step in decided.steps if not hasattr(step, "gate")] == [Reserve, Evict]
    assert gates(decided) == {"high": Gate.RELEASE}
    site.submit("sneak", cards=1, priority=5)
    assert nodes_of(carried_out(site, HOW)) == {}
    site.later(1000).ended("low", Outcome.FAILED)
    decided = carried_out(site, HOW)
    assert list(nodes_of(decided)) == ["high"]
    assert site.frozen.kept == ()


def test_who_is_stopped_waits_again_with_its_first_submit_time_and_one_attempt_more() -> None:
    """B38."""
    site = full(WorldBuilder().later(5000).node("n", 1).submit("low", stop=Stop(checkpoint_ms=MINUTE)))
    site.submit("high", priority=10)
    carried_out(site, HOW)
    site.ended("low", Outcome.FAILED)
    record = site.job("low")
    assert (record.phase, record.attempt, record.evictions) == (Phase.PENDING, 2, 1)
    assert record.job.submitted_ms == 5000
    carried_out(site, HOW)
    site.started("high").ended("high")
    assert list(nodes_of(carried_out(site, HOW))) == ["low"]


def test_nobody_is_stopped_for_what_fits_or_for_its_equal() -> None:
    site = full(WorldBuilder().node("n", 3).submit("low", cards=2))
    site.submit("fits", priority=10).submit("equal", cards=2)
    carried_out(site, HOW)
    assert evicted(site) == []


def test_shared_cards_count_memory_and_only_what_is_needed() -> None:
    """B37."""
    for need, stopped in ((20_000, ["low"]), (4000, [])):
        site = full(WorldBuilder().node("n", 1).submit("low", a_request(memory=70_000)))
        site.submit("high", a_request(memory=need), priority=10)
        carried_out(site, HOW)
        assert evicted(site) == stopped


def test_high_singles_clear_one_node_and_the_wide_job_another() -> None:
    """B17: 16 evictions in all, not one more."""
    site = WorldBuilder().nodes(4, 8)
    for at in range(32):
        site.submit(f"low{at}")
    full(site)
    for at in range(8):
        site.submit(f"high{at}", priority=10)
        settle(site, HOW, 2)
    assert len({site.grant(f"high{at}").placement.node for at in range(8)}) == 1
    site.submit("wide", cards=8, priority=10)
    settle(site, HOW, 3)
    assert "wide" in site.holding
    assert len(evicted(site)) == 16


def test_an_indivisible_borrower_is_stopped_once_and_then_waits() -> None:
    """B31: at most one eviction in 200 cycles, then a fixed point."""
    how = queues(("q1", 4), ("q2", 4))
    site = WorldBuilder().nodes(1, 8)
    site.submit("five", [a_request()] * 5, queue="q1")
    full(site, how)
    site.submit("four", [a_request()] * 4, queue="q2")
    settle(site, how, 200)
    assert evicted(site) == ["five"]
    assert (site.holding, site.waiting) == (["four"], ["five"])


def test_a_victim_with_an_earlier_submit_time_does_not_come_back_before_the_job_it_gave_way_to() -> None:
    """B34, within one queue and between two."""
    site = full(WorldBuilder().node("n", 8).submit("l", cards=8))
    site.submit("h", cards=8, priority=10)
    settle(site, HOW, 100)
    assert (evicted(site), site.holding) == (["l"], ["h"])
    how = queues(("a", 4), ("b", 4))
    site = WorldBuilder().node("n", 8).submit("l", cards=8, queue="b")
    full(site, how)
    site.submit("h", cards=4, queue="a", priority=10)
    settle(site, how, 100)
    assert (evicted(site), site.holding) == (["l"], ["h"])


def test_a_queue_within_its_nominal_never_loses_a_job_to_reclaim() -> None:
    how = queues(("a", 4), ("b", 4))
    site = WorldBuilder().node("n", 8).submit("a0", cards=4, queue="a").submit("b0", cards=4, queue="b")
    full(site, how)
    site.submit("more", cards=2, queue="a", priority=100)
    settle(site, how, 5)
    assert evicted(site) == ["a0"]  # of its own queue, and of lower priority


def test_what_was_borrowed_comes_back_and_no_more_than_that() -> None:
    how = queues(("a", 4), ("b", 4))
    site = WorldBuilder().node("n", 8)
    for at in range(8):
        site.submit(f"a{at}", queue="a")
    full(site, how)
    for at in range(6):
        site.submit(f"b{at}", queue="b")
    settle(site, how, 40)
    assert len(evicted(site)) == 4
    assert sum(name.startswith("b") for name in site.holding) == 4
    assert {event.cause for event in site.events if isinstance(event, Evicting)} == {Cause.RECLAIM}


def test_spot_work_gives_way_to_anybody_and_stops_nobody() -> None:
    site = full(WorldBuilder().node("n", 2).submit("spot", cards=2, spot=True, priority=99))
    site.submit("plain", cards=1)
    settle(site, HOW, 4)
    assert evicted(site) == ["spot"]
    assert site.holding == ["plain"]


def test_a_gang_is_stopped_whole() -> None:
    site = full(WorldBuilder().nodes(2, 2).submit("gang", [a_request(2)] * 2))
    site.submit("high", cards=1, priority=10)
    settle(site, HOW, 3)
    assert evicted(site) == ["gang"]
    assert site.holding == ["high"]


def test_a_job_is_left_alone_until_it_has_run_a_while() -> None:
    how = settings(preemption=Preemption(least_run_ms=20 * MINUTE))
    site = full(WorldBuilder().node("n", 1).submit("low"), how)
    site.submit("high", priority=10)
    assert not [step for step in planned(site, how).steps if isinstance(step, Evict)]
    assert [step for step in planned(site.later(10 * MINUTE), how).steps if isinstance(step, Evict)]


def test_the_cheapest_is_stopped_by_work_lost_since_its_last_checkpoint() -> None:
    site = WorldBuilder().node("n", 3)
    site.submit("none").submit("often", stop=Stop(checkpoint_ms=MINUTE)).submit(
        "hour", stop=Stop(60 * MINUTE)
    )
    full(site)
    site.submit("high", priority=10)
    carried_out(site, HOW)
    assert evicted(site) == ["often"]


def test_if_the_beneficiary_is_cancelled_what_was_cleared_is_anybodys() -> None:
    site = full(WorldBuilder().node("n", 1).submit("low"))
    site.submit("high", priority=10)
    carried_out(site, HOW)
    site.cancel("high").ended("low", Outcome.FAILED)
    assert list(nodes_of(carried_out(site, HOW))) == ["low"]
    assert site.frozen.kept == ()


def test_if_the_node_is_lost_the_job_is_placed_elsewhere() -> None:
    site = full(WorldBuilder().nodes(2, 1).submit("l0").submit("l1"))
    site.submit("high", priority=10)
    carried_out(site, HOW)
    (victim,) = evicted(site)
    node = site.grant(victim).placement.node.name
    site.lose(node).ended(victim, Outcome.LOST)
    settle(site, HOW, 3)
    assert site.grant("high").placement.node.name != node
    assert site.phase("high") is Phase.RUNNING


@pytest.mark.parametrize("late", [0, 1])
def test_what_is_cleared_is_kept_for_a_while_only(late: int) -> None:
    """The victim does not end: after the grace and ten minutes nothing is kept any more."""
    site = full(WorldBuilder().node("n", 1).submit("low"))
    site.submit("high", priority=10)
    decided = carried_out(site, HOW)
    assert decided.wake_ms is not None
    site.later(decided.wake_ms - site.at - 1 + late)
    carried_out(site, HOW)
    assert len(site.frozen.kept) == 1 - late


def test_a_fixed_demand_comes_to_rest_whatever_it_is() -> None:
    how = queues(("a", 3), ("b", 3), ("c", 2))
    site = WorldBuilder().nodes(2, 4)
    for at in range(24):
        site.submit(f"j{at}", queue="abc"[at % 3], cards=1 + at % 2, priority=at % 4, spot=at % 7 == 0)
        settle(site, how, 1)
    settle(site, how, 60)
    before = len(site.events)
    settle(site, how, 5)
    new = site.events[before:]
    assert not [event for event in new if isinstance(event, (Evicting, Place))]
