"""Reclaim where the pool gives no more: another queue keeps cards back, or the pool's nominal is short."""

from __future__ import annotations

import pytest

from aliquot.core.queues import MONEY, POOL, Queue, Quota
from aliquot.core.settings import Order, Preemption, Rates, Settings
from aliquot.core.steps import Cause, Evict, Gate
from tests.core.test_planner_preemption import evicted, full, settle
from tests.support.build import H100
from tests.support.full_sites import a_quota
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

CENTS = 100_000
RATES = Rates(cents_a_month=((H100.name, CENTS),))

KEEPS_ALL = (a_quota("a", 3), a_quota("b", 3), a_quota("lone", 2, lending=0))
KEEPS_HALF = (a_quota("a", 2), a_quota("b", 2), a_quota("serving", 4, lending=2))
POOL_OF_SIX = (a_quota(POOL, 6), a_quota("a", 3), a_quota("b", 3))
MONEY_FOR_SIX = tuple(
    Queue(name, quotas=(Quota(MONEY, nominal=cards * CENTS),))
    for name, cards in ((POOL, 6), ("a", 3), ("b", 3))
)
SHAPES = pytest.mark.parametrize(
    "queues",
    [
        pytest.param(KEEPS_ALL, id="a queue that lends nothing"),
        pytest.param(KEEPS_HALF, id="a queue that lends half"),
        pytest.param(POOL_OF_SIX, id="a pool that states fewer cards than there are"),
        pytest.param(MONEY_FOR_SIX, id="a pool that states less money than its cards cost"),
    ],
)


def how(queues: tuple[Queue, ...], **rules: bool) -> Settings:
    """Reclaim between these queues, by `rules`."""
    preemption = Preemption(grace_ms=30_000, **rules)
    return settings(queues=queues, order=Order(half_life_ms=0), rates=RATES, preemption=preemption)


def borrowed(queues: tuple[Queue, ...]) -> WorldBuilder:
    """Eight cards of which `a` runs on all that it may take, without an end."""
    site = WorldBuilder().node("n", 8)
    for at in range(8):
        site.submit(f"a{at}", queue="a")
    site = full(site, how(queues))
    assert len(site.holding) == 6, "two idle cards are not for it"
    return site


@SHAPES
def test_what_a_queue_lent_comes_back_though_cards_are_idle(queues: tuple[Queue, ...]) -> None:
    site = borrowed(queues).submit("b0", queue="b").submit("b1", queue="b")
    decided = carried_out(site, how(queues))
    stops = [step for step in decided.steps if isinstance(step, Evict)]
    assert [stop.cause for stop in stops] == [Cause.RECLAIM] * 2
    assert [gates(decided)[name] for name in ("b0", "b1")] == [Gate.RELEASE] * 2
    settle(site, how(queues), 3)
    assert {"b0", "b1"} <= set(site.holding)
    assert len(site.holding) == 6, "nobody came in on what is kept back"


@SHAPES
def test_a_wide_job_within_the_nominal_has_as_many_stopped_as_it_needs(queues: tuple[Queue, ...]) -> None:
    site = borrowed(queues).submit("wide", queue="b", cards=2)
    settle(site, how(queues), 3)
    assert "wide" in site.holding
    assert len(evicted(site)) == 2


@SHAPES
def test_nobody_who_is_within_its_own_is_stopped_for_what_the_pool_withholds(
    queues: tuple[Queue, ...],
) -> None:
    site = borrowed(queues).submit("wide", queue="b", cards=2)
    settle(site, how(queues), 3)
    before = set(site.holding)
    for at in range(4):
        site.submit(f"more{at}", queue="b")
    settle(site, how(queues), 4)
    assert sum(name.startswith("a") for name in site.holding) >= (2 if queues is KEEPS_HALF else 3)
    assert "wide" in before & set(site.holding)


@SHAPES
def test_without_reclaim_it_waits_for_quota(queues: tuple[Queue, ...]) -> None:
    site = borrowed(queues).submit("b0", queue="b")
    decided = planned(site, how(queues, reclaim=False))
    assert gates(decided)["b0"] in {Gate.QUOTA, Gate.BORROWING}
    assert not any(isinstance(step, Evict) for step in decided.steps)


def test_nobody_borrows_what_is_kept_back_while_others_make_way() -> None:
    """Who is to start counts as if it had, and who is stopped still counts: the pool only looks full."""
    for queues in (KEEPS_ALL, KEEPS_HALF, POOL_OF_SIX, MONEY_FOR_SIX):
        site = borrowed(queues).submit("b0", queue="b").submit("b1", queue="b")
        assert nodes_of(carried_out(site, how(queues))) == {}


def test_where_all_is_lent_and_in_use_it_is_a_matter_of_room() -> None:
    queues = (a_quota("a", 4), a_quota("b", 4), a_quota("lone", 0, lending=0))
    site = WorldBuilder().node("n", 8)
    for at in range(8):
        site.submit(f"a{at}", queue="a")
    site = full(site, how(queues))
    site.submit("b0", queue="b")
    assert gates(planned(site, how(queues, reclaim=False)))["b0"] is Gate.FIT
    settle(site, how(queues), 3)
    assert "b0" in site.holding


@pytest.mark.parametrize("lent", [0, 1])
def test_what_a_queue_keeps_from_its_own_department_is_not_counted_as_the_departments(lent: int) -> None:
    """`lab` is promised 4, of which `lab/y` keeps some idle: `lab/x` may hold fewer for good."""
    queues = (a_quota("lab", 4), a_quota("lab/x", 2), a_quota("lab/y", 2, lending=lent), a_quota("other", 4))
    site = WorldBuilder().nodes(2, 4)
    for at in range(8):
        site.submit(f"x{at}", queue="lab/x")
    site = full(site, how(queues))
    assert len(site.holding) == 6 + lent
    for at in range(4):
        site.submit(f"own{at}", queue="other")
    settle(site, how(queues), 6)
    assert sum(name.startswith("own") for name in site.holding) == 4
    assert sum(name.startswith("x") for name in site.holding) == 2 + lent, "no more was taken than was needed"
