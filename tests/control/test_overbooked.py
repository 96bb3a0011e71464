"""What people are told where a node has less than is granted on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from aliquot.control.card_views import CardView
from aliquot.control.listing import card_views
from aliquot.control.overbooked import Overbooked, gone_cards, overbooked_notes
from aliquot.core.events import NodeJoined
from tests.support.build import H100, a_node, a_request, node_id
from tests.support.same import excess
from tests.support.worlds import WorldBuilder


def full() -> WorldBuilder:
    """Eight one-card jobs on eight cards, each with 8 cores and 10,000 MiB."""
    site = WorldBuilder().node("n", 8, cpu=64_000, host=80_000)
    for number in range(8):
        site.submit(f"j{number}", a_request(1, cpu=8_000, host=10_000))
    return site.placed()


@pytest.mark.parametrize(
    ("shrinks", "words"),
    [
        pytest.param(
            lambda site: site.node("n", 6, cpu=64_000, host=80_000),
            ["over-committed by 2 cards", "n-g6 (job j6)", "n-g7 (job j7)"],
            id="two cards",
        ),
        pytest.param(
            lambda site: site.node("n", 7, cpu=64_000, host=80_000),
            ["by 1 card,", "n-g7 (job j7)"],
            id="a card",
        ),
        pytest.param(
            lambda site: site.node("n", 8, cpu=48_000, host=80_000), ["16 more cores are granted"], id="cores"
        ),
        pytest.param(
            lambda site: site.node("n", 8, cpu=64_000, host=79_488),
            ["512 MiB more of its memory is granted"],
            id="host memory",
        ),
    ],
)
def test_b33_what_a_node_has_too_little_of_is_said_in_numbers(
    shrinks: Callable[[WorldBuilder], object], words: list[str]
) -> None:
    """B33: nothing free, never less, and an alarm that says by how much."""
    site = full()
    assert list(overbooked_notes(site.frozen, node_id("n"))) == []
    shrinks(site)
    (said,) = overbooked_notes(site.frozen, node_id("n"))
    for word in words:
        assert word in said
    assert {(card.free_compute_milli, card.free_memory_mib) for card in views(site)} == {(0, 0)}
    for number in range(8):
        site.ended(f"j{number}")
    assert list(overbooked_notes(site.frozen, node_id("n"))) == []


def test_memory_that_drivers_keep_for_themselves_is_said_card_by_card() -> None:
    site = full().node(a_node("n", 8, cpu=64_000, host=80_000, model=replace(H100, reserved_mib=500)))
    said = list(overbooked_notes(site.frozen, node_id("n")))
    assert len(said) == len(excess(site.frozen)) == 8
    assert "500 MiB more of n-g0 is granted than it has" in said[0]


def test_b02_a_card_that_was_swapped_stays_listed_with_its_job() -> None:
    """B02: nothing is taken from or given to the others, and the new board is a card of its own."""
    site = WorldBuilder().node("n", ["A", "B"]).submit("j1", a_request(memory=20_000)).placed().started("j1")
    site.node("n", ["C", "B"])
    assert [(card.uuid, card.state, card.index, [use.job for use in card.jobs]) for card in views(site)] == [
        ("C", "ok", 0, []),
        ("B", "ok", 1, []),
        ("A", "gone", None, ["j1"]),
    ]
    assert [card.free_memory_mib for card in views(site)] == [81_559, 81_559, 0]
    site.node("n", ["A", "B"])
    assert [card.state for card in views(site)] == ["ok", "ok"]


def test_a_node_that_is_away_has_no_gone_cards() -> None:
    site = full().lose("n")
    assert gone_cards(site.frozen) == {}


def test_it_is_told_once_for_each_change() -> None:
    site, said = full(), list[str]()
    watch = Overbooked(said.append)
    for cards, notes in ((8, 0), (6, 1), (6, 1), (5, 2), (8, 2), (6, 3)):
        site.node("n", cards, cpu=64_000, host=80_000)
        watch.see([event for event in site.events[-1:] if isinstance(event, NodeJoined)], site.world)
        assert len(said) == notes, cards


def views(site: WorldBuilder) -> list[CardView]:
    """Cards as people see them."""
    return card_views(site.frozen, lambda job: "")
