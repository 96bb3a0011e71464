"""Spread members, on any site: no rack, and on it no node, holds two more than another that had room."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import a_node, a_request
from tests.support.planning import carried_out, nodes_of, settings
from tests.support.worlds import WorldBuilder

RACKS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)
POLICIES = st.sampled_from(["best-fit", "spread", "gpu-packing", "dot-product", "random"])


@given(RACKS, st.integers(2, 12), POLICIES)
def test_counts_differ_by_one_at_most_where_room_allows(
    racks: list[list[int]], members: int, policy: str
) -> None:
    site = WorldBuilder()
    room: dict[str, int] = {}
    for rack, sizes in enumerate(racks):
        for number, cards in enumerate(sizes):
            site.node(a_node(f"r{rack}-{number}", cards, rack=f"r{rack}"))
            room[f"r{rack}-{number}"] = cards
    site.submit("s", [a_request(1)] * members, spread=True)
    placed = nodes_of(carried_out(site, settings(policy))).get("s")
    assert (placed is None) == (sum(room.values()) < members)
    nodes = Counter(placed)
    homes = Counter(name.partition("-")[0] for name in nodes.elements())
    free = Counter({name: cards - nodes[name] for name, cards in room.items()})
    free_by_rack: Counter[str] = Counter()
    for name, left in free.items():
        free_by_rack[name.partition("-")[0]] += left
    for home in free_by_rack if placed else ():
        within = [name for name in room if name.startswith(f"{home}-")]
        assert not free_by_rack[home] or homes[home] >= max(homes.values()) - 1
        most = max(nodes[name] for name in within)
        assert all(not free[name] or nodes[name] >= most - 1 for name in within)
