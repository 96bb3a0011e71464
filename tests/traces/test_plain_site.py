"""Sites of which only counts are known, and what wide jobs ask of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.columns import MAX_CARDS
from aliquot.core.errors import SpecError
from aliquot.traces.plain_site import MOST_NODES, gang, plain_nodes


def widths(cards: int, widest: int, nodes: int | None = None) -> list[int]:
    return [member.cards for member in gang(cards, widest, nodes)]


def test_nodes_are_named_in_order_and_no_two_cards_are_one() -> None:
    nodes = plain_nodes("site", 12, 4)
    assert [node.id.name for node in nodes[:2]] == ["node-00", "node-01"]
    assert len({card.uuid for node in nodes for card in node.cards}) == 48


@pytest.mark.parametrize(
    ("nodes", "cards", "told"),
    [(0, 8, "--nodes"), (MOST_NODES + 1, 8, "--nodes"), (4, 0, "--cards"), (4, MAX_CARDS + 1, "--cards")],
)
def test_a_site_that_no_world_can_hold(nodes: int, cards: int, told: str) -> None:
    with pytest.raises(SpecError, match=f"{told}: .* is out of range"):
        plain_nodes("site", nodes, cards)


@pytest.mark.parametrize(
    ("cards", "nodes", "parts"),
    [
        pytest.param(3, None, [3], id="on one node"),
        pytest.param(20, None, [8, 8, 4], id="on as few nodes as can be"),
        pytest.param(20, 3, [7, 7, 6], id="over the nodes asked for"),
        pytest.param(4, 4, [1, 1, 1, 1], id="one on each"),
        pytest.param(2, 3, [2], id="more nodes than cards were not meant"),
        pytest.param(4, 0, [4], id="no node was not meant"),
    ],
)
def test_a_gang(cards: int, nodes: int | None, parts: list[int]) -> None:
    assert widths(cards, 8, nodes) == parts


@given(st.integers(1, 500), st.integers(1, 16), st.none() | st.integers(1, 64))
def test_no_card_is_lost_and_parts_are_even(cards: int, widest: int, nodes: int | None) -> None:
    parts = widths(cards, widest, nodes)
    assert sum(parts) == cards
    if nodes is not None and nodes <= cards:
        assert (len(parts), max(parts) - min(parts) <= 1) == (nodes, True)
    else:
        assert max(parts) <= widest
        assert len(parts) == -(-cards // widest)
