"""The wiring value: regular machines, what is derived from the tables, and what is refused."""

from __future__ import annotations

import pytest

from aliquot.core import columns
from aliquot.core.errors import SpecError
from aliquot.core.topology import edges, wiring
from aliquot.core.topology.cpus import local_node, overlap, parse_ranges
from aliquot.core.topology.edges import EdgeKind
from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Fabric, Nic, assemble, islands, nearest_nics, pcie, uniform, unknown


def test_limits_are_those_of_the_world() -> None:
    assert wiring.MAX_CARDS == columns.MAX_CARDS
    assert edges.MAX_EDGES == columns.MAX_EDGES


def test_equal_machines_are_equal_values_with_equal_hashes() -> None:
    one, other = pcie(8, 2, 4), pcie(8, 2, 4)
    assert one == other
    assert hash(one) == hash(other)
    assert one != pcie(8, 2, 4, gen=5)


def test_nvswitch_machine_is_uniform_and_one_island() -> None:
    machine = uniform(8, 18, per_socket=4, per_switch=2)
    assert machine.fabric is Fabric.UNIFORM
    assert islands(machine) == (0xFF,)
    assert machine.numa == (0, 0, 0, 0, 1, 1, 1, 1)
    assert machine.bandwidth(0, 7) == 18 * 20_000
    assert [edge.cards for edge in machine.edges] == [0b11, 0b1100, 0b110000, 0b11000000, 0xFF]


def test_nvswitch_without_words_about_sockets_leaves_them_unknown() -> None:
    machine = uniform(4, 12)
    assert machine.numa == (None,) * 4
    assert machine.domains == (-1,) * 4
    assert machine.edges == ()


def test_pcie_machine_has_switch_uplinks_and_a_socket_link() -> None:
    machine = pcie(8, 2, 4, gen=4)
    assert machine.fabric is Fabric.NONE
    assert [machine.level(0, card) for card in (1, 2, 4)] == [Link.PIX, Link.NODE, Link.SYS]
    assert [edge.name for edge in machine.edges] == ["pix-0-1", "pix-2-3", "pix-4-5", "pix-6-7", "sockets"]
    assert {edge.capacity for edge in machine.edges if edge.kind is EdgeKind.UPLINK} == {24_000}


def test_closer_pairs_are_never_slower() -> None:
    for gen in (3, 4, 5, 6):
        machine = pcie(8, 2, 4, gen=gen)
        speeds = [machine.bandwidth(0, card) for card in (1, 2, 4)]
        assert speeds == sorted(speeds, reverse=True)
        assert speeds[-1] > 0


def test_whole_kinds_of_edges_are_left_out_rather_than_some() -> None:
    sixteen = pcie(16, 2, 8)
    assert len(sixteen.edges) == 8
    assert {edge.kind for edge in sixteen.edges} == {EdgeKind.UPLINK}


def test_odd_counts_make_a_smaller_last_group() -> None:
    assert [switch.cards for switch in pcie(5, 2, 4).switches] == [0b11, 0b1100]
    assert pcie(5, 2, 4).numa == (0, 0, 0, 0, 1)


def test_unknown_wiring_claims_nothing() -> None:
    machine = unknown(4)
    assert machine.fabric is Fabric.UNKNOWN
    assert machine.level(0, 1) is Link.UNKNOWN
    assert machine.bandwidth(0, 1) == 0
    assert machine.domains == (-1,) * 4


def test_cards_behind_nvlink_show_their_switch_through_a_shared_nic() -> None:
    levels = tuple(Link.SELF if a == b else Link.NV for a in range(4) for b in range(4))
    links = tuple(0 if level is Link.SELF else 12 for level in levels)
    nics = (
        Nic("NIC0", "mlx5_0", (Link.PXB, Link.PXB, Link.SYS, Link.SYS)),
        Nic("NIC1", "mlx5_1", (Link.SYS, Link.SYS, Link.PXB, Link.PXB)),
    )
    machine = assemble(4, levels, links, numa=(0, 0, 1, 1), nics=nics)
    assert [(edge.cards, edge.devices) for edge in machine.edges] == [
        (0b11, ("NIC0",)),
        (0b1100, ("NIC1",)),
        (0b1111, ()),
    ]
    assert nearest_nics(machine, 2) == (Link.PXB, (1,))
    assert nearest_nics(uniform(2, 4), 0) == (Link.UNKNOWN, ())


def test_one_cpu_list_for_all_cards_is_no_evidence_of_one_socket() -> None:
    levels = (Link.SELF, Link.SYS, Link.SYS, Link.SELF)
    assert assemble(2, levels, (0,) * 4, cpus=(((0, 3),),) * 2).domains == (0, 1)


@pytest.mark.parametrize(
    ("cards", "build"),
    [
        ("no cards", lambda: unknown(0)),
        ("more than sixteen", lambda: uniform(17, 6)),
        ("no card per switch", lambda: pcie(8, 0, 4)),
        ("a generation nobody knows", lambda: pcie(8, 2, 4, gen=2)),
        ("two levels in a pair", lambda: assemble(2, (Link.SELF, Link.PIX, Link.SYS, Link.SELF), (0,) * 4)),
        ("NV without links", lambda: assemble(2, (Link.SELF, Link.NV, Link.NV, Link.SELF), (0,) * 4)),
        ("a table of another size", lambda: assemble(3, (Link.SELF,) * 4, (0,) * 4)),
    ],
)  # fmt: skip
def test_impossible_machines_are_refused(cards: str, build) -> None:
    with pytest.raises(SpecError):
        build()


@pytest.mark.parametrize(
    ("text", "ranges", "node"),
    [
        ("0", ((0, 0),), 0),
        ("0-1", ((0, 1),), None),
        ("0,2", ((0, 0), (2, 2)), None),
        ("0,3-9,11-17", ((0, 0), (3, 9), (11, 17)), 0),
        ("0-0,8-8", ((0, 0), (8, 8)), 0),
    ],
)
def test_lists_are_kept_as_ranges(text: str, ranges: tuple[tuple[int, int], ...], node: int | None) -> None:
    assert parse_ranges(text) == ranges
    if text != "0-0,8-8":
        assert local_node(ranges) == node


@pytest.mark.parametrize("text", ["", "0-", "-3", "24-3", "0,,1", "0 1", "N/A", "0x1"])
def test_damaged_lists_are_no_lists(text: str) -> None:
    assert parse_ranges(text) is None


def test_lists_overlap_when_they_share_a_cpu() -> None:
    assert overlap(((0, 3), (8, 11)), ((11, 12),))
    assert not overlap(((0, 3), (8, 11)), ((4, 7),))
