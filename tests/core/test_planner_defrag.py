"""Defragmentation in the planner: moves only for a named job, within a budget, and in an order that works."""

from __future__ import annotations

import pytest

from aliquot.core.settings import Defrag
from aliquot.core.steps import Move, Place
from tests.support.build import a_node, a_placement
from tests.support.planning import carried_out, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000


def how(**rules: int) -> Defrag:
    """Moves at once, unless said otherwise."""
    return Defrag(**{"after_ms": 0, "pause_ms": 0, **rules})


def spread_out(movable: bool = True) -> WorldBuilder:
    """One card is busy on each of three nodes of 2."""
    site = WorldBuilder()
    for at in range(3):
        node = a_node(f"n{at}", 2)
        site.node(node).submit(f"r{at}", movable=movable).granted(f"r{at}", a_placement(node, [0]))
        site.started(f"r{at}")
    return site


def test_the_story_is_what_it_says() -> None:
    site = spread_out()
    assert sorted(site.grant(f"r{at}").placement.node.name for at in range(3)) == ["n0", "n1", "n2"]
    assert site.free_cards == 3


def test_a_wide_job_gets_a_node_cleared_into_nodes_in_use() -> None:
    site = spread_out().submit("wide", cards=2)
    decided = carried_out(site, settings(defrag=how()))
    assert [type(step) for step in decided.steps] == [Move, Place]
    (move,) = [step for step in decided.steps if isinstance(step, Move)]
    assert move.for_job == "wide"
    assert "wide" in nodes_of(decided)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(how(moves_an_hour=0), id="no-budget"),
        pytest.param(how(after_ms=1), id="not-waited-yet"),
        pytest.param(how(pause_ms=1), id="costs-more-than-the-wait"),
        pytest.param(None, id="not-asked-for"),
    ],
)
def test_nothing_moves_where_it_may_not_or_does_not_pay(rules: Defrag | None) -> None:
    site = spread_out().submit("wide", cards=2)
    assert not [step for step in planned(site, settings(defrag=rules)).steps if isinstance(step, Move)]


def test_what_is_not_movable_stays() -> None:
    site = spread_out(movable=False).submit("wide", cards=2)
    assert not [step for step in planned(site, settings(defrag=how())).steps if isinstance(step, Move)]


def test_no_more_than_the_budget_in_an_hour() -> None:
    rules = settings(defrag=how(moves_an_hour=1))
    site = spread_out().submit("wide", cards=2)
    carried_out(site, rules)
    site.started("wide").later(MINUTE).ended("wide")
    for at in range(3):
        site.started(f"r{at}")
    site.submit("again", cards=2)
    first = [step for step in planned(site, rules).steps if isinstance(step, Move)]
    assert first == []


def test_nothing_blocked_and_nothing_moves() -> None:
    site = spread_out()
    assert planned(site, settings(defrag=how())).steps == ()
