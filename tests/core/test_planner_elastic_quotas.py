"""Elastic jobs under quotas: how wide they start, how far they grow, and what is taken back first."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.events import Outcome
from aliquot.core.jobs import Elastic
from aliquot.core.lifecycle import Phase
from aliquot.core.queues import CARDS, Discipline, Queue, Quota
from aliquot.core.settings import ElasticRules, Order, Preemption, Settings
from aliquot.core.steps import Evict, Gate, Resize, Wait
from tests.support.build import a_node, a_placement
from tests.support.planning import carried_out, gates, nodes_of, planned, ran, settings, width
from tests.support.worlds import WorldBuilder

LINEAR = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
PAIRS = Elastic((2, 4, 6, 8), (1000, 2000, 3000, 4000))
MINUTE = 60_000


def cards(name: str, nominal: int | None = None, **more: int) -> Queue:
    """A queue with a quota of whole cards."""
    limits = {limit: 1000 * amount for limit, amount in more.items()}
    return Queue(name, quotas=(Quota(CARDS, None if nominal is None else 1000 * nominal, **limits),))


def ruled(*queues: Queue, **more: object) -> Settings:
    """Elastic jobs in these queues, with no memory of the past."""
    return settings(elastic=ElasticRules(dwell_ms=0), queues=queues, order=Order(half_life_ms=0), **more)


# --- the start ----------------------------------------------------------------------------------------

LIMITS = [
    pytest.param(cards("q", 2, maximum=4), 4, id="its hard maximum"),
    pytest.param(cards("q", 2, borrowing=2), 4, id="what it may borrow"),
    pytest.param(cards("q", 1, borrowing=2), 2, id="the widest width within that"),
    pytest.param(cards("q", 4, borrowing=0), 4, id="its nominal"),
    pytest.param(cards("q", 2), 8, id="all there is, where nobody else wants it"),
]


@pytest.mark.parametrize("asked", [2, 8])
@pytest.mark.parametrize(("queue", "expected"), LIMITS)
def test_a_job_starts_as_wide_as_its_queue_may_take(queue: Queue, expected: int, asked: int) -> None:
    how = ruled(queue, cards("other", 4))
    site = WorldBuilder().node("n", 8).submit("e", cards=asked, elastic=LINEAR, queue="q")
    carried_out(site, how)
    assert width(site, "e") == expected


def test_what_it_asks_is_no_reason_to_wait_where_it_may_run_narrower() -> None:
    how = ruled(cards("q", 4, borrowing=0), cards("other", 4))
    site = ran(WorldBuilder().node("n", 8).submit("r", cards=3, queue="q"), how)
    carried_out(site.submit("e", cards=8, elastic=LINEAR, queue="q"), how)
    assert width(site, "e") == 1


def test_where_not_even_its_narrowest_is_left_it_says_so() -> None:
    how = ruled(cards("q", 3, borrowing=0), cards("other", 4))
    site = ran(WorldBuilder().node("n", 8).submit("r", cards=2, queue="q"), how)
    decided = carried_out(site.submit("e", cards=8, elastic=PAIRS, queue="q"), how)
    (wait,) = [step for step in decided.steps if isinstance(step, Wait)]
    assert wait.gate is Gate.QUOTA
    assert wait.lack is not None
    assert (wait.lack.need, wait.lack.have) == (2000, 1000)


def test_what_it_takes_at_its_start_is_gone_for_those_behind_it_in_the_same_plan() -> None:
    how = ruled(cards("q", 8, borrowing=0), cards("other", 8))
    site = WorldBuilder().nodes(2, 8)
    site.submit("e", cards=8, elastic=LINEAR, queue="q").submit("r", cards=4, queue="q")
    assert gates(carried_out(site, how)) == {"r": Gate.QUOTA}
    assert width(site, "e") == 8


# --- growth -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("queue", "expected"), LIMITS)
def test_a_job_grows_no_further_than_its_queue_may_take(queue: Queue, expected: int) -> None:
    how = ruled(queue, cards("other", 4))
    site = WorldBuilder().node("n", 8).submit("r", cards=7, queue="other")
    ran(site, how).submit("e", cards=8, elastic=LINEAR, queue="q")
    ran(site, how).ended("r")
    assert width(site, "e") == 1
    carried_out(site, how)
    assert width(site, "e") == expected


@pytest.mark.parametrize("discipline", [Discipline.BEST_EFFORT, Discipline.STRICT])
@pytest.mark.parametrize(("waits", "expected"), [(True, 2), pytest.param(False, 4, id="nobody wants it")])
def test_nobody_grows_into_what_another_waits_for_within_its_nominal(
    waits: bool, expected: int, discipline: Discipline
) -> None:
    """Two cards are free on each of two nodes, and b has its four: the next two are a's, which wants four."""
    how = ruled(replace(cards("a", 4), discipline=discipline), cards("b", 4))
    node = a_node("m", 4)
    site = WorldBuilder().node("n", 4).node(node).submit("r", cards=2, queue="b")
    ran(site, how).submit("e", cards=4, elastic=Elastic((2, 4), (1000, 2000)), queue="b")
    site.granted("e", a_placement(node, [0, 1])).started("e").later(10 * MINUTE)
    if waits:
        site.submit("own", cards=4, queue="a")
    carried_out(site, how)
    assert width(site, "e") == expected


