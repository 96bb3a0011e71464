"""The world as the fold of events: its queue, what it owes the engine, and what it does not listen to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aliquot.core.errors import BrokenInvariantError
from aliquot.core.events import JobSubmitted, Outcome
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Kill, Move, Start
from tests.support.build import a_job, a_node, a_placement
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder

Story = Callable[[WorldBuilder], object]


# --- the queue, and what is owed to the engine -------------------------------------------------------


def test_the_queue_is_by_priority_then_time_then_acceptance_then_id() -> None:
    site = WorldBuilder()
    jobs = [
        a_job("late", at=9),
        a_job("second", at=5, seq=2),
        a_job("first", at=5, seq=1),
        a_job("b", at=7, seq=3),
        a_job("a", at=7, seq=3),
        a_job("urgent", at=99, priority=1),
    ]
    site.happen(*(JobSubmitted(job.submitted_ms, job) for job in jobs))
    assert site.waiting == ["urgent", "first", "second", "a", "b", "late"]


def test_a_job_that_comes_back_takes_its_old_place_in_the_queue() -> None:
    site = WorldBuilder().node("n", 1).submit("old").placed().later(10).submit("young").refused("old")
    assert site.waiting == ["old", "young"]


def test_owed_steps_are_told_until_they_are_answered_and_only_then_not() -> None:
    site = WorldBuilder().node("n", 2).node("m", 2).submit("a").submit("b").placed()
    there = a_placement(a_node("n", 2), [0])
    start_a, start_b = (Start(JobId(job), 1, (site.grant(job).placement,)) for job in ("a", "b"))
    assert start_a.placements == (there,)
    assert site.world.outstanding() == [start_a, start_b]
    assert site.started("a").world.outstanding() == [start_b]
    elsewhere = a_placement(a_node("m", 2), [1])
    site.moved("a", elsewhere)
    assert site.world.outstanding() == [start_b, Move(JobId("a"), 1, 0, elsewhere)]
    site.started("a").cancel("b")
    assert site.world.outstanding() == [Kill(JobId("b"), 1)]
    site.ended("b", Outcome.FAILED)
    assert site.world.outstanding() == []


def test_a_move_of_a_later_attempt_is_not_confirmed_by_late_news_of_an_earlier() -> None:
    site = WorldBuilder().node("n", 2).submit("a").placed().refused("a").later(1_000).placed().started("a")
    site.moved("a", a_placement(a_node("n", 2), [1]))
    assert len(site.started("a", attempt=1).world.outstanding()) == 1
    assert site.started("a", attempt=2).world.outstanding() == []


def test_a_move_told_twice_is_one_move() -> None:
    site = WorldBuilder().node("n", 2).submit("a").placed().started("a")
    site.moved("a", a_placement(a_node("n", 2), [1]))
    before = site.frozen
    site.happen(site.moved_events()[0])
    assert same_world(before, site.frozen)


def test_a_job_given_up_before_it_started_is_killed_not_started() -> None:
    """The start may be under way: only the engine's answer frees the cards."""
    site = WorldBuilder().node("n", 1).submit("j").placed().cancel("j")
    assert site.world.outstanding() == [Kill(JobId("j"), 1)]
    assert site.started("j", attempt=1).free_cards == 0
    assert site.ended("j", Outcome.FAILED).free_cards == 1


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda site: site.lose("nowhere"), id="a node nobody knows is lost"),
        pytest.param(lambda site: site.drain("nowhere"), id="or drained"),
        pytest.param(lambda site: site.faulty("nowhere", "x"), id="or faulty"),
        pytest.param(lambda site: site.cancel("nobody"), id="a job nobody knows is given up"),
        pytest.param(lambda site: site.started("nobody", 1).stopping("nobody", 1), id="or runs"),
        pytest.param(lambda site: site.ended("nobody", attempt=1).refused("nobody", 1), id="or ends"),
        pytest.param(lambda site: site.ended("j", attempt=2), id="an attempt to come ends"),
        pytest.param(lambda site: site.ended("j", attempt=0), id="an attempt of long ago ends"),
    ],
)
def test_news_of_what_is_not_there_changes_nothing(happens: Story) -> None:
    site = WorldBuilder().node("n", 1).submit("j").placed()
    before = site.frozen
    happens(site)
    assert same_world(before, site.frozen)
    assert site.frozen.version > before.version


def test_a_snapshot_does_not_change_with_the_world() -> None:
    site = WorldBuilder().nodes(2, cards=2).submit("j").placed()
    seen, again = site.frozen, site.frozen
    site.started("j").submit("k", cards=2).placed().lose("n0").node("wide", 16).ended("k")
    assert same_world(seen, again)
    assert seen.cards == 2
    assert [key[-1] for key in seen.pending] == []
    assert seen.jobs[JobId("j")].phase is Phase.STARTING


def test_two_sites_may_both_have_a_node_of_one_name() -> None:
    site = WorldBuilder().node("n", 1, site="east").node("n", ["w-g0"], site="west")
    assert len(site.frozen.node_at) == 2
    assert site.free_cards == 2


def test_a_machine_of_more_cards_than_there_are_columns_is_refused() -> None:
    with pytest.raises(BrokenInvariantError, match="17 cards; at most 16"):
        WorldBuilder().node("n", 17)
