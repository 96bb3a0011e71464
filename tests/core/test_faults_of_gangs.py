"""Faults that other systems had with gangs: topologies that change, gangs side by side, odd minima.

Numbers such as B05 are those of the list of faults; `test_world_faults` has those of the ledger.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from aliquot.core.grants import GrantState
from aliquot.core.jobs import Elastic
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo
from aliquot.core.queues import Queue
from aliquot.core.settings import ElasticRules, Order
from aliquot.core.steps import Gate
from aliquot.core.wishes import Level, Wish
from tests.support.build import a_node, a_request
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.same import excess
from tests.support.worlds import WorldBuilder

HOW = settings()
IN_A_RACK, IN_A_BLOCK = Wish(required=Level.RACK), Wish(required=Level.BLOCK)
FOUR = [a_request(2), a_request(2)]


def reported(site: WorldBuilder, **where: str) -> WorldBuilder:
    """Two nodes of two cards report anew, with what is known of where they stand."""
    return site.node(a_node("n0", 2, **where)).node(a_node("n1", 2, **where))


# --- a topology that is gone, or another -----------------------------------------------------------------


def test_b05_a_job_that_ends_while_its_topology_is_gone_gives_all_back() -> None:
    """B05: the racks are forgotten under a running gang, it ends, they are known again."""
    site, memo = reported(WorldBuilder(), rack="r"), Memo()
    site.submit("j1", FOUR, wish=IN_A_RACK)
    carried_out(site, HOW, memo=memo)
    site.started("j1")
    reported(site)
    assert site.states("j1") == [GrantState.RUNNING] * 2, "it is where it was"
    assert site.free_cards == 0
    site.submit("j2", FOUR, wish=IN_A_RACK)
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {}
    site.ended("j1")
    assert site.free_cards == 4
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {}, "nobody knows which rack they are in"
    reported(site, rack="r")
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {"j2": ["n0", "n1"]}


def test_b05_a_level_that_is_added_under_a_running_job_counts_what_it_uses() -> None:
    """B05's second half: blocks are made known while a gang runs in a rack; both levels count it."""
    site, memo = reported(WorldBuilder(), rack="r"), Memo()
    site.submit("j3", FOUR, wish=IN_A_RACK)
    carried_out(site, HOW, memo=memo)
    site.started("j3")
    reported(site, rack="r", block="b")
    site.node(a_node("n2", 4, rack="r2", block="b"))
    site.submit("wide", [a_request(2)] * 3, wish=IN_A_BLOCK).submit(
        "two", [a_request(2)] * 2, wish=IN_A_BLOCK
    )
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {"two": ["n2", "n2"]}
    site.started("two").ended("two").ended("j3").placed()
    assert excess(site.frozen) == {}
    assert site.holding == ["wide"]


@pytest.mark.parametrize("order", list(permutations(["end", "forget", "know", "restart"])))
def test_b05_whatever_order_topology_and_end_come_in_the_next_job_gets_the_cards(order: list[str]) -> None:
    site = reported(WorldBuilder(), rack="r").submit("j1", FOUR, wish=IN_A_RACK)
    carried_out(site, HOW)
    site.started("j1")
    for what in order:
        if what == "end":
            site.ended("j1")
        elif what == "restart":
            site.world = site.rebuilt()
        else:
            reported(site, **({"rack": "r"} if what == "know" else {}))
    reported(site, rack="r").submit("j2", FOUR, wish=IN_A_RACK)
    assert nodes_of(carried_out(site, HOW)) == {"j2": ["n0", "n1"]}
    assert site.free_cards == 0


# --- two gangs -------------------------------------------------------------------------------------------


def test_b22_two_gangs_of_a_hundred_take_turns_as_a_whole() -> None:
    """B22: in every cycle one holds a hundred nodes and the other none, whoever is looked at first."""
    site, memo = WorldBuilder().nodes(100, 1), Memo()
    how = settings(queues=(Queue("a"), Queue("b")), order=Order(half_life_ms=0))
    site.submit("g", [a_request()] * 100, queue="a").submit("h", [a_request()] * 100, queue="b")
    for holder, other in (("g", "h"), ("h", None)):
        for _ in range(3):
            carried_out(site, how, memo=memo)
            assert site.holding == [holder]
            assert len(site.world.grants[site.job(holder).job.id]) == 100
            if other is not None:
                assert gates(planned(site, how)) == {other: Gate.FIT}
        site.started(holder).ended(holder)


@tries(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=2, max_size=6), st.integers(4, 12), st.data())
def test_b22_no_gang_ever_holds_a_part(sizes: list[int], nodes: int, data: st.DataObject) -> None:
    """However they come and go, each holds all its members or none."""
    site, memo = WorldBuilder().nodes(nodes, 1), Memo()
    for at, size in enumerate(sizes):
        site.submit(f"g{at}", [a_request()] * size)
        carried_out(site, HOW, memo=memo)
        for name in list(site.holding):
            assert len(site.world.grants[site.job(name).job.id]) == len(site.job(name).job.members)
            if data.draw(st.booleans()):
                site.started(name).ended(name)
    assert sum(sizes[int(name[1:])] for name in site.holding) <= nodes


# --- a minimum -------------------------------------------------------------------------------------------


def test_b26_an_elastic_gang_starts_above_its_minimum_and_grows_when_there_is_room() -> None:
    """B26: two of six will do, there is room for three; later for all."""
    elastic = Elastic((2, 3, 4, 5, 6), (2000, 3000, 4000, 5000, 6000))
    how = settings(elastic=ElasticRules(dwell_ms=0))
    site = WorldBuilder().node("n", 6).submit("other", cards=3)
    carried_out(site, how)
    site.started("other").submit("g", [a_request()] * 6, minimum=2, elastic=elastic)
    carried_out(site, how)
    assert len(site.world.grants[site.job("g").job.id]) == 3
    site.started("g").later(600_000).ended("other")
    carried_out(site, how)
    assert len(site.world.grants[site.job("g").job.id]) == 6
    assert site.phase("g") is Phase.RUNNING


@tries(max_examples=50, deadline=None)
@given(
    st.integers(1, 6),
    st.none() | st.integers(-2, 9),
    st.integers(0, 7),
    st.none() | st.sampled_from([(1,), (1, 2), (2, 6), (9,)]),
)
def test_b26_the_core_never_raises_whatever_the_minimum_is(
    members: int, minimum: int | None, room: int, widths: tuple[int, ...] | None
) -> None:
    """B26: documents refuse nonsense with the field named; the core, given it all the same, plans on."""
    elastic = None if widths is None else Elastic(widths, tuple(1000 * width for width in widths))
    site = WorldBuilder().node("n", room) if room else WorldBuilder()
    site.submit("g", [a_request()] * members, minimum=minimum, elastic=elastic).submit("sane")
    how = settings(elastic=ElasticRules(dwell_ms=0))
    for _ in range(2):
        site.check(*planned(site, how).steps)
    held = len(site.world.grants.get(site.job("g").job.id, ())) if site.phase("g") else 0
    assert held <= room
    if minimum is None and widths is None:
        assert held in {0, members}
    if minimum is not None and minimum > members:
        assert held == 0, "a gang that cannot be whole holds nothing"
