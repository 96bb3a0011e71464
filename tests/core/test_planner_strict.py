"""Strict queues: nothing passes the first, whatever short cuts a pass takes, however others are ordered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from aliquot.config import BUILTIN
from aliquot.core.ids import JobId
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queues import CARDS, Discipline, Queue, Quota
from aliquot.core.settings import Backfill, Order, Settings, SpotCap
from aliquot.core.steps import Gate
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

HOUR, MINUTE = 3_600_000, 60_000
STRICT = Queue("s", discipline=Discipline.STRICT)
BEST = Queue("b", discipline=Discipline.BEST_EFFORT)


def how(**more: Any) -> Settings:
    """A strict queue beside one that is not."""
    return settings(queues=(STRICT, BEST), **more)


def nearly_full(rules: Settings, priority: int = 0) -> WorldBuilder:
    """Two nodes with one card left on each, and five wait: the first of `s` fits nowhere, the next does."""
    site = WorldBuilder().nodes(2, 8)
    for name in ("fill0", "fill1"):
        site.submit(name, queue="b", cards=7, estimate_ms=HOUR)
    carried_out(site, rules)
    site.started("fill0").started("fill1")
    for at in range(3):
        site.submit(f"b{at}", queue="b", cards=4, estimate_ms=HOUR, priority=priority)
        site.later(MINUTE)
    site.submit("s1", queue="s", cards=4, estimate_ms=HOUR).later(MINUTE)
    return site.submit("s2", queue="s", cards=1, estimate_ms=HOUR).later(MINUTE)


@pytest.mark.parametrize("policy", [name for name, _ in BUILTIN])
def test_under_no_policy_a_small_job_passes_the_first_of_its_strict_queue(policy: str) -> None:
    """Jobs like the first were refused before it was looked at, and need no turn of their own."""
    rules = replace(dict(BUILTIN)[policy], engine="python", queues=(STRICT, BEST))
    site = nearly_full(rules)
    assert "s2" not in nodes_of(planned(site, rules))
    wait = explain_wait(site.frozen, rules, JobId("s2"), Memo(), site.at)
    assert wait.gate is Gate.ORDER


def test_the_first_of_a_strict_queue_holds_its_nominal_though_one_like_it_was_refused_before() -> None:
    rules = settings(
        queues=(Queue("s", quotas=(Quota(CARDS, 4000),), discipline=Discipline.STRICT), BEST),
        order=Order(half_life_ms=0),
    )
    site = nearly_full(rules)
    assert nodes_of(planned(site, rules)) == {}


def test_a_job_like_the_first_that_is_dropped_closes_no_strict_queue_and_opens_none() -> None:
    """Once reservations are out those like a hopeless job need no turn: the first of a strict queue does."""
    rules = how(backfill=Backfill(reservations=1, by_size=False))
    site = nearly_full(rules, priority=5)
    decided = planned(site, rules)
    assert (nodes_of(decided), gates(decided)["s1"]) == ({}, Gate.FIT)


@pytest.mark.parametrize("rules", [how(order=Order(by_size=True)), how(backfill=Backfill())])
def test_a_strict_queue_is_first_come_first_served_whatever_size_counts_elsewhere(rules: Settings) -> None:
    site = WorldBuilder().node("n", 1)
    site.submit("long", queue="s", estimate_ms=9 * HOUR).later(1).submit("short", queue="s", estimate_ms=HOUR)
    assert list(nodes_of(planned(site, rules))) == ["long"]


def test_and_whoever_of_it_is_overdue_first() -> None:
    """A wide job is overdue sooner than a narrow one that came before it."""
    rules = how(backfill=Backfill(overdue_wide_ms=HOUR, wide_cards=2))
    site = WorldBuilder().node("n", 2).submit("narrow", queue="s", estimate_ms=HOUR).later(MINUTE)
    site.submit("wide", queue="s", cards=2, estimate_ms=HOUR).later(2 * HOUR)
    decided = planned(site, rules)
    assert (list(nodes_of(decided)), gates(decided)) == (["narrow"], {"wide": Gate.FIT})


def test_priority_still_counts_in_a_strict_queue() -> None:
    site = WorldBuilder().node("n", 1).submit("old", queue="s").later(1).submit("high", queue="s", priority=9)
    assert list(nodes_of(planned(site, how()))) == ["high"]


def test_spot_work_waits_behind_spot_work_that_its_cap_holds_back() -> None:
    rules = how(spot_cap=SpotCap())
    site = WorldBuilder().node("n", 8)
    site.submit("own", queue="b", cards=5).submit("wide", queue="s", cards=4, spot=True)
    site.submit("small", queue="s", cards=1, spot=True)
    decided = planned(site, rules)
    assert (list(nodes_of(decided)), gates(decided)["wide"]) == (["own"], Gate.SPOT)


def test_a_job_behind_the_first_is_told_so_though_the_site_is_full_too() -> None:
    site = WorldBuilder().node("n", 1).submit("runs", queue="b")
    carried_out(site, how())
    site.submit("first", queue="s").submit("next", queue="s")
    told = [explain_wait(site.frozen, how(), JobId(name), Memo(), site.at).gate for name in ("first", "next")]
    assert told == [Gate.FIT, Gate.ORDER]


def test_the_first_of_a_strict_queue_holds_what_its_nominal_covers_while_it_fits_nowhere() -> None:
    """s is promised six of eight cards and has none; b, promised two, has six. Two come free, too few for s.

    Lent again to b each time that happens, s would never have them.
    """
    owner = Queue("s", quotas=(Quota(CARDS, 6000),), discipline=Discipline.STRICT)
    rules = settings(queues=(owner, Queue("b", quotas=(Quota(CARDS, 2000),))), order=Order(half_life_ms=0))
    site = WorldBuilder().node("n", 8)
    for at in range(4):
        site.submit(f"b{at}", queue="b", cards=2)
    carried_out(site, rules)
    site.submit("own", queue="s", cards=6).submit("more", queue="b", cards=2)
    for at in range(3):
        assert nodes_of(carried_out(site.ended(f"b{at}"), rules)) == ({} if at < 2 else {"own": ["n"]})
