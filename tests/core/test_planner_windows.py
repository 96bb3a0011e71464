"""Windows in the planner: who may start in front of one, who is let in, who is stopped, and what is said."""

from __future__ import annotations

from typing import Any

import pytest

from aliquot.core.events import WindowCancelled, WindowMade
from aliquot.core.ids import JobId
from aliquot.core.image import image_of, world_of
from aliquot.core.jobs import Elastic, Stop
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.settings import Backfill, Colocation, Defrag, ElasticRules, Preemption, Rescue
from aliquot.core.steps import Cause, Evict, Gate, Plan, Wait
from aliquot.core.together import Together
from aliquot.core.windows import Inside, Window
from tests.support.build import a_placement, a_request, card_id, node_id
from tests.support.planning import carried_out, gates, nodes_of, placements, planned, settings
from tests.support.worlds import WorldBuilder

HOUR = 3_600_000
HOW = settings()


def a_window(name: str = "w", *nodes: str, start: int = 2 * HOUR, end: int = 4 * HOUR, **more: Any) -> Window:
    """Two hours of maintenance, in two hours."""
    return Window(name, start, end, nodes=tuple(map(node_id, nodes)), **more)


def closed(site: WorldBuilder, window: Window) -> WorldBuilder:
    """`site` with one more window."""
    return site.happen(WindowMade(site.at, window))


def one_node(window: Window | None = None) -> WorldBuilder:
    """A node of four cards, under a window."""
    return closed(WorldBuilder().nodes(1, 4), window or a_window("w", "n0"))


def wait_of(made: Plan, name: str) -> Wait:
    """What a plan says of a waiting job."""
    return next(step for step in made.steps if isinstance(step, Wait) and step.job == name)


@pytest.mark.parametrize(
    ("told", "starts"),
    [
        pytest.param({"estimate_ms": 2 * HOUR}, True, id="over-when-it-begins"),
        pytest.param({"estimate_ms": 2 * HOUR + 1}, False, id="still-there"),
        pytest.param({}, False, id="nobody-knows-its-end"),
        pytest.param({"limit_ms": 2 * HOUR}, True, id="ended-by-then"),
        pytest.param({"estimate_ms": HOUR, "limit_ms": 3 * HOUR}, False, id="the-limit-counts"),
        pytest.param({"estimate_ms": 3 * HOUR, "limit_ms": HOUR}, True, id="and-only-the-limit"),
    ],
)
def test_a_job_that_would_still_be_there_does_not_start(told: dict[str, Any], starts: bool) -> None:
    site = one_node().submit("j", **told)
    assert (list(nodes_of(carried_out(site, HOW))) == ["j"]) is starts
    assert starts or gates(planned(site, HOW)) == {"j": Gate.RESERVATION}


def test_a_gang_that_may_start_in_part_is_reckoned_at_its_slowest() -> None:
    """Two of four members take twice as long: over an hour, not under two."""
    gang = [a_request(1)] * 4
    assert not nodes_of(planned(one_node().submit("g", gang, minimum=2, estimate_ms=HOUR + 1), HOW))
    assert nodes_of(planned(one_node().submit("g", gang, minimum=2, estimate_ms=HOUR), HOW))


def test_a_job_goes_to_the_node_that_stays_open() -> None:
    site = closed(WorldBuilder().nodes(2, 4), a_window("w", "n0")).submit("j", estimate_ms=9 * HOUR)
    assert nodes_of(carried_out(site, HOW)) == {"j": ["n1"]}


def test_only_the_closed_cards_of_a_node_are_closed() -> None:
    window = Window("w", 2 * HOUR, 4 * HOUR, cards=tuple(card_id("n0", slot) for slot in range(3)))
    site = one_node(window)
    for name in ("a", "b"):
        site.submit(name, estimate_ms=9 * HOUR)
    decided = carried_out(site, HOW)
    assert placements(decided) == {"a": [("n0", ["n0-g3"])]}
    assert gates(decided)["b"] is Gate.RESERVATION


def test_work_without_cards_does_not_start_on_a_closed_node() -> None:
    site = one_node().submit("cpu", a_request(0, cpu=1000), estimate_ms=9 * HOUR)
    assert gates(carried_out(site, HOW)) == {"cpu": Gate.RESERVATION}


