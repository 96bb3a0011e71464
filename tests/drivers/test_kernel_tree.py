"""What is read from the kernel's tree: ways on PCI, network cards, cores, memory, NUMA nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from aliquot.core.errors import PermanentError
from aliquot.core.inventory import Numa
from aliquot.core.topology.links import Link
from aliquot.drivers.nvml.devices import device_path, find_cards, meet, short_address
from aliquot.drivers.nvml.host import read_host
from aliquot.drivers.nvml.nics import Seat, read_nics
from tests.support.nvml.kernel import KernelTree

SWITCH = ("pci0000:3a", "0000:3a:00.0", "0000:3b:00.0")
BELOW = (*SWITCH, "0000:3c:08.0", "0000:3d:00.0")  # a second switch below the first
CARD = (*SWITCH, "0000:3c:10.0", "0000:41:00.0")


@pytest.mark.parametrize(
    ("other", "level"),
    [
        pytest.param((*SWITCH, "0000:3c:14.0", "0000:42:00.0"), Link.PIX, id="the same switch"),
        pytest.param((*BELOW, "0000:3e:00.0", "0000:43:00.0"), Link.PXB, id="a switch below the switch"),
        pytest.param(
            ("pci0000:3a", "0000:3a:01.0", "0000:50:00.0"), Link.PHB, id="another port of the bridge"
        ),
        pytest.param(
            ("pci0000:5c", "0000:5c:00.0", "0000:5d:00.0"), Link.NODE, id="another bridge, same node"
        ),
    ],
)
def test_two_devices_are_as_near_as_what_they_share(other: tuple[str, ...], level: Link) -> None:
    assert meet(CARD, other, (0, 0)) is level
    assert meet(other, CARD, (0, 0)) is level


@pytest.mark.parametrize(
    ("numa", "level"),
    [((0, 1), Link.SYS), ((1, 1), Link.NODE), ((None, 1), Link.UNKNOWN), ((None, None), Link.UNKNOWN)],
)
def test_without_a_shared_bridge_the_numa_nodes_decide(
    numa: tuple[int | None, int | None], level: Link
) -> None:
    assert meet(CARD, ("pci0000:d7", "0000:d7:00.0", "0000:d8:00.0"), numa) is level


def test_a_device_that_the_kernel_does_not_show_is_at_an_unknown_place() -> None:
    assert meet(CARD, None, (0, 0)) is Link.UNKNOWN


def test_only_ports_that_carry_a_jobs_traffic_are_network_cards(tmp_path: Path) -> None:
    tree = KernelTree(tmp_path)
    tree.card(CARD, numa=0)
    tree.rdma("mlx5_10", ("pci0000:5c", "0000:5c:00.0", "0000:5d:00.0"), numa=1)
    tree.rdma("mlx5_2", (*SWITCH, "0000:3c:14.0", "0000:42:00.0"), numa=0)
    tree.port("eno1", ("pci0000:00", "0000:00:1c.0", "0000:02:00.0"), speed=1000)
    tree.port("ens5", ("pci0000:3a", "0000:3a:02.0", "0000:51:00.0"), speed=25_000, numa=0)
    tree.virtual("br0")
    seat = Seat(device_path(tmp_path, "0000:41:00.0"), 0)
    assert [(nic.name, nic.device, nic.levels) for nic in read_nics(tmp_path, (seat,))] == [
        ("NIC0", "mlx5_2", (Link.PIX,)),
        ("NIC1", "mlx5_10", (Link.SYS,)),
        ("NIC2", "ens5", (Link.PHB,)),
    ]


def test_cards_on_the_bus_are_found_without_a_driver(tmp_path: Path) -> None:
    tree = KernelTree(tmp_path).card(CARD)
    tree.port("eno1", ("pci0000:00", "0000:00:1c.0", "0000:02:00.0"), speed=1000)
    assert find_cards(tmp_path) == ("0000:41:00.0",)
    assert find_cards(tmp_path / "nothing") == ()


@pytest.mark.parametrize(
    ("driver", "kernel"),
    [("00000000:0F:00.0", "0000:0f:00.0"), ("00000001:00:00.0", "0001:00:00.0")],
)
def test_the_drivers_address_in_the_kernels_form(driver: str, kernel: str) -> None:
    assert short_address(driver) == kernel


def test_a_host_with_a_node_of_memory_alone(tmp_path: Path) -> None:
    host = read_host(KernelTree(tmp_path).host([("0-3,8-11", 16), ("", 8), ("4-7", 4)]).root)
    assert (host.cpu_milli, host.host_mib) == (12_000, 28 * 1024)
    assert host.numa == (Numa(8000, 16 * 1024), Numa(0, 8 * 1024), Numa(4000, 4 * 1024))


def test_a_host_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="cannot read the host's cores"):
        read_host(tmp_path)


def test_this_very_host_can_be_read() -> None:
    host = read_host(Path("/"))
    assert host.cpu_milli > 0
    assert host.host_mib > 0
