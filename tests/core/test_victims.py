"""Who is stopped so that a job can start, where priority decides: fewest losses, one node, nobody in vain."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from aliquot.core.events import Evicting
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.jobs import Elastic, Link, Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.records import JobRecord
from aliquot.core.room.tenants import victim_cost
from aliquot.core.settings import Preemption
from aliquot.core.slices import Vector
from aliquot.core.steps import Cause
from aliquot.core.topology.links import Link as Level
from aliquot.core.topology.wiring import Wiring, assemble
from tests.support.build import T4, a_job, a_request
from tests.support.full_sites import (
    HOUR,
    MINUTE,
    at_place,
    carry_out,
    cleared,
    clearing,
    clearing_at,
    runs,
    singles,
    victims,
)
from tests.support.same import rows_of
from tests.support.worlds import WorldBuilder


@pytest.mark.parametrize(
    ("how", "minutes"),
    [
        pytest.param({}, 50, id="all since it started, where it makes no checkpoints"),
        pytest.param({"cards": 4}, 200, id="on each of its cards"),
        pytest.param({"stop": Stop(checkpoint_ms=20 * MINUTE)}, 10, id="since its last checkpoint"),
        pytest.param(
            {"stop": Stop(checkpoint_ms=20 * MINUTE, restart_ms=3 * MINUTE)}, 13, id="and its restart"
        ),
        pytest.param({"stop": Stop(checkpoint_ms=25 * MINUTE)}, 0, id="nothing right after a checkpoint"),
        pytest.param({"evictions": 2, "cards": 2}, 220, id="half an hour for each earlier eviction"),
        pytest.param({"request": a_request(2, compute=250)}, 25, id="a quarter of two cards"),
    ],
)
def test_stopping_a_job_costs(how: dict[str, Any], minutes: int) -> None:
    assert victim_cost(a_record(**how), 60 * MINUTE, Preemption()) == minutes * MINUTE


@pytest.mark.parametrize(
    ("how", "rules"),
    [
        pytest.param({"stop": Stop(preemptible=False)}, {}, id="that is not preemptible"),
        pytest.param({}, {"least_run_ms": 51 * MINUTE}, id="that has just begun"),
        pytest.param({"phase": Phase.STOPPING}, {}, id="that is ending anyway"),
        pytest.param({"evicting": Evicting(0, JobId("j"), 1, Cause.SPOT)}, {}, id="that is being stopped"),
        pytest.param({"evictions": 5}, {}, id="that was stopped too often"),
    ],
)
def test_nobody_stops_a_job(how: dict[str, Any], rules: dict[str, Any]) -> None:
    assert victim_cost(a_record(**how), 60 * MINUTE, Preemption(**rules)) is None


def test_spot_work_may_be_stopped_however_often_it_was() -> None:
    assert (
        victim_cost(a_record(evictions=9, spot=True), 60 * MINUTE, Preemption(again_milli=0)) == 50 * MINUTE
    )


def a_record(
    cards: int = 1, *, phase: Phase = Phase.RUNNING, evictions: int = 0, evicting: Any = None, **job: Any
) -> JobRecord:
    """A job of `cards` cards that runs since ten minutes past."""
    request = job.pop("request", a_request(cards))
    return JobRecord(
        a_job("j", request, **job),
        phase,
        since_ms=10 * MINUTE,
        granted_ms=9 * MINUTE,
        evictions=evictions,
        evicting=evicting,
    )


# --- one node ------------------------------------------------------------------------------------------


def test_the_job_that_has_lost_least_goes_and_the_next_best_is_named() -> None:
    site = WorldBuilder().node("n", 3)
    for name, at in (("old", 0), ("older", 1), ("young", 2)):
        site.at = {"older": 0, "old": HOUR, "young": 2 * HOUR}[name]
        runs(site, name, ("n", [at]))
    site.at = 3 * HOUR
    site.submit("high", priority=10)
    site.node("m", 1)
    runs(site, "newest", ("m", [0]))
    site.at += MINUTE
    found = cleared(site, "high")
    assert victims(found) == ["newest"]
    assert found is not None
    assert (found.cost_ms, found.alternatives, found.next_cost) == (MINUTE, 2, HOUR + MINUTE)
    assert found.victims[0].for_job == "high"
    assert (found.victims[0].cause, found.victims[0].grace_ms) == (Cause.PRIORITY, 30_000)


def test_who_starts_anyway_stops_nobody() -> None:
    site = WorldBuilder().node("n", 2)
    runs(site, "low", ("n", [0]))
    site.submit("high", priority=10)
    found = cleared(site, "high")
    assert victims(found) == []
    assert found is not None
    assert found.seats[0].seat.mask == 0b10


@pytest.mark.parametrize("priority", [10, 11])
def test_no_job_stops_one_of_its_own_priority_or_higher(priority: int) -> None:
    site = WorldBuilder().node("n", 1)
    runs(site, "there", ("n", [0]), priority=priority)
    site.submit("new", priority=10)
    assert cleared(site, "new") is None


def test_the_lowest_priority_goes_first_whatever_it_costs() -> None:
    site = WorldBuilder().node("n", 2)
    runs(site, "lowest", ("n", [0]), priority=1)
    site.at = 5 * HOUR
    runs(site, "low", ("n", [1]), priority=2)
    site.submit("high", priority=3)
    assert victims(cleared(site, "high")) == ["lowest"]


def test_of_equals_the_one_submitted_last_goes() -> None:
    site = WorldBuilder().node("n", 2)
    site.submit("first").later(5).submit("second")
    site.granted("second", at_place(site, "n", [0])).started("second")
    site.granted("first", at_place(site, "n", [1])).started("first")
    site.submit("high", priority=3)
    assert victims(cleared(site, "high")) == ["second"]


def test_a_set_that_costs_less_beats_a_greedy_one() -> None:
    """Two cards: per card the pair is cheaper than either single, together the singles are."""
    site = WorldBuilder().node("n", 4)
    runs(site, "pair", ("n", [0, 1]), stop=Stop(checkpoint_ms=1, restart_ms=30 * MINUTE))
    runs(site, "one", ("n", [2]), stop=Stop(checkpoint_ms=1, restart_ms=20 * MINUTE))
    runs(site, "other", ("n", [3]), stop=Stop(checkpoint_ms=1, restart_ms=70 * MINUTE))
    site.submit("high", cards=3, priority=5)
    found = cleared(site, "high")
    assert victims(found) == ["one", "pair"]
    assert found is not None
    assert found.cost_ms == 80 * MINUTE


def test_whoever_is_not_needed_in_the_end_is_spared() -> None:
    """The young single is taken first, then the pair, which alone is enough."""
    site = WorldBuilder().node("n", 3)
    runs(site, "pair", ("n", [1, 2]), stop=Stop(checkpoint_ms=1, restart_ms=30 * MINUTE))
    runs(site, "single", ("n", [0]), stop=Stop(checkpoint_ms=1, restart_ms=MINUTE))
    site.submit("high", cards=2, priority=5)
    assert victims(cleared(site, "high")) == ["pair"]


def test_a_single_card_is_not_taken_from_a_wide_job_where_one_card_would_do() -> None:
    site = WorldBuilder().node("n", 8)
    runs(site, "wide", ("n", range(7)), stop=Stop(checkpoint_ms=1, restart_ms=1))
    runs(site, "single", ("n", [7]), stop=Stop(checkpoint_ms=1, restart_ms=7))
    site.submit("high", priority=5)
    assert victims(cleared(site, "high")) == ["single"], "alike to the minute: fewer cards beyond need"


def test_eight_that_come_one_by_one_empty_one_node_and_a_wide_one_another() -> None:
    """Fault B17: with victims picked at random the singles scatter and the wide job has no node to clear."""
    site = WorldBuilder().nodes(4)
    for node in range(4):
        site.later(7_000)  # seconds apart: no reason to scatter
        singles(site, f"n{node}")
    stopped: list[str] = []
    for at in range(8):
        site.later(MINUTE).submit(f"high-{at}", priority=10)
        found = cleared(site, f"high-{at}")
        assert found is not None
        stopped += [victim.job for victim in found.victims]
        carry_out(site, f"high-{at}", found)
    assert len({name.split("-")[0] for name in stopped}) == 1
    site.submit("wide", cards=8, priority=10)
    found = cleared(site, "wide")
    assert found is not None
    stopped += [victim.job for victim in found.victims]
    assert len(stopped) == len(set(stopped)) == 16


# --- shared cards, host, links --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param(13000, ["low"], id="that needs its memory"),
        pytest.param(1500, [], id="that fits beside it"),
    ],
)
def test_a_shared_card_is_cleared_only_for_one(memory: int, expected: list[str]) -> None:
    """Fault B37: preemption has to see what shares of a card are taken."""
    site = WorldBuilder().node("n", 1, model=T4)
    runs(
        site,
        "low",
        at_place(site, "n", [0], Vector(100, 13000, 0)),
        request=a_request(memory=13000, compute=100),
    )
    site.submit("high", a_request(memory=memory, compute=100), priority=1)
    assert victims(cleared(site, "high")) == expected


def test_many_slices_of_odd_cost_are_searched_within_a_bound_and_none_goes_in_vain() -> None:
    site = WorldBuilder().node("n", 4)
    odd = [53, 47, 59, 61, 43, 67, 41, 71, 37, 73, 31, 79, 29, 83, 23, 89]
    for at, minutes in enumerate(odd):
        share = at_place(site, "n", [at % 4], Vector(200 + at, 15000 + 300 * at, 0))
        stop = Stop(checkpoint_ms=1, restart_ms=minutes * MINUTE)
        ask = a_request(compute=200 + at, memory=15000 + 300 * at)
        runs(site, f"s{at}", share, request=ask, stop=stop)
    site.submit("high", a_request(3, compute=620, memory=50000), priority=1)
    found = cleared(site, "high")
    assert found is not None
    assert found.is_bounded
    for spared in victims(found) or ():
        left = WorldBuilder()
        left.happen(*site.events)
        for victim in found.victims:
            if victim.job != spared:
                left.ended(victim.job)
        assert victims(cleared(left, "high")) != []


def test_only_as_many_slices_go_as_it_takes() -> None:
    site = WorldBuilder().node("n", 1, model=T4)
    for at in range(4):
        site.at = at * MINUTE
        runs(site, f"s{at}", slice_of(site, 250), request=a_request(compute=250, memory=3000))
    site.submit("high", a_request(compute=500, memory=3000), priority=1)
    assert victims(cleared(site, "high")) == ["s2", "s3"]
    site.submit("whole", priority=1)
    assert victims(cleared(site, "whole")) == ["s0", "s1", "s2", "s3"]


def slice_of(site: WorldBuilder, compute: int) -> Placement:
    """A slice of the only card of `n`."""
    return at_place(site, "n", [0], Vector(compute, 3000, 0))


def test_cores_and_host_memory_count_too() -> None:
    site = WorldBuilder().node("n", 2, cpu=8000, host=100)
    runs(site, "hungry", at_place(site, "n", [0], cpu=7000), request=a_request(cpu=7000))
    site.submit("high", a_request(cpu=2000), priority=1)
    assert victims(cleared(site, "high")) == ["hungry"]
    site.submit("heavy", a_request(0, host=100), priority=1)
    assert victims(cleared(site, "heavy")) == []


def test_two_free_cards_that_are_not_linked_are_not_enough_for_one_that_needs_links() -> None:
    site = WorldBuilder().node("n", 4, wiring=linked_pairs())
    runs(site, "a", ("n", [0]))
    runs(site, "b", ("n", [2]), stop=Stop(checkpoint_ms=1))
    site.later(HOUR).submit("pair", a_request(2, link=Link.REQUIRED), priority=1)
    assert victims(cleared(site, "pair")) == ["b"]
    site.submit("any", a_request(2), priority=1)
    assert victims(cleared(site, "any")) == []


def linked_pairs() -> Wiring:
    """Four cards, linked 0-1 and 2-3."""
    pairs = [(a, b) for a in range(4) for b in range(4)]
    levels = tuple(Level.SELF if a == b else Level.NV if a // 2 == b // 2 else Level.NODE for a, b in pairs)
    return assemble(4, levels, tuple(2 if level is Level.NV else 0 for level in levels))


def test_nobody_is_stopped_for_a_job_that_no_node_could_hold() -> None:
    site = WorldBuilder().nodes(2)
    singles(site, "n0")
    site.submit("wide", cards=9, priority=1)
    assert cleared(site, "wide") is None


def test_a_closed_node_is_not_cleared() -> None:
    site = WorldBuilder().nodes(2, cards=1)
    runs(site, "old", ("n1", [0]))
    site.later(HOUR)
    runs(site, "young", ("n0", [0]))
    site.drain("n0").submit("high", priority=1)
    assert victims(cleared(site, "high")) == ["old"]


# --- gangs ----------------------------------------------------------------------------------------------


def test_a_gang_that_is_stopped_is_stopped_whole_and_counts_once() -> None:
    site = WorldBuilder().nodes(2)
    runs(site, "gang", ("n0", range(8)), ("n1", range(4)))
    singles(site, "n1", 0)
    runs(site, "side", ("n1", range(4, 8)))
    site.later(HOUR).submit("high", [a_request(8), a_request(4)], priority=1)
    found = cleared(site, "high")
    assert found is not None
    assert [(victim.job, victim.cost_ms) for victim in found.victims] == [("gang", 12 * HOUR)]
    assert {seat.seat.row for seat in found.seats} == {0, 1}


def test_a_gang_takes_the_cheapest_nodes_and_no_more_of_them() -> None:
    site = WorldBuilder().nodes(4)
    for node in range(4):
        site.at = node * HOUR
        singles(site, f"n{node}")
    site.at = 5 * HOUR
    site.submit("gang", [a_request(8)] * 2, priority=1)
    found = cleared(site, "gang")
    assert found is not None
    assert {victim.job.split("-")[0] for victim in found.victims} == {"n2", "n3"}
    assert len(found.victims) == 16
    assert found.cost_ms == 8 * (2 + 3) * HOUR
    assert found.next_cost is not None
    assert found.next_cost > found.cost_ms


def test_a_gang_uses_what_is_free_before_it_stops_anybody() -> None:
    site = WorldBuilder().nodes(3)
    singles(site, "n0")
    singles(site, "n1", 3)
    site.submit("gang", [a_request(4)] * 4, priority=1)
    found = cleared(site, "gang")
    assert found is not None
    assert len(found.victims) == 3, "one member beside the three of n1, two on n2, and the three make way"
    assert {victim.job.split("-")[0] for victim in found.victims} == {"n1"}


def test_one_gang_stopped_for_several_members_beats_many_singles() -> None:
    site = WorldBuilder().nodes(4)
    for node in (0, 1):
        singles(site, f"n{node}", stop=Stop(checkpoint_ms=1, restart_ms=10 * MINUTE))
    runs(site, "pair", ("n2", range(8)), ("n3", range(8)), stop=Stop(checkpoint_ms=1, restart_ms=6 * MINUTE))
    site.submit("gang", [a_request(8)] * 2, priority=1)
    assert victims(cleared(site, "gang")) == ["pair"]


def test_members_of_several_sizes_are_let_in_together() -> None:
    site = WorldBuilder().nodes(2)
    for node in range(2):
        singles(site, f"n{node}")
    site.submit("gang", [a_request(2), a_request(8)], priority=1)
    found = cleared(site, "gang")
    assert found is not None
    assert len(found.victims) == 10
    assert [seat.seat.mask.bit_count() for seat in found.seats] == [2, 8]


def test_a_gang_with_a_minimum_stops_others_only_for_that() -> None:
    site = WorldBuilder().nodes(2)
    for node in range(2):
        singles(site, f"n{node}")
    site.submit("gang", [a_request(8)] * 2, priority=1, minimum=1)
    found = cleared(site, "gang")
    assert found is not None
    assert (len(found.victims), len(found.seats)) == (8, 1)


def test_members_that_are_to_be_apart_clear_a_card_on_each_node() -> None:
    site = WorldBuilder().nodes(3)
    for node in range(3):
        singles(site, f"n{node}")
    site.submit("apart", [a_request(1)] * 3, priority=1, spread=True)
    found = cleared(site, "apart")
    assert found is not None
    assert {victim.job.split("-")[0] for victim in found.victims} == {"n0", "n1", "n2"}
    assert {seat.seat.row for seat in found.seats} == {0, 1, 2}


def test_an_elastic_job_stops_others_only_for_its_first_width() -> None:
    site = WorldBuilder().node("n", 4)
    singles(site, "n", 4)
    site.submit("new", cards=4, priority=1, elastic=Elastic((1, 2, 4), (1000, 1800, 3000)))
    found = cleared(site, "new")
    assert found is not None
    assert len(found.victims) == 1


def test_more_than_the_allowed_number_is_not_stopped() -> None:
    site = WorldBuilder().nodes(1)
    singles(site, "n0")
    site.submit("wide", cards=8, priority=1)
    assert cleared(site, "wide", Preemption(most_victims=7)) is None
    assert cleared(site, "wide", Preemption(most_victims=8)) is not None


# --- one plan -------------------------------------------------------------------------------------------


def test_nobody_is_offered_twice_in_one_plan() -> None:
    site = WorldBuilder().node("n", 2)
    singles(site, "n", 2)
    for at in range(3):
        site.submit(f"high-{at}", priority=1)
    plan = clearing(site)
    taken = []
    for at in range(2):
        found = plan.clear(site.job(f"high-{at}"))
        assert found is not None
        taken += [victim.job for victim in found.victims]
    assert sorted(taken) == ["n-0", "n-1"]
    assert plan.clear(site.job("high-2")) is None


def test_what_comes_free_beyond_need_serves_the_next_in_the_plan() -> None:
    site = WorldBuilder().nodes(2)
    runs(site, "wide", ("n0", range(8)))
    runs(site, "other", ("n1", range(8)))
    site.submit("first", cards=4, priority=1).submit("second", cards=3, priority=1).submit(
        "third", cards=2, priority=1
    )
    plan = clearing(site)
    assert [victims(plan.clear(site.job(name))) for name in ("first", "second")] == [["wide"], []]
    assert victims(plan.clear(site.job("third"))) == ["other"], "one card is left of the four"


def test_nobody_is_stopped_for_one_who_gets_what_another_is_just_giving_up() -> None:
    site = WorldBuilder().node("n", 2)
    singles(site, "n", 2)
    site.cancel("n-0").submit("high", priority=1)
    assert victims(cleared(site, "high")) == []
    site.later(HOUR)
    assert victims(cleared(site, "high")) == ["n-1"], "the other does not seem to end"


def test_the_draft_is_as_before() -> None:
    site = WorldBuilder().nodes(3)
    singles(site, "n0")
    singles(site, "n1", 5)
    site.submit("gang", [a_request(8)] * 3, priority=1)
    before = rows_of(site.frozen)
    plan, desk = clearing_at(site)
    cells = {name: column.copy() for name, column in desk.placer.board.cells._asdict().items()}
    assert plan.clear(site.job("gang")) is not None
    again = replace(site.frozen, chunks=tuple(desk.draft.chunks))
    assert rows_of(again) == before
    for name in ("idle", "usable", "cpu", "host", "left", "effective"):
        assert (getattr(desk.placer.board.cells, name) == cells[name]).all()


def test_a_job_that_was_moved_in_this_plan_is_left_alone() -> None:
    site = WorldBuilder().node("n", 1)
    runs(site, "low", ("n", [0]))
    site.submit("high", priority=1)
    plan = clearing(site)
    plan.bar(JobId("low"))
    assert plan.clear(site.job("high")) is None


def test_spot_work_goes_first_for_anybody_and_stops_nobody() -> None:
    site = WorldBuilder().node("n", 2)
    runs(site, "spot", ("n", [0]), priority=50, spot=True)
    site.later(HOUR)
    runs(site, "low", ("n", [1]), priority=-1)
    site.submit("new").submit("cheap", priority=99, spot=True)
    found = cleared(site, "new")
    assert victims(found) == ["spot"]
    assert found is not None
    assert found.victims[0].cause is Cause.SPOT
    assert cleared(site, "cheap") is None
    assert victims(cleared(site, "new", Preemption(spot=False))) == ["low"]
    assert cleared(site, "new", Preemption(spot=False, lower_priority=False)) is None