def test_the_reason_has_node_times_and_the_end_of_the_job() -> None:
    site = one_node(a_window("driver", "n0", reason="a new driver")).submit("j", estimate_ms=3 * HOUR)
    wait = explain_wait(site.frozen, HOW, JobId("j"), Memo(), site.at)
    (fenced,) = wait.fenced
    assert (wait.gate, fenced.name, fenced.reason) == (Gate.RESERVATION, "driver", "a new driver")
    assert (fenced.nodes, fenced.start_ms, fenced.end_ms) == ((node_id("n0"),), 2 * HOUR, 4 * HOUR)
    assert fenced.over_ms == 3 * HOUR


def test_who_does_not_fit_anyway_is_not_told_of_windows() -> None:
    site = one_node().submit("j", cards=5, estimate_ms=HOUR)
    assert explain_wait(site.frozen, HOW, JobId("j"), Memo(), site.at).gate is Gate.NEVER


def test_during_a_window_nobody_starts_and_the_plan_asks_to_be_woken_at_its_end() -> None:
    site = one_node().later(2 * HOUR).submit("j", estimate_ms=1)
    decided = carried_out(site, HOW)
    assert (gates(decided), decided.wake_ms) == ({"j": Gate.RESERVATION}, 4 * HOUR)
    assert list(nodes_of(carried_out(site.later(2 * HOUR), HOW))) == ["j"]


def test_what_runs_when_it_begins_is_left() -> None:
    site = WorldBuilder().nodes(1, 4).submit("j", estimate_ms=9 * HOUR)
    carried_out(site, HOW)
    closed(site.started("j"), a_window("w", "n0")).later(2 * HOUR)
    assert planned(site, HOW).steps == ()


def test_what_runs_when_it_begins_is_stopped_where_the_window_says_so() -> None:
    """Nobody waits, and still the plan asks to be woken at the start."""
    site = WorldBuilder().nodes(2, 4).submit("a", cards=4, estimate_ms=9 * HOUR).submit("b", cards=4)
    carried_out(site, HOW)
    closed(site.started("a").started("b"), a_window("w", "n0", grace_ms=60_000))
    assert planned(site, HOW).wake_ms == 2 * HOUR
    there = next(name for name in "ab" if site.grant(name).placement.node.name == "n0")
    decided = carried_out(site.later(2 * HOUR), HOW)
    assert [(step.job, step.cause, step.grace_ms) for step in decided.steps if isinstance(step, Evict)] == [
        (there, Cause.RESERVATION, 60_000)
    ]
    assert not [step for step in carried_out(site, HOW).steps if isinstance(step, Evict)]


@pytest.mark.parametrize(
    ("stop", "starts"),
    [
        pytest.param(Stop(checkpoint_ms=60_000), True, id="goes-on-from-a-checkpoint"),
        pytest.param(Stop(), False, id="would-lose-all"),
        pytest.param(Stop(checkpoint_ms=60_000, preemptible=False), False, id="is-never-stopped"),
    ],
)
def test_without_a_known_end_only_those_start_that_lose_nothing_by_the_stop(stop: Stop, starts: bool) -> None:
    site = one_node(a_window("w", "n0", grace_ms=0)).submit("j", stop=stop)
    assert (list(nodes_of(planned(site, HOW))) == ["j"]) is starts
    assert not nodes_of(planned(one_node().submit("j", stop=stop), HOW)), "nobody is stopped there"


@pytest.mark.parametrize(
    ("who", "is_in"),
    [
        pytest.param({"user": "ana"}, True, id="user"),
        pytest.param({"queue": "lab/course"}, True, id="below-the-queue"),
        pytest.param({"queue": "laboratory"}, False, id="another-queue"),
        pytest.param({"replica_of": "exam"}, True, id="a-copy-of-the-job"),
        pytest.param({"user": "eve"}, False, id="another-user"),
        pytest.param({}, False, id="nobody"),
    ],
)
def test_who_is_let_in_starts_whenever(who: dict[str, Any], is_in: bool) -> None:
    inside = Inside(queues=("lab",), users=("ana",), jobs=(JobId("exam"),))
    site = one_node(a_window("w", "n0", inside=inside)).later(3 * HOUR).submit("j", **who)
    assert (list(nodes_of(carried_out(site, HOW))) == ["j"]) is is_in


