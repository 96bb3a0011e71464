"""Gangs that are to be spread and change their width: they grow where fewest are, and give up the crowded."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.domains import Split
from aliquot.core.grants import Seat
from aliquot.core.jobs import Elastic
from aliquot.core.memo import Memo
from aliquot.core.settings import ElasticRules, Preemption
from aliquot.core.siting import Desk
from aliquot.core.slices import Vector
from aliquot.core.spreading import Kin, keep_order
from aliquot.core.steps import Resize
from aliquot.core.wishes import Level
from tests.support.build import a_node, a_placement, a_request
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder, racks

HOW = settings("best-fit", elastic=ElasticRules(dwell_ms=0, change_milli=0))


def as_wide(*widths: int) -> Elastic:
    """As fast as it is wide."""
    return Elastic(widths, tuple(1000 * width // widths[0] for width in widths))


def runs(site: WorldBuilder, name: str, where: list[str], asked: int, cards: int = 8, **job: Any) -> None:
    """`name`, of `asked` members of a card each, runs with as many as there are names in `where`."""
    site.submit(name, [a_request(1)] * asked, spread=True, **job)
    used = Counter(
        str(grant.placement.node.name) for grants in site.world.grants.values() for grant in grants
    )
    seats = []
    for node in where:
        seats.append(a_placement(a_node(node, cards), [used[node]]))
        used[node] += 1
    site.granted(name, *seats).started(name)


def by_node(site: WorldBuilder, name: str) -> dict[str, int]:
    """Members of a job."""
    grants = site.world.grants[site.job(name).job.id]
    return dict(sorted(Counter(str(grant.placement.node.name) for grant in grants).items()))


@pytest.mark.parametrize(
    ("where", "wide", "expected"),
    [
        pytest.param(["r0-0"], 3, {"r0-0": 1, "r1-0": 1, "r2-0": 1}, id="a rack each"),
        pytest.param(["r0-0", "r1-0", "r2-0"], 9, {"r0-0": 3, "r1-0": 3, "r2-0": 3}, id="balanced rounds"),
        pytest.param(["r0-0", "r0-0", "r0-0"], 6, {"r0-0": 3, "r1-0": 2, "r2-0": 1}, id="the poor first"),
    ],
)
def test_it_grows_where_fewest_of_its_members_are(
    where: list[str], wide: int, expected: dict[str, int]
) -> None:
    site = racks(1, 1, 1)
    runs(site, "s", where, wide, elastic=as_wide(len(where), wide))
    carried_out(site.later(60_000), HOW)
    assert by_node(site, "s") == expected


def test_of_nodes_that_hold_equally_few_it_grows_where_fewest_of_its_copies_are() -> None:
    site = racks(1, 1, 1)
    runs(site, "copy", ["r1-0"], 1, replica_of="s")
    runs(site, "s", ["r0-0"], 2, replica_of="s", elastic=as_wide(1, 2))
    carried_out(site.later(60_000), HOW)
    assert by_node(site, "s") == {"r0-0": 1, "r2-0": 1}


def test_copies_that_grow_in_one_plan_keep_apart_too() -> None:
    """Each has a member on r0; the first goes to r1, so the second goes to r2."""
    site = racks(1, 1, 1)
    for name in ("s1", "s2"):
        runs(site, name, ["r0-0"], 2, replica_of="s", elastic=as_wide(1, 2))
    carried_out(site.later(60_000), HOW)
    assert (by_node(site, "s1"), by_node(site, "s2")) == ({"r0-0": 1, "r1-0": 1}, {"r0-0": 1, "r2-0": 1})


TWO_EACH = ["r0-0", "r0-0", "r1-0", "r1-0", "r2-0", "r2-0"]


def full(**job: Any) -> WorldBuilder:
    """Three racks of a node of two cards, all of which `s` has; somebody wants three."""
    site = racks(1, 1, 1, cards=2)
    runs(site, "s", TWO_EACH, 6, cards=2, **job)
    return site.later(60_000).submit("new", [a_request(1)] * 3, priority=10)


def test_it_gives_way_from_where_most_of_its_members_are() -> None:
    site = full(elastic=Elastic((3, 6), (1000, 1001)))
    decided = carried_out(site, HOW)
    assert [step.job for step in decided.steps if isinstance(step, Resize)] == ["s"]
    assert by_node(site, "s") == {"r0-0": 1, "r1-0": 1, "r2-0": 1}


def test_a_gang_with_a_minimum_loses_those_that_are_crowded_most() -> None:
    site = full(minimum=3)
    decided = carried_out(site, settings(preemption=Preemption(shrink=True)))
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert sorted(place.node.name for place in step.placements) == ["r0-0", "r1-0", "r2-0"]


def test_where_members_differ_the_last_go_as_ever() -> None:
    site = racks(1, 1)
    site.submit("s", [a_request(1), a_request(1), a_request(2)], spread=True, minimum=2)
    here = [
        a_placement(a_node(name), cards) for name, cards in (("r0-0", [0]), ("r0-0", [1]), ("r1-0", [0, 1]))
    ]
    site.granted("s", *here).started("s").submit("new", a_request(8), priority=10)
    decided = carried_out(site, settings(preemption=Preemption(shrink=True)))
    (step,) = [step for step in decided.steps if isinstance(step, Resize)]
    assert [place.node.name for place in step.placements] == ["r0-0", "r0-0"]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_however_many_stay_no_place_has_two_more_than_one_that_lost_some(
    sizes: list[int], data: st.DataObject
) -> None:
    site = racks(*sizes)
    split: Split = Desk(site.frozen, HOW, Memo()).split(Level.RACK)
    rows = data.draw(st.lists(st.integers(0, sum(sizes) - 1), min_size=1, max_size=9))
    own = tuple(Seat(row, 1, Vector(1000, 1, 1000), True) for row in rows)
    order = keep_order(split, Kin(own))
    assert sorted(order) == list(range(len(rows)))
    home = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    had = Counter(home[row] for row in rows)
    for count in range(len(rows)):
        kept = Counter(home[rows[at]] for at in order[:count])
        assert all(kept[rack] >= max(kept.values(), default=0) - 1 for rack in had if kept[rack] < had[rack])
