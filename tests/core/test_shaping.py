"""Requests into shapes: fractions into integers, profiles into masks, and nodes whose cards differ."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.inventory import Card, CardModel, Node, Profile, kind_of
from aliquot.core.jobs import Request
from aliquot.core.placement.shapes import ANYWHERE
from aliquot.core.shaping import alternatives, as_whole, hardware_of, shapes_of
from aliquot.core.slices import Ask, Cut
from tests.support.build import H100, L40S, T4, a_node, a_request, card_id
from tests.support.planning import carried_out, gates, placements, settings
from tests.support.worlds import WorldBuilder


def mixed(*models: CardModel, name: str = "n") -> Node:
    """A machine with cards of several models, in this order."""
    cards = tuple(Card(card_id(name, at), model) for at, model in enumerate(models))
    return replace(a_node(name, len(models)), cards=cards)


def shape(request: Request, *nodes: Node, variant: int = 0):  # type: ignore[no-untyped-def] # read by its fields
    return shapes_of(request, [kind_of(node) for node in nodes], spec=0)[variant]


def test_a_kind_is_what_its_cards_have_usable() -> None:
    hardware = hardware_of(kind_of(mixed(T4, H100)))
    assert hardware.full == ((1000, 14_917, 1000), (1000, 81_559, 1000))


def test_a_share_is_as_much_memory_as_each_kind_makes_of_it() -> None:
    made = shape(a_request(1, compute=250), a_node("a", 2, model=T4), a_node("b", 4, model=H100))
    assert made.ask == ((250, 3_729, 250), (250, 20_389, 250))
    assert made.eligible == (0b11, 0b1111)
    assert (made.milli, made.whole) == (250, False)


def test_memory_takes_the_larger_share_of_the_smaller_card_and_counts_with_the_least() -> None:
    made = shape(a_request(2, memory=8_000), a_node("a", 2, model=T4), a_node("b", 4, model=H100))
    assert [ask[0] for ask in made.ask] == [536, 98]
    assert made.milli == 2 * 98


def test_what_no_card_of_a_kind_can_give_is_not_eligible_there() -> None:
    made = shape(a_request(1, memory=20_000), a_node("a", 2, model=T4), a_node("b", 4, model=L40S))
    assert made.eligible == (0, 0b1111)


def test_a_profile_leaves_the_cards_that_satisfy_it() -> None:
    request = replace(a_request(2), profile=Profile(memory_mib=40_000))
    assert shape(request, mixed(T4, H100, H100, T4)).eligible == (0b0110,)
    assert shape(replace(request, cards=3), mixed(T4, H100, H100, T4)).eligible == (0,)


def test_a_node_of_two_models_makes_two_shapes_since_a_share_is_different_on_each() -> None:
    request = a_request(1, compute=500)
    kinds = [kind_of(mixed(T4, T4, H100, H100))]
    first, second = shapes_of(request, kinds, spec=0)
    assert (first.eligible, first.ask) == ((0b0011,), ((500, 7_458, 500),))
    assert (second.eligible, second.ask) == ((0b1100,), ((500, 40_779, 500),))


def test_a_request_without_cards_goes_anywhere() -> None:
    made = shape(a_request(0, cpu=500, host=64), a_node("a", 0), a_node("b", 8))
    assert (made.eligible, made.ask, made.milli) == ((ANYWHERE, ANYWHERE), ((0, 0, 0), (0, 0, 0)), 0)


def test_a_whole_card_counts_whole_whatever_of_it_was_asked_for() -> None:
    whole = replace(a_request(8), ask=Ask(memory_mib=40_000))
    made = shape(whole, a_node("a", 8))
    assert (made.milli, made.whole, made.ask) == (8_000, True, ((1000, 81_559, 1000),))


@pytest.mark.parametrize(
    ("compute", "cards", "expected"),
    [
        (250, 4, [(1, 1000), (2, 500), (4, 250)]),
        (300, 4, [(2, 600), (4, 300)]),
        (600, 2, [(2, 600)]),
        (100, 6, [(1, 600), (2, 300), (3, 200), (6, 100)]),
        (250, 1, [(1, 250)]),
    ],
)
def test_slices_that_may_share_a_card_stand_for_fewer_larger_ones(
    compute: int, cards: int, expected: list[tuple[int, int]]
) -> None:
    packed = replace(a_request(cards, compute=compute), distinct=False)
    assert [(option.cards, option.ask.compute_milli) for option in alternatives(packed)] == expected
    assert alternatives(a_request(cards, compute=compute)) == [a_request(cards, compute=compute)]


def test_memory_is_multiplied_with_the_slices() -> None:
    packed = replace(a_request(4, memory=1_000, compute=250), distinct=False)
    assert [option.ask.memory_mib for option in alternatives(packed)] == [4_000, 2_000, 1_000]


def test_as_whole_keeps_how_large_the_card_must_be() -> None:
    whole = as_whole(a_request(2, memory=20_000, compute=300))
    assert (whole.whole, whole.ask) == (True, Ask(Cut.WHOLE, memory_mib=20_000))
    assert as_whole(a_request(0, cpu=5)) == a_request(0, cpu=5)


# --- through the planner ---------------------------------------------------------------------------------


def test_each_model_of_a_node_of_two_gets_what_fits_it() -> None:
    site = WorldBuilder().node(mixed(T4, T4, H100, H100))
    site.submit("large", a_request(1, memory=30_000)).submit("pair", a_request(2, models=("T4",)))
    there = placements(carried_out(site, settings()))
    assert there["pair"] == [("n", ["n-g0", "n-g1"])]
    assert there["large"][0][1][0] in {"n-g2", "n-g3"}


def test_several_cards_of_one_job_are_of_one_model() -> None:
    """A rank on a T4 would hold up those on the H100s."""
    site = (
        WorldBuilder()
        .node(mixed(T4, H100, H100, T4))
        .submit("pair", a_request(2))
        .submit("rest", a_request(2))
    )
    there = placements(carried_out(site, settings()))
    assert sorted([there["pair"][0][1], there["rest"][0][1]]) == [["n-g0", "n-g3"], ["n-g1", "n-g2"]]
    site.submit("three", a_request(3))
    assert "three" in gates(carried_out(site, settings()))


def test_a_slice_is_booked_in_the_integers_of_the_card_it_gets() -> None:
    site = WorldBuilder().node(mixed(T4, H100)).faulty("n", "n-g0").submit("half", a_request(1, compute=500))
    carried_out(site, settings())
    assert site.grant("half").placement.vector == (500, 40_779, 500)
