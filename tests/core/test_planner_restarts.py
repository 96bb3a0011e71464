"""Elastic jobs where the engine can't change a width in place: stopped, kept for, and started again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.events import Outcome, Resizing, Unreserved
from aliquot.core.image import image_of, world_of
from aliquot.core.jobs import Elastic, Stop
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo
from aliquot.core.queues import Discipline
from aliquot.core.settings import Backfill, ElasticRules, Preemption, Settings
from aliquot.core.steps import Evict, Gate, Kill, Place, Reserve, Resize, Start
from tests.support.build import a_request
from tests.support.planning import carried_out, gates, planned, settings
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder

LINEAR = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
RULES = ElasticRules(dwell_ms=0)
HOW = settings(elastic=RULES, resizes_in_place=False)
SHRINK = settings(preemption=Preemption(grace_ms=30_000), resizes_in_place=False)
MINUTE = 60_000


def cards(site: WorldBuilder, name: str) -> set[str]:
    """What a job of one member holds."""
    return set(site.grant(name).placement.cards) if name in site.holding else set()


def under_way(site: WorldBuilder, how: Settings = HOW) -> WorldBuilder:
    """Whoever waits is placed, and all have been running for ten minutes."""
    carried_out(site, how)
    for name in site.holding:
        site.started(name)
    return site.later(10 * MINUTE)


def growing() -> WorldBuilder:
    """`e` holds two of eight cards and is about to go on with all of them."""
    site = under_way(WorldBuilder().node("n", 8).submit("r", cards=6).submit("e", cards=8, elastic=LINEAR))
    carried_out(site.ended("r"), HOW)
    return site


def test_it_holds_what_it_has_until_it_has_ended_and_then_goes_on_with_what_was_kept() -> None:
    site = growing()
    before = cards(site, "e")
    assert (site.phase("e"), len(before)) == (Phase.STOPPING, 2)
    assert site.world.outstanding() == [Kill("e", 1, resized=True)]
    carried_out(site.ended("e", Outcome.LOST), HOW)
    assert (site.phase("e"), len(cards(site, "e"))) == (Phase.STARTING, 8)
    assert before < cards(site, "e")
    (start,) = site.world.outstanding()
    assert isinstance(start, Start)
    assert (start.attempt, start.spared) == (2, 1)
    assert (site.world.kept, site.job("e").resizing, site.job("e").evictions) == ((), None, 0)


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.FAILED])
def test_nobody_gets_what_is_kept_for_it_however_it_ends(outcome: Outcome) -> None:
    site = growing().submit("late", cards=1, priority=99)
    assert gates(carried_out(site, HOW)) == {"late": Gate.FIT}
    site.ended("e", outcome).submit("later", cards=1, priority=99)
    carried_out(site, HOW)
    assert (site.phase("e"), len(cards(site, "e"))) == (Phase.STARTING, 8)
    assert "late" not in site.holding


@pytest.mark.parametrize(
    "how",
    [
        settings(elastic=RULES, resizes_in_place=False, discipline=Discipline.STRICT),
        settings(elastic=RULES, resizes_in_place=False, backfill=Backfill()),
        settings(elastic=RULES, resizes_in_place=False, preemption=Preemption()),
    ],
    ids=["strict", "backfill", "preemption"],
)
def test_it_goes_on_before_those_that_wait_longer_or_matter_more(how: Settings) -> None:
    site = WorldBuilder().node("n", 8).node("m", 1)
    site.submit("r", cards=6).submit("e", cards=8, elastic=LINEAR)
    under_way(site, how).ended("r")
    carried_out(site, how)
    assert site.phase("e") is Phase.STOPPING
    for name in ("huge", "huger"):
        site.submit(name, cards=9, priority=5)
    carried_out(site.ended("e", Outcome.LOST), how)
    assert (site.phase("e"), len(cards(site, "e"))) == (Phase.STARTING, 8)


def test_one_that_was_done_or_given_up_before_it_ended_keeps_nothing() -> None:
    for site in (growing().ended("e", Outcome.SUCCEEDED), growing().cancel("e").ended("e", Outcome.LOST)):
        assert (site.phase("e"), site.world.kept, site.free_cards) == (None, (), 8)
        assert site.world.outstanding() == []


def test_one_given_up_in_the_moment_between_keeps_nothing() -> None:
    site = growing().ended("e", Outcome.LOST).cancel("e")
    assert (site.phase("e"), site.world.kept) == (None, ())


def test_a_start_that_fails_goes_back_to_the_queue_at_any_width() -> None:
    site = growing().ended("e", Outcome.LOST)
    carried_out(site, HOW)
    site.refused("e").submit("new", cards=6)
    assert (site.phase("e"), site.job("e").resizing) == (Phase.PENDING, None)
    carried_out(site, HOW)
    carried_out(site.later(10 * MINUTE), HOW)
    assert (len(cards(site, "new")), len(cards(site, "e"))) == (6, 2)


def test_where_a_kept_card_breaks_it_is_placed_anew_at_any_width() -> None:
    site = growing()
    held = cards(site, "e")
    broken = next(
        card for card in site.world.nodes[site.grant("e").placement.node].index_of if card not in held
    )
    site.faulty("n", broken)
    carried_out(site.ended("e", Outcome.LOST), HOW)
    carried_out(site, HOW)
    assert (site.phase("e"), len(cards(site, "e"))) == (Phase.STARTING, 4)
    assert broken not in cards(site, "e")


def test_where_its_node_is_lost_it_waits_like_everybody() -> None:
    site = growing().lose("n")
    carried_out(site.ended("e", Outcome.LOST), HOW)
    assert any(isinstance(event, Unreserved) for event in site.events)
    assert (site.phase("e"), site.job("e").resizing, site.world.kept) == (Phase.PENDING, None, ())


def test_a_world_from_its_image_goes_on_in_the_middle() -> None:
    for site in (growing(), growing().ended("e", Outcome.LOST)):
        again = world_of(image_of(site.world))
        assert same_world(again.freeze(), site.world.freeze())
        assert again.outstanding() == site.world.outstanding()
        assert same_world(site.rebuilt().freeze(), site.world.freeze())


def test_it_gives_way_and_what_it_gives_is_kept_for_the_one_that_waits() -> None:
    site = under_way(WorldBuilder().node("n", 8).submit("e", cards=8, elastic=LINEAR)).submit("r", cards=4)
    decided = carried_out(site, HOW)
    assert [type(step) for step in decided.steps if not isinstance(step, Place)][:2] == [Reserve, Resize]
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert (step.restart, step.for_job, step.was, step.width) == (True, "r", 8, 4)
    assert gates(decided) == {"r": Gate.RELEASE}
    assert (len(cards(site, "e")), cards(site, "r")) == (8, set())
    assert carried_out(site, HOW).steps[0] == decided.steps[-1].__class__("r", Gate.RELEASE)
    site.submit("third", cards=1).ended("e", Outcome.LOST)
    carried_out(site, HOW)
    assert {name: len(cards(site, name)) for name in site.holding} == {"e": 4, "r": 4}


def test_cards_go_from_one_to_another_in_two_steps() -> None:
    poor = Elastic((1, 2, 4, 8), (1000, 1100, 1150, 1180))
    how = settings(elastic=ElasticRules(dwell_ms=0, change_milli=0), resizes_in_place=False)
    site = WorldBuilder().node("n", 8)
    site.submit("wide", cards=8, elastic=poor).submit("e", cards=8, elastic=LINEAR)
    memo = Memo()
    seen = []
    for _ in range(8):
        decided = carried_out(site, how, memo=memo)
        seen += [(step.job, step.was, step.width) for step in decided.steps if isinstance(step, Resize)]
        for name in site.holding:
            if site.phase(name) is Phase.STOPPING:
                site.ended(name, Outcome.LOST)
            else:
                site.started(name)
        site.later(MINUTE)
    assert sum(len(cards(site, name)) for name in site.holding) <= 8
    assert all(was != width for _, was, width in seen)
    assert not [step for step in planned(site, how).steps if isinstance(step, Resize)], "it comes to rest"


def test_preemption_narrows_by_restart_within_its_grace() -> None:
    site = under_way(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=2), SHRINK)
    decided = carried_out(site.submit("high", cards=4, priority=10), SHRINK)
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert (step.restart, step.grace_ms, step.was, step.width) == (True, 30_000, 8, 4)
    assert site.world.outstanding() == [Kill("c", 1, 30_000, resized=True)]
    assert (site.phase("c"), "high" in site.holding) == (Phase.STOPPING, False)
    carried_out(site.ended("c", Outcome.LOST), SHRINK)
    assert {name: len(site.world.grants[site.job(name).job.id]) for name in site.holding} == {
        "c": 4,
        "high": 1,
    }
    assert sum(part.milli for part in site.job("c").asked) == 4000
    assert (site.job("c").evictions, site.job("c").resizes) == (0, 1)


@pytest.mark.parametrize(
    ("how", "stopped"),
    [
        pytest.param(
            replace(SHRINK, resizes_in_place=True), "c", id="in place only the members that go lose"
        ),
        pytest.param(SHRINK, "b", id="by restart all of them lose"),
    ],
)
def test_a_gang_that_has_to_restart_is_charged_the_work_of_all_its_members(
    how: Settings, stopped: tuple[str, int]
) -> None:
    """Ten minutes unsaved: of two members of six 20 card-min, of all six 60; of b's three cards 30."""
    site = WorldBuilder().node("n", 9).submit("c", [a_request(1)] * 6, minimum=2).submit("b", cards=3)
    decided = carried_out(under_way(site, how).submit("high", cards=2, priority=10), how)
    changed = [step for step in decided.steps if isinstance(step, Resize | Evict)]
    assert [(step.job, step.cost_ms // MINUTE) for step in changed] == [
        (stopped, 20 if stopped == "c" else 30)
    ]


def test_a_gang_that_saves_often_is_narrowed_by_restart_all_the_same() -> None:
    stop = Stop(checkpoint_ms=4 * MINUTE, restart_ms=MINUTE)
    site = WorldBuilder().node("n", 9).submit("c", [a_request(1)] * 6, minimum=2, stop=stop)
    site.submit("b", cards=3)
    decided = carried_out(under_way(site, SHRINK).submit("high", cards=2, priority=10), SHRINK)
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert (step.job, step.cost_ms // MINUTE) == ("c", 6 * (2 + 1))


def test_one_that_is_being_narrowed_is_not_looked_at_again_for_others() -> None:
    site = under_way(WorldBuilder().node("n", 8).submit("c", [a_request(1)] * 8, minimum=2), SHRINK)
    carried_out(site.submit("high", cards=4, priority=10), SHRINK)
    decided = carried_out(site.submit("higher", cards=6, priority=20), SHRINK)
    assert not [step for step in decided.steps if isinstance(step, Resize)]
    carried_out(site.ended("c", Outcome.LOST), SHRINK)
    assert sorted(site.holding) == ["c", "high"]


def test_a_width_that_would_not_fit_beside_what_is_kept_is_refused() -> None:
    site = growing().submit("f", cards=1)
    held = site.job("e").resizing
    assert isinstance(held, Resizing)
    site.check(Place(site.job("f").job.id, 1, (site.grant("e").placement,)))
    assert len(site.verdict.refused) == 1
    fresh = tuple(card for card in held.placements[0].cards if card not in cards(site, "e"))
    there = replace(site.grant("e").placement, cards=fresh[:1], cpu=0, host=0)
    site.check(Place(site.job("f").job.id, 1, (there,)))
    assert "kept for job e" in site.verdict.refused[0].reason


def test_a_job_that_may_not_be_stopped_for_others_still_grows() -> None:
    site = WorldBuilder().node("n", 8).submit("r", cards=6)
    site.submit("e", cards=8, elastic=LINEAR, stop=Stop(preemptible=False))
    carried_out(under_way(site).ended("r"), HOW)
    assert site.phase("e") is Phase.STOPPING