def test_under_two_windows_one_has_to_be_let_in_by_both() -> None:
    ana = Inside(users=("ana",))
    site = one_node(a_window("course", "n0", inside=ana))
    closed(site, a_window("driver", "n0", start=3 * HOUR, end=5 * HOUR))
    site.submit("short", user="ana", estimate_ms=3 * HOUR).submit("long", user="ana", estimate_ms=4 * HOUR)
    decided = carried_out(site, HOW)
    assert list(nodes_of(decided)) == ["short"]
    assert [fenced.name for fenced in wait_of(decided, "long").fenced] == ["driver"]


def test_a_window_of_the_same_name_replaces_and_a_cancelled_one_is_open() -> None:
    site = closed(one_node(), a_window("w", "n0", start=5 * HOUR, end=6 * HOUR))
    site.submit("j", estimate_ms=4 * HOUR).submit("k", estimate_ms=9 * HOUR)
    assert list(nodes_of(carried_out(site, HOW))) == ["j"]
    site.happen(WindowCancelled(site.at, "w"), WindowCancelled(site.at, "none"))
    assert list(nodes_of(carried_out(site, HOW))) == ["k"]


def test_a_window_in_the_past_changes_nothing_and_an_unknown_node_counts_once_it_is_there() -> None:
    site = WorldBuilder().later(9 * HOUR).nodes(1, 4)
    closed(site, a_window("past", "n0"))
    assert site.frozen.closures == ()
    closed(site, a_window("later", "n1", start=0, end=20 * HOUR))
    site.node("n1", 8).submit("j", cards=8, estimate_ms=HOUR)
    assert gates(carried_out(site, HOW)) == {"j": Gate.RESERVATION}


def test_a_number_of_cards_is_chosen_where_little_is_in_the_way() -> None:
    """n1 is busy at the start, n2 is under another window: n0 and two cards of n3."""
    site = WorldBuilder().nodes(4, 4)
    site.submit("busy", cards=4).granted("busy", a_placement(site.world.nodes[node_id("n1")].node, range(4)))
    closed(site, a_window("other", "n2"))
    closed(site, Window("w", 2 * HOUR, 4 * HOUR, count=6))
    (parts,) = [one.parts for one in site.frozen.closures if one.window.name == "w"]
    assert {part.node.name: len(part.cards) for part in parts} in ({"n0": 2, "n3": 4}, {"n0": 4, "n3": 2})


