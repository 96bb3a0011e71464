"""Members that share no fate: balanced over racks, nodes and cards, whatever the pool's policy prefers."""

from __future__ import annotations

from collections import Counter

import pytest

from aliquot.config.policies import PLACEMENTS
from aliquot.core.jobs import Request
from tests.support.build import a_node, a_request
from tests.support.planning import carried_out, nodes_of, placements, settings
from tests.support.worlds import WorldBuilder

SLICE = a_request(compute=250, memory=1000)


def racks(*sizes: int, cards: int = 8) -> WorldBuilder:
    """Racks r0, r1, ... of so many nodes r0-0, r0-1, ... each."""
    site = WorldBuilder()
    for rack, size in enumerate(sizes):
        for number in range(size):
            site.node(a_node(f"r{rack}-{number}", cards, rack=f"r{rack}"))
    return site


def counts(site: WorldBuilder, members: list[Request], policy: str = "best-fit") -> tuple[list[int], ...]:
    """Members by rack and by node, most first."""
    site.submit("s", members, spread=True)
    (placed,) = nodes_of(carried_out(site, settings(policy))).values()
    nodes = Counter(placed)
    homes = Counter(name.partition("-")[0] for name in nodes.elements())
    return sorted(homes.values(), reverse=True), sorted(nodes.values(), reverse=True)


@pytest.mark.parametrize("policy", PLACEMENTS)
@pytest.mark.parametrize("request_", [a_request(1), SLICE], ids=["whole cards", "slices"])
def test_more_members_than_nodes_take_balanced_rounds_under_every_policy(
    policy: str, request_: Request
) -> None:
    assert counts(racks(2, 2, 2), [request_] * 8, policy) == ([3, 3, 2], [2, 2, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("sizes", "members", "by_rack", "by_node"),
    [
        pytest.param((2,), 6, [6], [3, 3], id="six over two nodes"),
        pytest.param((2, 2, 2), 9, [3, 3, 3], [2, 2, 2, 1, 1, 1], id="nine over three racks"),
        pytest.param((2, 2), 2, [1, 1], [1, 1], id="a rack each before a node each"),
        pytest.param((1, 4), 6, [3, 3], [3, 1, 1, 1], id="racks come before nodes"),
        pytest.param((1, 1), 15, [8, 7], [8, 7], id="to the last card"),
    ],
)
def test_each_goes_to_the_rack_then_the_node_with_fewest(
    sizes: tuple[int, ...], members: int, by_rack: list[int], by_node: list[int]
) -> None:
    assert counts(racks(*sizes), [a_request(1)] * members) == (by_rack, by_node)


def test_a_full_node_gets_what_it_can_and_the_others_the_rest() -> None:
    site = WorldBuilder().node("large", 8).node("small", 1)
    site.submit("s", [a_request(1)] * 6, spread=True)
    (placed,) = nodes_of(carried_out(site)).values()
    assert Counter(placed) == {"large": 5, "small": 1}


def test_slices_on_one_node_take_a_card_each_before_they_share_one() -> None:
    site = WorldBuilder().node("n", 3)
    site.submit("s", [SLICE] * 5, spread=True)
    (placed,) = placements(carried_out(site)).values()
    assert sorted(Counter(card for _, cards in placed for card in cards).values()) == [1, 2, 2]
