"""Choosing cards: against brute force, and the order of rules on machines one can picture."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.topology.caveats import CaveatKind, off_fabric, wiring_caveats
from aliquot.core.topology.links import Link
from aliquot.core.topology.sets import (
    Refusal,
    best_set,
    edge_traffic,
    largest_linked_set,
    refuse_set,
    set_class,
)
from aliquot.core.topology.tables import subset_tables
from aliquot.core.topology.wiring import Wiring, assemble, cards_of, pcie, uniform, unknown

# The eight-card cube mesh: two cliques of four with uneven links, four links across.
CUBE_MESH = {
    (0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2,
    (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2,
    (0, 4): 2, (1, 5): 2, (2, 6): 1, (3, 7): 1,
}  # fmt: skip


def linked(n: int, links: dict[tuple[int, int], int], *, per_socket: int) -> Wiring:
    """Cards with these NVLinks; other pairs meet at NODE inside a socket and SYS across."""

    def level(a: int, b: int) -> Link:
        if a == b:
            return Link.SELF
        if count(a, b):
            return Link.NV
        return Link.NODE if a // per_socket == b // per_socket else Link.SYS

    def count(a: int, b: int) -> int:
        return links.get((min(a, b), max(a, b)), 0)

    pairs = [(a, b) for a in range(n) for b in range(n)]
    return assemble(
        n,
        tuple(level(a, b) for a, b in pairs),
        tuple(count(a, b) for a, b in pairs),
        numa=tuple(card // per_socket for card in range(n)),
    )


def chosen(wiring: Wiring, free: int, k: int, **options: object) -> tuple[int, ...]:
    choice = best_set(wiring, free, k, **options)  # type: ignore[arg-type]  # a table of arguments
    assert choice is not None
    return cards_of(choice.mask)


def test_with_nvlink_the_link_count_outranks_the_socket() -> None:
    across = linked(4, {(0, 2): 4, (1, 3): 4}, per_socket=2)
    assert chosen(across, 0b1111, 2) == (0, 2)
    assert chosen(across, 0b0111, 2) == (0, 2)


def test_without_nvlink_one_socket_comes_first_then_the_switch() -> None:
    machine = pcie(8, 2, 4)
    assert chosen(machine, 0b11111010, 2) == (4, 5)
    assert chosen(machine, 0b01011010, 2) == (1, 3)
    assert chosen(machine, 0b10110111, 3) == (0, 1, 2)


def test_equal_links_fall_back_to_one_socket() -> None:
    assert chosen(uniform(8, 18, per_socket=4), 0b11110010, 2) == (4, 5)


def test_more_links_win_inside_a_cube_mesh() -> None:
    machine = linked(8, CUBE_MESH, per_socket=4)
    pair = best_set(machine, 0xFF, 2)
    assert pair is not None
    assert (pair.worst, pair.min_links, pair.sockets) == (Link.NV, 2, 1)
    assert chosen(machine, 0xFF, 4) == (0, 1, 2, 3)
    assert best_set(machine, 0xFF, 5).worst is Link.SYS  # type: ignore[union-attr]  # None fails the test


def test_a_single_card_comes_from_the_broken_group() -> None:
    assert chosen(pcie(8, 2, 4), 0b01110000, 1) == (6,)
    assert chosen(uniform(8, 12, per_socket=4), 0b00011111, 1) == (4,)


def test_nothing_known_still_gives_the_lowest_cards() -> None:
    choice = best_set(unknown(4), 0b1110, 2)
    assert choice is not None
    assert (cards_of(choice.mask), choice.worst, choice.bandwidth) == ((1, 2), Link.UNKNOWN, None)


def test_chatty_jobs_are_kept_apart_where_there_is_a_choice() -> None:
    machine = pcie(8, 2, 4)
    first = best_set(machine, 0xFF, 1, traffic=20_000)
    assert first is not None
    load = edge_traffic(machine, first.mask, 20_000)
    second = best_set(machine, 0xFF & ~first.mask, 1, load=load, traffic=20_000)
    assert second is not None
    assert not set(first.edges) & set(second.edges)
    assert second.contended == ()


def test_contention_is_reported_where_there_is_no_choice() -> None:
    machine = pcie(2, 2, 2)
    load = edge_traffic(machine, 0b01, 20_000)
    choice = best_set(machine, 0b10, 1, load=load, traffic=20_000)
    assert choice is not None
    (edge,) = choice.contended
    assert (edge.name, edge.capacity, edge.booked, edge.added) == ("pix-0-1", 24_000, 20_000, 20_000)


def test_a_quiet_job_does_not_care_for_load() -> None:
    machine = pcie(8, 2, 4)
    assert best_set(machine, 0xFF, 2, load=(9_000,) * 5) == best_set(machine, 0xFF, 2)


def test_traffic_books_uplinks_by_card_and_the_socket_link_by_the_smaller_side() -> None:
    machine = pcie(8, 2, 4)
    assert edge_traffic(machine, 0b00110111, 1_000) == (2_000, 1_000, 2_000, 0, 2_000)
    assert edge_traffic(uniform(8, 18, per_socket=4), 0b00110111, 1_000) == (0,)


def test_required_nvlink_is_refused_in_numbers() -> None:
    pairs = linked(8, {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4}, per_socket=4)
    assert best_set(pairs, 0b00111101, 4, require_nvlink=True) is None
    refusal = refuse_set(pairs, 0b00111101, 4, require_nvlink=True)
    assert refusal is not None
    assert (refusal.reason, refusal.needed, refusal.free, refusal.largest_linked) == (
        Refusal.NOT_LINKED,
        4,
        5,
        2,
    )
    assert refuse_set(pairs, 0b00111101, 2, require_nvlink=True) is None


def test_required_nvlink_that_nobody_spoke_of_is_refused_as_unknown() -> None:
    refusal = refuse_set(unknown(8), 0xFF, 4, require_nvlink=True)
    assert refusal is not None
    assert refusal.reason is Refusal.NVLINK_UNKNOWN
    assert refuse_set(unknown(8), 0b111, 4).reason is Refusal.TOO_FEW_FREE  # type: ignore[union-attr]  # None fails the test
    assert best_set(unknown(8), 0xFF, 1, require_nvlink=True) is not None


def test_a_card_off_the_fabric_is_used_last_and_said() -> None:
    links = {(a, b): 18 for a, b in combinations(range(8), 2) if 2 not in {a, b}}
    machine = linked(8, links, per_socket=4)
    assert off_fabric(machine) == 0b100
    assert CaveatKind.OFF_FABRIC in {c.kind for c in wiring_caveats(machine, [f"GPU{i}" for i in range(8)])}
    assert chosen(machine, 0xFF, 7) == (0, 1, 3, 4, 5, 6, 7)
    assert chosen(machine, 0xFF, 1) == (2,)
    assert largest_linked_set(machine, 0b00001111) == 0b1011


def test_a_card_beside_a_bridged_pair_is_not_degraded() -> None:
    assert off_fabric(linked(3, {(0, 1): 4}, per_socket=4)) == 0


def test_the_class_of_a_set_is_its_farthest_link() -> None:
    machine = pcie(8, 2, 4)
    masks = (0b1, 0b11, 0b101, 0b10001)
    assert [set_class(machine, mask) for mask in masks] == [Link.SELF, Link.PIX, Link.NODE, Link.SYS]


@pytest.mark.parametrize(
    ("wrong", "question"),
    [
        ("no cards wanted", {"free_mask": 1, "k": 0}),
        ("a card that is not there", {"free_mask": 1 << 8, "k": 1}),
        ("negative traffic", {"free_mask": 1, "k": 1, "traffic": -1}),
        ("load of other edges", {"free_mask": 1, "k": 1, "load": (1,), "traffic": 1}),
    ],
)
def test_impossible_questions_are_refused(wrong: str, question: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        best_set(pcie(8, 2, 4), **question)  # type: ignore[arg-type]  # a table of arguments


def brute_force(wiring: Wiring, free: int, k: int) -> tuple[int, ...]:
    """The documented order, without traffic, over all sets, in plain Python."""

    def pairs(cards: tuple[int, ...]) -> list[tuple[int, int]]:
        return list(combinations(cards, 2))

    def most_linked(cards: tuple[int, ...]) -> int:
        sizes = range(len(cards), 0, -1)
        sets = (s for size in sizes for s in combinations(cards, size))
        return next((len(s) for s in sets if all(wiring.nvlinks(a, b) for a, b in pairs(s))), 0)

    def total(cards: tuple[int, ...]) -> int:
        return sum(wiring.bandwidth(a, b) for a, b in pairs(cards))

    def badness(cards: tuple[int, ...]) -> tuple[object, ...]:
        rest = tuple(card for card in cards_of(free) if card not in cards)
        domains = [wiring.domains[card] for card in cards]
        below = [switch.cards for switch in wiring.switches]
        touched = sum(any(mask >> card & 1 for card in cards) for mask in below)
        alone = sum(not any(mask >> card & 1 for mask in below) for card in cards)
        around = [wiring.domains[card] for card in rest]
        return (
            max((wiring.level(a, b) for a, b in pairs(cards)), default=Link.SELF),
            -min((wiring.bandwidth(a, b) for a, b in pairs(cards)), default=0),
            -sum(wiring.nvlinks(a, b) for a, b in pairs(cards)),
            len(set(domains)),
            -total(cards),
            touched + alone,
            -most_linked(rest),
            -max((around.count(domain) for domain in around), default=0),
            -total(rest),
            cards,
        )

    return min(combinations(cards_of(free), k), key=badness)


@st.composite
def machines(draw: st.DrawFn) -> Wiring:
    n = draw(st.integers(1, 7))
    near = st.sampled_from([Link.NV, Link.PIX, Link.PXB, Link.PHB, Link.NODE, Link.SYS, Link.UNKNOWN])
    levels = [Link.SELF] * (n * n)
    links = [0] * (n * n)
    for a, b in combinations(range(n), 2):
        level = draw(near)
        count = draw(st.integers(1, 4)) if level is Link.NV else 0
        levels[a * n + b] = levels[b * n + a] = level
        links[a * n + b] = links[b * n + a] = count
    numa = draw(st.lists(st.sampled_from([None, 0, 1]), min_size=n, max_size=n))
    return assemble(n, tuple(levels), tuple(links), numa=tuple(numa))


@settings(max_examples=60, deadline=None)
@given(machine=machines(), data=st.data())
def test_the_choice_is_the_best_of_all_sets(machine: Wiring, data: st.DataObject) -> None:
    free = data.draw(st.integers(1, machine.every))
    k = data.draw(st.integers(1, free.bit_count()))
    assert chosen(machine, free, k) == brute_force(machine, free, k)


@settings(max_examples=60, deadline=None)
@given(machine=machines(), data=st.data())
def test_no_other_set_of_that_class_overloads_less(machine: Wiring, data: st.DataObject) -> None:
    free = data.draw(st.integers(1, machine.every))
    k = data.draw(st.integers(1, free.bit_count()))
    load = tuple(data.draw(st.integers(0, 30_000)) for _ in machine.edges)
    choice = best_set(machine, free, k, load=load, traffic=8_000)
    assert choice is not None

    def overload(mask: int) -> int:
        added = edge_traffic(machine, mask, 8_000)
        return sum(
            max(0, booked + more - edge.capacity)
            for edge, booked, more in zip(machine.edges, load, added, strict=True)
            if more
        )

    assert sum(c.booked + c.added - c.capacity for c in choice.contended) == overload(choice.mask)
    for cards in combinations(cards_of(free), k):
        mask = sum(1 << card for card in cards)
        if same_quality(machine, mask, choice.mask):
            assert overload(choice.mask) <= overload(mask)


def same_quality(machine: Wiring, one: int, other: int) -> bool:
    tables = subset_tables(machine)
    return tables.worst[one] == tables.worst[other] and tables.bottleneck[one] == tables.bottleneck[other]


def test_sixteen_cards_are_exact_and_quick() -> None:
    machine = pcie(16, 2, 8)
    began = time.perf_counter()
    choice = best_set(machine, machine.every, 8, load=(1_000,) * 8, traffic=1_000)
    took = time.perf_counter() - began
    assert choice is not None
    assert choice.mask in {0xFF, 0xFF00}
    assert took < 0.5  # 25 ms with empty tables on an idle core; the bound only catches enumeration in Python
