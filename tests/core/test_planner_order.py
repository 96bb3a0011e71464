"""Who goes next, in the planner: aging, past use, a pool that lost nodes, quotas that never suffice."""

from __future__ import annotations

import pytest

from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Order, Settings
from aliquot.core.steps import Gate, Lack, Wait
from aliquot.core.world import World
from tests.support.planning import carried_out, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE


def cards(name: str, nominal: int | None = None, **more: int) -> Queue:
    """A queue with a quota of whole cards."""
    limits = {limit: 1000 * amount for limit, amount in more.items()}
    return Queue(name, quotas=(Quota(CARDS, None if nominal is None else 1000 * nominal, **limits),))


def site_with_a_past() -> WorldBuilder:
    site = WorldBuilder()
    site.world = World(half_life_ms=HOUR)
    return site


# --- aging --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waited", "first"), [pytest.param(5 * HOUR - 1, "new", id="a moment early"), (5 * HOUR, "old")]
)
def test_a_long_waiter_goes_before_a_newer_job_once_it_has_aged_up_to_it(waited: int, first: str) -> None:
    """Five points apart at a point an hour: after five hours both have 5, and the older goes first."""
    how = settings(order=Order(aging_ms=HOUR, aging_ceiling=5, half_life_ms=0), queues=(Queue("q"),))
    site = WorldBuilder().node("n", 1).submit("busy", queue="q")
    carried_out(site, how)
    site.submit("old", queue="q", priority=0)
    site.later(waited).submit("new", queue="q", priority=5)
    site.started("busy").ended("busy")
    assert list(nodes_of(carried_out(site, how))) == [first]


def test_without_aging_a_higher_priority_always_goes_first() -> None:
    how = settings(order=Order(half_life_ms=0), queues=(Queue("q"),))
    site = WorldBuilder().node("n", 1).submit("old", queue="q").later(1000 * HOUR)
    site.submit("new", queue="q", priority=1)
    assert list(nodes_of(carried_out(site, how))) == ["new"]


# --- the past -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("half_life", "first"), [(HOUR, "b1"), pytest.param(0, "a1", id="no memory of it")])
def test_the_queue_that_used_less_goes_first(half_life: int, first: str) -> None:
    how = settings(order=Order(half_life_ms=half_life), queues=(Queue("a"), Queue("b")))
    site = site_with_a_past().node("n", 2)
    site.submit("a0", queue="a", cards=2)
    carried_out(site, how)
    site.started("a0").later(HOUR).submit("a1", queue="a", cards=2).submit("b1", queue="b", cards=2)
    site.ended("a0")
    assert list(nodes_of(carried_out(site, how))) == [first]


def test_what_was_used_long_ago_is_forgotten_by_half_and_half_again() -> None:
    """a had 4 cards for an hour (2), six half-lives ago (2/64); b had 1 for an hour until now (1/2)."""
    how = settings(order=Order(half_life_ms=HOUR), queues=(Queue("a"), Queue("b")))
    site = site_with_a_past().node("n", 4).submit("a0", queue="a", cards=4)
    carried_out(site, how)
    site.started("a0").later(HOUR).ended("a0").later(5 * HOUR).submit("b0", queue="b")
    carried_out(site, how)
    site.started("b0").later(HOUR).ended("b0")
    site.submit("b1", queue="b", cards=4).submit("a1", queue="a", cards=4)
    assert list(nodes_of(carried_out(site, how))) == ["a1"]


# --- a pool that lost nodes ---------------------------------------------------------------------------


def placed_by_queue(site: WorldBuilder, how: Settings) -> dict[str, int]:
    found: dict[str, int] = {}
    for job in nodes_of(planned(site, how)):
        found[job[0]] = found.get(job[0], 0) + 1
    return found


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param({"a": 8, "b": 8}, {"a": 4, "b": 4}, id="whole"),
        pytest.param({"a/1": 4, "a/2": 4, "b": 8}, {"a": 4, "b": 4}, id="cut in two below it"),
        pytest.param({"a": 4, "c": 4, "b": 8}, {"a": 2, "c": 2, "b": 4}, id="cut in two"),
        pytest.param({"a": 12, "b": 4}, {"a": 6, "b": 2}, id="unequal"),
    ],
)
def test_half_the_cards_are_half_of_every_nominal(queues: dict[str, int], expected: dict[str, int]) -> None:
    how = settings(order=Order(half_life_ms=0), queues=tuple(cards(*queue) for queue in queues.items()))
    site = WorldBuilder().node("n", 8)
    for name in queues:
        for at in range(8):
            site.submit(f"{name}-{at}", queue=name)
    assert placed_by_queue(site, how) == expected


# --- quotas that can never be met ---------------------------------------------------------------------


def lack_of(site: WorldBuilder, how: Settings) -> Lack | None:
    (wait,) = [step for step in planned(site, how).steps if isinstance(step, Wait)]
    assert wait.gate is Gate.QUOTA
    return wait.lack


@pytest.mark.parametrize(
    ("queues", "asked", "queue", "most"),
    [
        pytest.param([cards("a", maximum=2)], 3, "a", 2, id="a maximum"),
        pytest.param([cards("a", maximum=0)], 1, "a", 0, id="a maximum of 0"),
        pytest.param([cards("a", borrowing=2)], 3, "a", 2, id="a borrowing limit"),
        pytest.param([cards("a", 0), cards("b", 16, lending=0)], 1, "", 0, id="nobody lends"),
        pytest.param([cards("", 4), cards("a")], 5, "", 4, id="a nominal of the pool"),
    ],
)
def test_a_job_that_its_quota_can_never_hold_is_told_the_most_there_is(
    queues: list[Queue], asked: int, queue: str, most: int
) -> None:
    site = WorldBuilder().node("n0", 8).node("n1", 8).submit("j", queue="a", cards=asked)
    lack = lack_of(site, settings(order=Order(half_life_ms=0), queues=tuple(queues)))
    assert lack is not None
    assert (lack.queue, lack.need, lack.most) == (queue, 1000 * asked, 1000 * most)


def test_one_that_may_still_get_it_is_not_told_never() -> None:
    site = WorldBuilder().node("n0", 8).submit("first", queue="a", cards=2)
    how = settings(order=Order(half_life_ms=0), queues=(cards("a", maximum=2),))
    carried_out(site, how)
    lack = lack_of(site.submit("next", queue="a"), how)
    assert lack is not None
    assert (lack.have, lack.most) == (0, None)


def test_what_a_pool_that_lost_nodes_cannot_give_now_is_not_called_never() -> None:
    site = WorldBuilder().node("n0", 8).submit("j", queue="a", cards=4)
    how = settings(order=Order(half_life_ms=0), queues=(cards("a", 8), cards("b", 8, lending=0)))
    lack = lack_of(site, how)
    assert lack is not None
    assert lack.most is None
