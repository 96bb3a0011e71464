"""Co-location in the planner: who goes to whose cards, who does not, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from aliquot.core.ids import JobId
from aliquot.core.jobs import Bound, Elastic, Stop
from aliquot.core.planner import Memo
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Backfill, Colocation, Preemption, Settings
from aliquot.core.steps import Company, Evict, Gate, Move, Place, Reserve
from aliquot.core.together import Together
from aliquot.core.units import FULL
from tests.support.build import H100, a_node, a_placement, a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
MIB = 20_000
HALVES = Together(MIB, (0, 500, 500, 0))
GPU = Together(MIB, (0, 0, 1000, 0))
LITTLE = Together(MIB, compute_milli=300, bandwidth_milli=300)
HOW = settings(colocation=Colocation())


def site(how: Settings = HOW, *, cards: int = 1, asked: int = 1, **host: Any) -> WorldBuilder:
    """One node, all of it held by a job `host` that may share it."""
    world = WorldBuilder().node("n", cards)
    world.submit("host", cards=asked, **{"together": HALVES, **host})
    carried_out(world, how)
    return world.started("host").later(MINUTE)


def companies(world: WorldBuilder) -> set[tuple[str, ...]]:
    """Who shares with whom."""
    return set(world.frozen.company.values())


def test_what_fits_nowhere_goes_to_the_cards_of_one_that_may_share_them() -> None:
    world = site().submit("guest", together=HALVES)
    decided = carried_out(world, HOW)
    (step,) = decided.steps
    assert isinstance(step, Place)
    assert step.company == Company((JobId("host"), JobId("guest")), (751, 751), 1000)
    assert companies(world) == {("host", "guest")}
    host, guest = world.grant("host").placement, world.grant("guest").placement
    assert host.cards == guest.cards
    assert (host.vector.memory, guest.vector.memory) == (H100.usable_mib - MIB, MIB)
    assert (host.whole, guest.whole) == (False, False)
    assert world.free_cards == 0


def test_what_is_free_is_taken_first() -> None:
    world = WorldBuilder().node("n", 2).submit("host", together=HALVES)
    carried_out(world, HOW)
    world.started("host").submit("guest", together=HALVES)
    carried_out(world, HOW)
    assert companies(world) == set()
    assert all(world.grant(name).placement.whole for name in ("host", "guest"))


def test_when_one_ends_the_other_has_the_card_to_itself_and_nothing_moves() -> None:
    world = site().submit("guest", together=HALVES)
    carried_out(world, HOW)
    before = world.grant("guest").placement.cards
    world.started("guest").ended("host")
    assert world.grant("guest").placement == a_placement(a_node("n", 1), (0,))
    assert world.grant("guest").placement.cards == before
    assert planned(world, HOW).steps == ()
    world.submit("third", together=HALVES)
    carried_out(world, HOW)
    assert companies(world) == {("guest", "third")}


@pytest.mark.parametrize(
    ("host", "guest", "rules"),
    [
        pytest.param({"together": None}, {}, {}, id="the one there has not said that it may share"),
        pytest.param({}, {"together": None}, {}, id="nor has the newcomer"),
        pytest.param({"together": GPU}, {"together": GPU}, {}, id="both need the GPU all the time"),
        pytest.param({}, {"together": LITTLE}, {}, id="profiles that can't be compared"),
        pytest.param({"together": Together(70_000, (0, 500, 500, 0))}, {}, {}, id="memory would not suffice"),
        pytest.param({}, {"bound": Bound(speed_floor_milli=800)}, {}, id="too slow for the newcomer"),
        pytest.param({"bound": Bound(speed_floor_milli=800)}, {}, {}, id="too slow for the one there"),
        pytest.param(
            {"bound": Bound(finish_by_ms=MINUTE), "estimate_ms": MINUTE - 1}, {}, {}, id="it would be late"
        ),
        pytest.param(
            {"bound": Bound(finish_by_ms=10 * MINUTE)}, {}, {}, id="nobody knows if it would be late"
        ),
        pytest.param({}, {}, {"least_gain_milli": 502}, id="the policy asks for more than it gains"),
        pytest.param({}, {"request": a_request(1, models=("T4",))}, {}, id="a card of another kind"),
        pytest.param({}, {"request": a_request(1, cpu=65_000)}, {}, id="the machine has no cpu for both"),
        pytest.param(
            {}, {"request": a_request(1, memory=1_000)}, {}, id="a slice does not share whole cards"
        ),
        pytest.param(
            {}, {"elastic": Elastic((1, 2), (1000, 2000)), "cards": 1}, {}, id="its width may change"
        ),
        pytest.param({}, {"scatter": True}, {}, id="it may be scattered"),
    ],
)
def test_who_stays_apart(host: dict[str, Any], guest: dict[str, Any], rules: dict[str, int]) -> None:
    how = settings(colocation=Colocation(**rules))
    world = site(how, **host)
    world.submit("guest", **{"together": HALVES, **guest})
    assert gates(carried_out(world, how)) == {"guest": Gate.FIT}
    assert companies(world) == set()


@pytest.mark.parametrize(
    ("host", "guest"),
    [
        pytest.param({"bound": Bound(speed_floor_milli=751)}, {}, id="just fast enough"),
        pytest.param({"bound": Bound(finish_by_ms=3 * MINUTE), "estimate_ms": 2 * MINUTE}, {}, id="in time"),
        pytest.param({"together": LITTLE}, {"together": LITTLE}, id="neither needs much of the card"),
    ],
)
def test_who_goes_together(host: dict[str, Any], guest: dict[str, Any]) -> None:
    world = site(**host).submit("guest", **{"together": HALVES, **guest})
    carried_out(world, HOW)
    assert companies(world) == {("host", "guest")}


def test_without_the_rule_nobody_shares() -> None:
    world = site().submit("guest", together=HALVES)
    assert gates(planned(world, settings())) == {"guest": Gate.FIT}


def test_all_of_ones_cards_or_none_of_them() -> None:
    world = (
        site(cards=2, asked=2)
        .submit("narrow", cards=1, together=HALVES)
        .submit("wide", cards=2, together=HALVES)
    )
    decided = carried_out(world, HOW)
    assert gates(decided) == {"narrow": Gate.FIT}
    assert companies(world) == {("host", "wide")}


def test_a_gang_shares_with_a_gang_of_its_shape_on_all_its_nodes() -> None:
    world = WorldBuilder().nodes(2, 3)
    world.submit("host", [a_request(1), a_request(3)], together=HALVES)
    world.submit("other", [a_request(2)], together=HALVES)
    carried_out(world, HOW)
    world.started("host").started("other")
    world.submit("two", [a_request(2), a_request(2)], together=HALVES)
    world.submit("guest", [a_request(3), a_request(1)], together=HALVES)
    decided = carried_out(world, HOW)
    assert gates(decided) == {"two": Gate.FIT}
    assert companies(world) == {("host", "guest")}
    held = {
        job: [len(grant.placement.cards) for grant in world.world.grants[JobId(job)]]
        for job in ("host", "guest")
    }
    assert held == {"host": [1, 3], "guest": [3, 1]}
    world.ended("host")
    assert all(grant.placement.whole for grant in world.world.grants[JobId("guest")])


def test_the_company_that_gains_most_takes_it_in() -> None:
    world = WorldBuilder().node("n", 2)
    world.submit("poor", together=Together(MIB, (0, 200, 800, 0))).submit("good", together=GPU)
    carried_out(world, HOW)
    world.started("poor").started("good").submit("guest", together=Together(MIB, (0, 1000, 0, 0)))
    carried_out(world, HOW)
    assert companies(world) == {("good", "guest")}


def test_at_most_as_many_as_the_policy_says() -> None:
    quarters = Together(10_000, (250, 250, 250, 250), overhead_milli=0)
    how = settings(colocation=Colocation(most=3, least_gain_milli=100))
    world = site(how, together=quarters)
    for name in ("b", "c", "d"):
        world.submit(name, together=quarters)
        carried_out(world, how)
        if name in world.holding:
            world.started(name)
    assert companies(world) == {("host", "b", "c")}
    vectors = [world.grant(name).placement.vector for name in ("host", "b", "c")]
    assert [vector.compute for vector in vectors] == [334, 333, 333]
    assert sum(vector.memory for vector in vectors) == H100.usable_mib


def test_one_newcomer_to_a_company_in_one_plan() -> None:
    how = settings(colocation=Colocation(most=4, least_gain_milli=0))
    world = site(how).submit("b", together=HALVES).submit("c", together=HALVES)
    assert gates(carried_out(world, how)) == {"c": Gate.FIT}


def test_nobody_goes_where_room_is_kept_for_another() -> None:
    how = settings(colocation=Colocation(), backfill=Backfill())
    world = site(how, estimate_ms=60 * MINUTE)
    world.submit("first", cards=1, estimate_ms=MINUTE)
    decided = carried_out(world, how)
    assert any(isinstance(step, Reserve) for step in decided.steps)
    world.submit("guest", together=HALVES, estimate_ms=MINUTE)
    assert "guest" in gates(carried_out(world, how))
    assert companies(world) == set()


def test_the_queue_is_charged_what_was_asked() -> None:
    queues = (Queue("q", quotas=(Quota(CARDS, 2 * FULL, 0),)),)
    how = settings(colocation=Colocation(), queues=queues)
    world = site(how, queue="q").submit("guest", together=HALVES, queue="q")
    carried_out(world, how)
    assert companies(world) == {("host", "guest")}
    (usage,) = world.frozen.usage.values()
    assert (usage.milli, usage.mib) == (2 * FULL, 2 * H100.usable_mib)
    world.started("guest").submit("third", together=HALVES, queue="q")
    assert gates(planned(world, how)) == {"third": Gate.QUOTA}


def stoppable(**more: Any) -> Settings:
    return settings(colocation=Colocation(), preemption=Preemption(**more))


def test_who_shares_goes_with_the_one_who_was_there_first() -> None:
    how = stoppable()
    world = site(how).submit("guest", together=HALVES)
    carried_out(world, how)
    world.started("guest").later(MINUTE).submit("high", priority=5)
    decided = carried_out(world, how)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["host", "guest"]
    world.ended("host")
    assert gates(carried_out(world, how))["high"] is Gate.RELEASE
    world.ended("guest")
    assert nodes_of(carried_out(world, how)) == {"high": ["n"]}


def test_half_a_card_is_not_cleared_where_the_other_half_has_an_heir() -> None:
    how = stoppable()
    world = site(how, priority=9).submit("guest", together=HALVES)
    carried_out(world, how)
    world.started("guest").later(MINUTE).submit("slice", a_request(1, compute=200), priority=5)
    assert not any(isinstance(step, Evict) for step in planned(world, how).steps)


@pytest.mark.parametrize(
    ("host", "guest"),
    [
        pytest.param({}, {"priority": 1}, id="of higher priority"),
        pytest.param({}, {"stop": Stop(preemptible=False)}, id="never to be stopped"),
        pytest.param({"spot": True}, {}, id="no spot work beside spot work"),
        pytest.param({"queue": "a"}, {"queue": "b"}, id="of another queue, with other rights"),
    ],
)
def test_a_newcomer_that_could_not_be_stopped_with_the_others_stays_apart(
    host: dict[str, Any], guest: dict[str, Any]
) -> None:
    queues = (Queue("a"), Queue("b"))
    how = settings(
        colocation=Colocation(), queues=queues, preemption=Preemption(lower_priority=False, spot=False)
    )
    world = site(how, **{"queue": "a", **host}).submit("guest", **{"together": HALVES, "queue": "a", **guest})
    carried_out(world, how)
    assert companies(world) == set()
    calm = settings(colocation=Colocation(), queues=queues)
    carried_out(world, calm)
    assert companies(world) == {("host", "guest")}


# --- commit ------------------------------------------------------------------------------------------------


def join_step(world: WorldBuilder) -> Place:
    (step,) = (step for step in planned(world, HOW).steps if isinstance(step, Place))
    return step


@pytest.mark.parametrize("gone", ["ended", "drained", "taken", "node lost"])
def test_a_plan_that_came_too_late_is_refused(gone: str) -> None:
    world = site().submit("guest", together=HALVES)
    step = join_step(world)
    if gone == "ended":
        world.ended("host")
    elif gone == "drained":
        world.drain("n")
    elif gone == "taken":
        world.submit("quick", together=HALVES)
        world.check(
            Place(
                JobId("quick"),
                1,
                step.placements,
                company=Company((JobId("host"), JobId("quick")), (1, 1), 1),
            )
        )
    else:
        world.lose("n")
    world.check(step)
    assert [refusal.step for refusal in world.verdict.refused] == [step]


def test_a_part_of_cards_without_company_is_no_place_for_it() -> None:
    world = site().submit("guest", together=HALVES)
    step = join_step(world)
    world.check(Place(step.job, 1, step.placements))
    assert world.verdict.refused


def test_who_is_joined_is_not_moved_by_the_same_plan_nor_while_it_shares() -> None:
    world = site(cards=1, movable=True).node("m", 1).submit("other")
    carried_out(world, HOW)
    world.started("other").submit("guest", together=HALVES)
    step = join_step(world)
    world.ended("other")
    away = Move(JobId("host"), 1, 0, a_placement(a_node("m", 1), (0,)))
    world.check(step, away)
    assert [refusal.step for refusal in world.verdict.refused] == [away]
    world.check(away)
    assert [refusal.step for refusal in world.verdict.refused] == [away]


def test_a_warm_memo_shares_as_an_empty_one_does() -> None:
    memo = Memo()
    world = WorldBuilder().node("n", 2)
    for at in range(6):
        world.submit(f"j{at}", together=HALVES if at % 3 else GPU)
        assert planned(world, HOW, memo=memo) == planned(world, HOW)
        carried_out(world, HOW, memo=memo)
        for name in world.holding:
            world.started(name)
