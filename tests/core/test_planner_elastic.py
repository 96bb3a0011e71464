"""Elastic jobs in the planner: the width one starts with, growing into what is free, giving way."""

from __future__ import annotations

import pytest

from aliquot.core.events import Outcome
from aliquot.core.jobs import Elastic
from aliquot.core.settings import ElasticRules, Preemption
from aliquot.core.steps import Evict, Place, Resize
from tests.support.build import a_request
from tests.support.planning import carried_out, nodes_of, planned, settings, width
from tests.support.worlds import WorldBuilder

LINEAR = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
POOR = Elastic((1, 2, 4, 8), (1000, 1500, 1600, 1650))
HOW = settings(elastic=ElasticRules(dwell_ms=0))
MINUTE = 60_000


def ran(site: WorldBuilder, *names: str) -> WorldBuilder:
    """Everybody named runs, and some time passes."""
    for name in names:
        site.started(name)
    return site.later(10 * MINUTE)


@pytest.mark.parametrize(("elastic", "cards"), [(LINEAR, 8), (POOR, 2)])
def test_a_job_starts_as_wide_as_it_uses_its_cards_well(elastic: Elastic, cards: int) -> None:
    site = WorldBuilder().node("n", 8).submit("e", cards=8, elastic=elastic, estimate_ms=MINUTE)
    carried_out(site, HOW)
    assert width(site, "e") == cards


def test_what_is_busy_narrows_the_start() -> None:
    site = WorldBuilder().node("n", 8).submit("r", cards=5).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, HOW)
    assert width(site, "e") == 2


def test_it_grows_into_what_comes_free_and_keeps_the_cards_it_has() -> None:
    site = WorldBuilder().node("n", 8).submit("r", cards=6).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, HOW)
    before = set(site.grant("e").placement.cards)
    ran(site, "r", "e").ended("r")
    decided = carried_out(site, HOW)
    assert [type(step) for step in decided.steps] == [Resize]
    assert width(site, "e") == 8
    assert before < set(site.grant("e").placement.cards)


def test_it_gives_way_to_one_that_waits_in_the_same_plan() -> None:
    site = WorldBuilder().node("n", 8).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, HOW)
    ran(site, "e").submit("r", cards=4)
    decided = carried_out(site, HOW)
    assert [type(step) for step in decided.steps if isinstance(step, (Resize, Place))] == [Resize, Place]
    assert (width(site, "e"), width(site, "r")) == (4, 4)


def test_nobody_gives_way_for_what_would_not_fit_all_the_same() -> None:
    site = WorldBuilder().node("n", 8).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, HOW)
    ran(site, "e").submit("huge", cards=9)
    carried_out(site, HOW)
    assert width(site, "e") == 8


def test_a_gang_grows_by_members_over_nodes_and_shrinks_from_its_end() -> None:
    site = WorldBuilder().nodes(2, 2)
    gang = Elastic((1, 2, 4), (1000, 2000, 4000))
    site.submit("r", cards=2).submit("g", [a_request()] * 4, elastic=gang, minimum=1)
    carried_out(site, HOW)
    assert width(site, "g") == 2
    ran(site, "r", "g").ended("r")
    carried_out(site, HOW)
    assert width(site, "g") == 4
    site.started("g").later(10 * MINUTE).submit("late", cards=2)
    carried_out(site, HOW)
    assert (width(site, "g"), nodes_of(planned(site, HOW))) == (2, {})
    assert "late" in site.holding


def test_whoever_changed_just_now_is_left_alone() -> None:
    how = settings(elastic=ElasticRules(dwell_ms=5 * MINUTE))
    site = WorldBuilder().node("n", 8).submit("r", cards=6).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, how)
    site.started("r").started("e").later(MINUTE).ended("r")
    assert planned(site, how).steps == ()
    assert [type(step) for step in planned(site.later(5 * MINUTE), how).steps] == [Resize]


def test_without_rules_an_elastic_job_keeps_its_width() -> None:
    rules = settings()
    site = WorldBuilder().node("n", 8).submit("r", cards=6).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, rules)
    ran(site, "r", "e").ended("r")
    assert planned(site, rules).steps == ()


def test_a_fixed_demand_comes_to_rest() -> None:
    site = WorldBuilder().nodes(2, 8)
    for at in range(5):
        site.submit(f"e{at}", cards=8, elastic=LINEAR if at % 2 else POOR)
    changes = []
    for _ in range(12):
        decided = carried_out(site, HOW)
        changes.append(sum(isinstance(step, Resize) for step in decided.steps))
        for name in site.holding:
            site.started(name)
        site.later(10 * MINUTE)
    assert changes[-3:] == [0, 0, 0]


def test_an_elastic_job_gives_way_before_anybody_is_stopped() -> None:
    how = settings(elastic=ElasticRules(dwell_ms=0), preemption=Preemption())
    site = WorldBuilder().node("n", 8).submit("low", cards=4).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, how)
    ran(site, "low", "e").submit("high", cards=2, priority=10)
    decided = carried_out(site, how)
    assert [type(step) for step in decided.steps] == [Resize, Place]
    assert (width(site, "e"), width(site, "high")) == (2, 2)
    ran(site, "e", "high").submit("wide", cards=4, priority=10)
    assert any(isinstance(step, Evict) for step in planned(site, how).steps)


@pytest.mark.parametrize("in_place", [True, False])
def test_it_gives_way_to_an_elastic_job_which_starts_narrower_than_it_asks(in_place: bool) -> None:
    how = settings(elastic=ElasticRules(dwell_ms=0), resizes_in_place=in_place)
    site = WorldBuilder().node("n", 8).submit("e", cards=8, elastic=LINEAR)
    carried_out(site, how)
    ran(site, "e").submit("f", cards=8, elastic=LINEAR)
    carried_out(site, how)
    if not in_place:
        carried_out(site.ended("e", Outcome.LOST), how)
    assert (width(site, "e"), width(site, "f")) == (4, 4)
