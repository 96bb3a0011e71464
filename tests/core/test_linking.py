"""Cards by their wiring, through the planner: linked sets, uplinks that are shared, sockets, dead links."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from aliquot.core.inventory import kind_of
from aliquot.core.jobs import Link, Request
from aliquot.core.linking import Need, WiredChooser, lowest
from aliquot.core.speed import SpeedTable
from aliquot.core.steps import Gate, Place
from aliquot.core.topology.links import Link as Level
from aliquot.core.topology.wiring import Wiring, assemble, pcie, uniform, unknown
from tests.core.test_topology_sets import linked
from tests.support.build import a_node, a_request
from tests.support.planning import carried_out, gates, nodes_of, placements, planned, settings
from tests.support.worlds import WorldBuilder

CLIQUES = linked(
    8,
    {(a, b): 2 for group in ((0, 1, 2, 3), (4, 5, 6, 7)) for a in group for b in group if a < b},
    per_socket=4,
)
TWO_SOCKETS = pcie(8, per_switch=2, per_socket=4)
CHATTY = 15_000
"""MB/s a card: two of them fill an uplink of PCIe 4."""


def slots(site: WorldBuilder, request: Request, name: str = "job") -> tuple[str, list[int]]:
    """(node, slots) that a job asking for `request` gets."""
    ((node, cards),) = placements(carried_out(site.submit(name, request), settings()))[name]
    return node, sorted(int(card.rsplit("-g", 1)[1]) for card in cards)


def wired(wiring: Wiring | None, name: str = "n", busy: Iterable[int] = ()) -> WorldBuilder:
    """One machine of eight, some cards out of use."""
    site = WorldBuilder().node(a_node(name, 8, wiring=wiring))
    return site.faulty(name, *(f"{name}-g{slot}" for slot in busy))


# --- linked sets -----------------------------------------------------------------------------------------


def test_linked_cards_are_taken_even_where_nobody_requires_them() -> None:
    assert slots(wired(CLIQUES, busy=[0]), a_request(4)) == ("n", [4, 5, 6, 7])


def test_a_set_that_must_be_linked_waits_for_linked_cards() -> None:
    site = wired(CLIQUES, busy=[0, 4]).submit("job", a_request(4, link=Link.REQUIRED))
    assert gates(carried_out(site, settings())) == {"job": Gate.FIT}
    site.faulty("n", "n-g0")
    assert placements(carried_out(site, settings()))["job"] == [
        ("n", [f"n-g{slot}" for slot in (4, 5, 6, 7)])
    ]


@pytest.mark.parametrize("wiring", [None, unknown(8), TWO_SOCKETS], ids=["no word", "unknown", "pcie only"])
def test_unknown_links_and_no_links_are_not_links(wiring: Wiring | None) -> None:
    site = wired(wiring).submit("job", a_request(2, link=Link.REQUIRED))
    assert gates(carried_out(site, settings())) == {"job": Gate.FIT}


def test_one_card_is_always_linked() -> None:
    assert slots(wired(None), a_request(1, link=Link.REQUIRED)) == ("n", [0])


def test_the_machine_that_links_all_cards_is_preferred_over_one_that_does_not() -> None:
    site = (
        WorldBuilder()
        .node(a_node("pcie", 8, wiring=TWO_SOCKETS))
        .node(a_node("nvlink", 8, wiring=uniform(8, 18)))
    )
    assert slots(site, a_request(8))[0] == "nvlink"


def test_a_card_off_the_fabric_leaves_the_rest_of_the_machine_in_use() -> None:
    """Seven of eight are linked; the eighth meets the others over PCIe only."""
    pairs = {(a, b): 18 for a in range(8) for b in range(a + 1, 8) if 3 not in {a, b}}
    degraded = linked(8, pairs, per_socket=4)
    assert slots(wired(degraded), a_request(7, link=Link.REQUIRED)) == ("n", [0, 1, 2, 4, 5, 6, 7])
    site = wired(degraded).submit("eight", a_request(8, link=Link.REQUIRED)).submit("any", a_request(8))
    decided = carried_out(site, settings())
    assert (gates(decided), nodes_of(decided)) == ({"eight": Gate.FIT}, {"any": ["n"]})
    assert slots(wired(degraded), a_request(1, link=Link.REQUIRED))[0] == "n"


def test_link_count_outranks_the_socket() -> None:
    across = linked(8, {(0, 4): 4, (0, 1): 2, (2, 3): 2}, per_socket=4)
    assert slots(wired(across), a_request(2)) == ("n", [0, 4])


# --- sockets and switches --------------------------------------------------------------------------------


def test_without_links_one_switch_then_one_socket() -> None:
    assert slots(wired(TWO_SOCKETS, busy=[0]), a_request(2)) == ("n", [2, 3])
    assert slots(wired(TWO_SOCKETS, busy=[0, 3]), a_request(4)) == ("n", [4, 5, 6, 7])


def test_a_job_of_one_socket_leaves_the_other_whole() -> None:
    site = wired(TWO_SOCKETS)
    first = slots(site, a_request(2), "a")[1]
    second = slots(site, a_request(4), "b")[1]
    assert (first, second) in ([[0, 1], [4, 5, 6, 7]], ([0, 1], [4, 5, 6, 7]))


def test_a_site_that_does_not_look_at_wiring_takes_the_lowest_cards_but_keeps_requirements() -> None:
    blind = settings(topology_aware=False)
    site = wired(TWO_SOCKETS, busy=[0]).submit("job", cards=2)
    assert placements(carried_out(site, blind))["job"] == [("n", ["n-g1", "n-g2"])]
    must = wired(CLIQUES, busy=[0]).submit("job", a_request(4, link=Link.REQUIRED))
    assert placements(carried_out(must, blind))["job"] == [("n", [f"n-g{slot}" for slot in (4, 5, 6, 7)])]


# --- shared uplinks --------------------------------------------------------------------------------------


def test_two_chatty_jobs_take_cards_under_different_uplinks() -> None:
    one_switch_each = pcie(8, per_switch=4, per_socket=8)
    site = wired(one_switch_each)
    first = slots(site, a_request(2, traffic=CHATTY), "a")[1]
    second = slots(site, a_request(2, traffic=CHATTY), "b")[1]
    assert {slot // 4 for slot in first} != {slot // 4 for slot in second}


def test_a_quiet_job_does_not_mind_and_books_nothing() -> None:
    site = wired(pcie(8, per_switch=4, per_socket=8))
    slots(site, a_request(2, traffic=CHATTY), "a")
    _, quiet = slots(site, a_request(2), "b")
    assert {slot // 4 for slot in quiet} == {0}
    assert site.grant("b").placement.edges == ()
    assert sum(site.row("n")["traffic"]) == 2 * CHATTY


def test_a_chatty_job_goes_to_a_node_whose_uplinks_are_free() -> None:
    one_switch = pcie(8, per_switch=8, per_socket=8)
    site = WorldBuilder().node(a_node("a", 8, wiring=one_switch)).node(a_node("b", 8, wiring=one_switch))
    assert slots(site, a_request(2, traffic=CHATTY), "one")[0] == "a"
    assert slots(site, a_request(2, traffic=CHATTY), "two")[0] == "b"
    assert slots(site, a_request(2), "quiet")[0] == "a", "best fit, where nothing speaks against it"


def test_without_a_choice_it_runs_all_the_same_and_the_score_says_what_it_costs() -> None:
    site = wired(pcie(8, per_switch=8, per_socket=8))
    slots(site, a_request(2, traffic=CHATTY), "one")
    (alone,) = planned(
        wired(pcie(8, per_switch=8, per_socket=8), busy=[0, 1]).submit("x", a_request(2, traffic=CHATTY)),
        settings(),
    ).steps
    (beside,) = carried_out(site.submit("two", a_request(2, traffic=CHATTY)), settings()).steps
    assert isinstance(alone, Place)
    assert isinstance(beside, Place)
    assert beside.score > alone.score + 100


def test_traffic_is_given_back_when_the_job_ends() -> None:
    site = wired(TWO_SOCKETS)
    slots(site, a_request(2, traffic=CHATTY))
    assert sum(site.row("n")["traffic"]) > 0
    site.started("job").ended("job")
    assert sum(site.row("n")["traffic"]) == 0


# --- the chooser by itself -------------------------------------------------------------------------------


def test_what_a_set_costs_is_what_it_runs_slower() -> None:
    """Two cards that meet across sockets run at 600 of 1000: 2 x 400 milli-cards are lost."""
    chooser = WiredChooser([kind_of(a_node("n", 8, wiring=TWO_SOCKETS))], SpeedTable())
    assert chooser.choose(0, 0b0001_0001, 2, (), Need()) == (0b0001_0001, 800.0)
    assert chooser.choose(0, 0b0011, 2, (), Need()) == (0b0011, 300.0)
    assert chooser.choose(0, 0b0001, 2, (), Need()) == (0, 0.0)


def test_an_uplink_booked_over_its_capacity_lets_traffic_wait() -> None:
    wiring = pcie(2, per_switch=2, per_socket=2)
    capacity = wiring.edges[0].capacity
    chooser = WiredChooser([kind_of(a_node("n", 2, wiring=wiring))], SpeedTable())
    full = chooser.choose(0, 0b11, 2, (capacity,), Need(traffic_mbs=capacity // 2))
    free = chooser.choose(0, 0b11, 2, (0,), Need(traffic_mbs=capacity // 2))
    assert full[1] - free[1] == pytest.approx(2 * 500, abs=1), (
        "twice its capacity: half of it waits on both cards"
    )


def test_the_lowest_cards() -> None:
    assert [lowest(0b1011_0100, count) for count in range(6)] == [
        0,
        0b100,
        0b1_0100,
        0b11_0100,
        0b1011_0100,
        0,
    ]


def test_peers_that_may_not_talk_are_no_set_that_must_be_linked() -> None:
    levels = (Level.SELF, Level.NV, Level.NV, Level.SELF)
    assert slots(
        WorldBuilder().node(a_node("n", 2, wiring=assemble(2, levels, (0, 4, 4, 0)))),
        a_request(2, link=Link.REQUIRED),
    ) == ("n", [0, 1])


def test_shared_slices_on_several_cards_follow_the_links_too() -> None:
    site = wired(CLIQUES, busy=[0])
    assert slots(site, a_request(4, compute=300)) == ("n", [4, 5, 6, 7])
    assert replace(a_request(4, compute=300), link=Link.REQUIRED).whole is False