def test_the_reservation_of_a_waiting_job_leaves_windows_alone() -> None:
    """The card is free after an hour, but then the job would be there at three: so it is to start at four."""
    how = settings(backfill=Backfill(overdue_ms=0))
    site = WorldBuilder().nodes(1, 1).submit("runs", estimate_ms=HOUR)
    carried_out(site, how)
    closed(site, a_window("w", "n0"))
    site.submit("head", estimate_ms=2 * HOUR).submit("small", estimate_ms=HOUR // 2)
    assert wait_of(carried_out(site, how), "head").until_ms == 4 * HOUR
    site.started("runs").later(HOUR).ended("runs")
    assert list(nodes_of(carried_out(site, how))) == ["small"]


def test_all_members_of_a_gang_are_reserved_beside_windows() -> None:
    """n1 is free at once and closed from two to four; n0 at one: together they would meet the window."""
    how = settings(backfill=Backfill(overdue_ms=0))
    site = WorldBuilder().nodes(2, 1).submit("runs", estimate_ms=HOUR)
    carried_out(site, how)
    other = "n1" if site.grant("runs").placement.node.name == "n0" else "n0"
    closed(site, a_window("w", other)).submit("gang", [a_request(1)] * 2, estimate_ms=3 * HOUR // 2)
    assert wait_of(carried_out(site, how), "gang").until_ms == 4 * HOUR


def test_nobody_is_stopped_for_cards_that_are_closed() -> None:
    how = settings(preemption=Preemption())
    site = one_node()
    site.submit("low", cards=4, estimate_ms=HOUR)
    carried_out(site, how)
    site.started("low").submit("high", cards=4, priority=9, estimate_ms=9 * HOUR)
    assert not [step for step in planned(site, how).steps if isinstance(step, Evict)]
    site.submit("brief", cards=4, priority=9, estimate_ms=HOUR)
    assert [step.for_job for step in planned(site, how).steps if isinstance(step, Evict)] == ["brief"]


def test_elastic_jobs_do_not_grow_under_a_window() -> None:
    how = settings(elastic=ElasticRules(dwell_ms=0))
    elastic = Elastic((1, 2, 4), (1000, 1900, 3600))
    site = closed(WorldBuilder().nodes(2, 4), a_window("w", "n1"))
    site.submit("other", cards=3, estimate_ms=9 * HOUR).submit("grows", elastic=elastic, estimate_ms=9 * HOUR)
    carried_out(site, how)
    site.started("other").started("grows").later(HOUR)
    carried_out(site, how)
    assert {site.grant(name).placement.node.name for name in ("other", "grows")} == {"n0"}


def test_moves_do_not_end_under_a_window() -> None:
    """The four cards of n0 could be cleared for the wide job only by moving to n1, which is closed."""
    how = settings(defrag=Defrag(after_ms=0), rescue=Rescue(share=1.0))
    site = WorldBuilder().nodes(2, 4)
    site.submit("a", movable=True).granted("a", a_placement(site.world.nodes[node_id("n0")].node, [0]))
    site.started("a")
    closed(site, a_window("w", "n1"))
    site.later(1).submit("wide", cards=4, estimate_ms=9 * HOUR).later(HOUR)
    assert gates(carried_out(site, how)) == {"wide": Gate.RESERVATION}


def test_a_whole_site_under_maintenance_costs_no_look_at_nodes() -> None:
    site = closed(WorldBuilder().nodes(3, 4), a_window("all", "n0", "n1", "n2"))
    site.submit("long", estimate_ms=9 * HOUR).submit("short", estimate_ms=HOUR)
    decided = carried_out(site, HOW)
    assert list(nodes_of(decided)) == ["short"]
    assert len(wait_of(decided, "long").fenced[0].nodes) == 3


def test_commit_refuses_what_a_plan_could_not_know() -> None:
    site = WorldBuilder().nodes(1, 4).submit("j", estimate_ms=9 * HOUR)
    seen = site.frozen
    decided = planned(site, HOW)
    closed(site, a_window("w", "n0"))
    site.check(*decided.steps, seen=seen)
    (refusal,) = site.verdict.refused
    assert refusal.reason == "node n0 is closed to it by reservation w"


def test_windows_are_in_the_image_of_a_world() -> None:
    site = closed(one_node(), Window("some", 0, HOUR, count=2))
    again = world_of(image_of(site.world))
    assert again.freeze().closures == site.frozen.closures == site.rebuilt().freeze().closures


def test_a_warm_memo_changes_nothing() -> None:
    memo = Memo()
    site = closed(WorldBuilder().nodes(3, 4), a_window("w", "n0", "n2"))
    for number in range(12):
        site.submit(f"j{number}", cards=1 + number % 3, estimate_ms=HOUR * (1 + number % 4))
        assert planned(site, HOW, memo=memo) == planned(site, HOW)
        carried_out(site.later(HOUR // 3), HOW, memo=memo)


@pytest.mark.parametrize(("hours", "shares"), [(1, True), (3, False)])
def test_nobody_joins_others_on_cards_that_are_closed(hours: int, shares: bool) -> None:
    how = settings(colocation=Colocation())
    halves = Together(20_000, (0, 500, 500, 0))
    site = WorldBuilder().nodes(1, 1).submit("host", estimate_ms=HOUR, together=halves)
    carried_out(site, how)
    closed(site.started("host"), a_window("w", "n0"))
    site.submit("guest", estimate_ms=hours * HOUR, together=halves)
    assert (list(nodes_of(carried_out(site, how))) == ["guest"]) is shares
