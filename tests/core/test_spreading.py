"""Members that share no fate: balanced over racks, nodes and cards, whatever the pool's policy prefers."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from aliquot.config.policies import PLACEMENTS
from aliquot.core.jobs import Request
from aliquot.core.memo import Memo
from aliquot.core.seating import seat_all
from aliquot.core.siting import Desk
from aliquot.core.steps import Place
from tests.support.build import a_job, a_request
from tests.support.planning import carried_out, nodes_of, placements, settings
from tests.support.worlds import WorldBuilder, racks

SLICE = a_request(compute=250, memory=1000)


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


class TestCopies:
    """Replicas are jobs of their own; they are kept apart all the same."""

    def test_of_one_plan(self) -> None:
        site = racks(2, 2)
        for at in range(6):
            site.submit(f"s-{at}", a_request(1), spread=True, replica_of="s")
        placed = [node for (node,) in nodes_of(carried_out(site)).values()]
        assert sorted(Counter(placed).values()) == [1, 1, 2, 2]
        assert Counter(name[:2] for name in placed) == {"r0": 3, "r1": 3}

    def test_one_that_comes_later_goes_where_fewest_run(self) -> None:
        site = WorldBuilder().node("n", 8).node("m", 8)
        for at in range(4):
            site.submit(f"s-{at}", a_request(1), spread=True, replica_of="s")
        first = nodes_of(carried_out(site))
        for name in first:
            site.started(name)
        lost = [name for name, nodes in first.items() if nodes == ["m"]]
        for name in lost:
            site.ended(name)
        site.submit("s-4", a_request(1), spread=True, replica_of="s")
        assert nodes_of(carried_out(site)) == {"s-4": ["m"]}

    def test_slices_take_a_card_each(self) -> None:
        site = WorldBuilder().node("n", 4)
        for at in range(4):
            site.submit(f"s-{at}", SLICE, spread=True, replica_of="s")
        assert len({card for ((_, (card,)),) in placements(carried_out(site)).values()}) == 4

    def test_members_of_one_before_the_others(self) -> None:
        site = WorldBuilder().node("n", 8).node("m", 8)
        site.submit("s-0", [a_request(1)] * 3, spread=True, replica_of="s")
        site.submit("s-1", [a_request(1)] * 3, spread=True, replica_of="s")
        found = nodes_of(carried_out(site))
        assert [sorted(Counter(nodes).values()) for nodes in found.values()] == [[1, 2], [1, 2]]
        assert Counter(node for nodes in found.values() for node in nodes) == {"n": 3, "m": 3}

    def test_copies_of_others_and_those_that_do_not_ask_are_packed(self) -> None:
        site = WorldBuilder().node("n", 8).node("m", 8)
        site.submit("a-0", a_request(1), spread=True, replica_of="a")
        site.submit("b-0", a_request(1), spread=True, replica_of="b")
        site.submit("c-0", a_request(1), replica_of="c").submit("c-1", a_request(1), replica_of="c")
        assert len({node for (node,) in nodes_of(carried_out(site)).values()}) == 1


@pytest.mark.parametrize("spread", [False, True])
def test_the_terms_of_all_members_add_up_to_the_score(spread: bool) -> None:
    site = WorldBuilder().node("n", 8).node("m", 8)
    site.submit("s", [a_request(1), a_request(2), a_request(1)], spread=spread)
    how = replace(settings(), policy=(("spread", 0.5), ("dot-product", 0.5)))
    (place,) = [step for step in carried_out(site, how).steps if isinstance(step, Place)]
    assert place.score != 0
    assert sum(term.value for term in place.terms) == pytest.approx(place.score)
    assert [term.name for term in place.terms] == ["spread", "dot-product"]


def test_a_copy_that_nothing_else_could_hold_has_no_runner_up() -> None:
    desk = Desk(WorldBuilder().node("n", 8).frozen, settings(), Memo())
    job = a_job("s-0", a_request(1), spread=True, replica_of="s")
    seats = seat_all(desk, job, explained=True)
    assert seats is not None
    assert [seat.runner_up for seat in seats] == [None]