def test_two_in_one_queue_share_what_is_left_of_it() -> None:
    how = ruled(cards("q", 6, borrowing=0), cards("other", 10))
    site = WorldBuilder().nodes(2, 8).submit("r", cards=8, queue="other").submit("s", cards=6, queue="other")
    ran(site, how)
    site.submit("e", cards=8, elastic=PAIRS, queue="q")
    ran(site, how).ended("r")
    carried_out(site.submit("f", cards=8, elastic=PAIRS, queue="q"), how)
    site.started("f").later(10 * MINUTE).ended("s")
    carried_out(site, how)
    assert width(site, "e") + width(site, "f") == 6


POOR = Elastic((2, 6), (1000, 1010))


def wide_and_narrow(wide: str, narrow: str) -> WorldBuilder:
    """Of sixteen cards `w` holds six that it hardly uses, and `l` two; it would run faster on more."""
    node = a_node("n", 8)
    site = WorldBuilder().node(node).node("m", 8)
    site.submit("w", cards=6, elastic=POOR, queue=wide).granted("w", a_placement(node, range(6))).started("w")
    site.submit("l", cards=8, elastic=PAIRS, queue=narrow).granted("l", a_placement(node, [6, 7])).started(
        "l"
    )
    return site.later(10 * MINUTE)


@pytest.mark.parametrize("in_place", [True, False])
def test_in_a_full_queue_one_grows_by_what_another_gives_up(in_place: bool) -> None:
    how = ruled(cards("q", 8, borrowing=0), cards("other", 8), resizes_in_place=in_place)
    site = wide_and_narrow("q", "q")
    carried_out(site, how)
    if in_place:
        assert (width(site, "w"), width(site, "l")) == (2, 6)
        return
    assert [site.phase("w"), site.phase("l")] == [Phase.STOPPING, Phase.RUNNING], "the first gives up"
    carried_out(site.ended("w", Outcome.LOST), how)
    assert width(site, "w") == 2
    carried_out(site.started("w").later(MINUTE), how)
    carried_out(site.ended("l", Outcome.LOST), how)
    assert width(site, "l") == 6, "the second grows once it is free"


@pytest.mark.parametrize(
    ("nominal", "expected"),
    [
        pytest.param(2, (2, 6), id="what it has borrowed is shared out among all"),
        pytest.param(6, (6, 2), id="its own it keeps, however little it makes of it"),
    ],
)
def test_an_elastic_job_gives_to_another_queue_only_what_it_has_borrowed(
    nominal: int, expected: tuple[int, int]
) -> None:
    how = ruled(cards("a", nominal), cards("b", 8 - nominal, maximum=6), cards("rest", 8, lending=0))
    site = wide_and_narrow("a", "b")
    carried_out(site, how)
    assert (width(site, "w"), width(site, "l")) == expected


# --- what is taken back -------------------------------------------------------------------------------


def test_what_an_elastic_job_grew_by_is_taken_back_before_anybody_is_stopped() -> None:
    how = ruled(cards("a", 4), cards("b", 4), preemption=Preemption(least_run_ms=0))
    site = WorldBuilder().node("n", 8).submit("p", cards=2, queue="b").submit("w", cards=4, queue="a")
    ran(site, how).submit("e", cards=8, elastic=PAIRS, queue="b")
    ran(site, how).ended("w")
    carried_out(site, how)
    assert width(site, "e") == 6, "it has grown into what a does not use"
    site.later(10 * MINUTE).submit("own", cards=4, queue="a")
    decided = carried_out(site, how)
    assert not [step for step in decided.steps if isinstance(step, Evict)]
    assert (width(site, "e"), nodes_of(decided)) == (2, {"own": ["n"]})


def test_without_rules_of_elasticity_reclaim_takes_it_back_as_the_cheapest() -> None:
    """Stopping p loses 20 card-min, stopping e all it did; narrower it loses nothing but its restart."""
    how = ruled(cards("a", 4), cards("b", 4), preemption=Preemption(least_run_ms=0))
    site = WorldBuilder().node("n", 8).submit("p", cards=2, queue="b").submit("w", cards=4, queue="a")
    ran(site, how).submit("e", cards=8, elastic=PAIRS, queue="b")
    ran(site, how).ended("w")
    carried_out(site, how)
    site.later(10 * MINUTE).submit("own", cards=4, queue="a")
    decided = planned(site, replace(how, elastic=None))
    assert not [step for step in decided.steps if isinstance(step, Evict)]
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert (step.job, step.for_job, step.was, step.width) == ("e", "own", 6, 2)


def test_what_is_within_the_nominal_is_not_taken_back() -> None:
    how = ruled(cards("a", 4), cards("b", 4), preemption=Preemption(least_run_ms=0))
    site = WorldBuilder().node("n", 8).submit("w", cards=4, queue="a")
    ran(site, how).submit("e", cards=4, elastic=PAIRS, queue="b")
    ran(site, how).submit("more", cards=2, queue="a")
    decided = carried_out(site, how)
    assert not [step for step in decided.steps if isinstance(step, Evict | Resize)]
    assert width(site, "e") == 4


# --- by restart ---------------------------------------------------------------------------------------


def test_by_restart_too_nobody_grows_beyond_his_queue() -> None:
    how = ruled(cards("q", 2, maximum=4), cards("other", 4), resizes_in_place=False)
    site = WorldBuilder().node("n", 8).submit("r", cards=7, queue="other")
    ran(site, how).submit("e", cards=8, elastic=LINEAR, queue="q")
    ran(site, how).ended("r")
    carried_out(site, how)
    carried_out(site.ended("e", Outcome.LOST), how)
    assert width(site, "e") == 4
