"""The machines that can be simulated: boards, and how many of them are wired how.

Everything a test may not find in the catalogue is made up here (serials, reserved memory, bus ids); what
matters is that the driver's answers hang together as those of a real machine do.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

PIX, PXB, PHB, NODE, SYS = 10, 20, 30, 40, 50  # the driver's numbers
SWITCH: Final = "switch"

GIB: Final = 1 << 30
MIB: Final = 1 << 20


@dataclass(frozen=True)
class Board:
    """What one card says of itself. `cut` names its table of MIG profiles; "" is a card without MIG."""

    name: str
    memory_mib: int
    reserved_mib: int
    pci_device_id: int
    capability: tuple[int, int]
    architecture: int
    cores: int
    power_w: int
    temperatures: tuple[int, int, int] = (92, 87, 83)  # shutdown, slowdown, most
    brand: int = 14
    cut: str = ""
    resetless: bool = False
    ecc: bool = True
    pcie: int = 4
    unified: bool = False
    serial: bool = True


BOARDS: Final = {
    "a100-40": Board("NVIDIA A100-SXM4-40GB", 40960, 613, 0x20B010DE, (8, 0), 7, 6912, 400, cut="a100-40"),
    "a100-80": Board("NVIDIA A100-SXM4-80GB", 81920, 769, 0x20B210DE, (8, 0), 7, 6912, 400, cut="a100-80"),
    "h100-80": Board(
        "NVIDIA H100 80GB HBM3", 81559, 551, 0x233010DE, (9, 0), 9, 16896, 700,
        cut="h100-80", resetless=True, pcie=5,
    ),
    "a30": Board("NVIDIA A30", 24576, 512, 0x20B710DE, (8, 0), 7, 3584, 165, cut="a30"),
    "l40s": Board("NVIDIA L40S", 46068, 601, 0x26B910DE, (8, 9), 8, 18176, 350, (96, 93, 89)),
    "t4": Board("Tesla T4", 15360, 443, 0x1EB810DE, (7, 5), 6, 2560, 70, (96, 93, 89), brand=2, pcie=3),
    "v100-32": Board("Tesla V100-SXM2-32GB", 32768, 269, 0x1DB510DE, (7, 0), 5, 5120, 300, brand=2, pcie=3),
    "gb10": Board(
        "NVIDIA GB10", 0, 0, 0x2E1210DE, (12, 1), 10, 6144, 140, ecc=False, pcie=5, unified=True, serial=False
    ),
}  # fmt: skip  # a table reads by columns


@dataclass(frozen=True)
class Place:
    """One card in its machine; `board` is a name of BOARDS or a board of one's own."""

    board: str | Board
    uuid: str
    bus: int
    numa: int | None
    cpus: tuple[tuple[int, int], ...] = ()
    domain: int = 0


@dataclass(frozen=True)
class Machine:
    """Cards and their wiring. `level(a, b)` is the common ancestor, `links[card]` the far end of each link.

    A far end is the position of a card, `SWITCH`, or None for a link that is down.
    """

    name: str
    places: tuple[Place, ...]
    level: Callable[[int, int], int]
    links: tuple[tuple[int | str | None, ...], ...] = ()
    link_version: int = 0
    link_mbps: int = 0
    driver: str = "580.95.05"
    cuda: int = 13000
    fabric: bool = False
    peers: Callable[[int, int], int] = field(default=lambda _a, _b: 0)  # NVML's peer status; 0 is allowed


def card_uuid(machine: str, position: int) -> str:
    """The same card has the same UUID in every run."""
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, f'aliquot-test/{machine}/{position}')}"


def find_machine(name: str) -> Machine:
    """A machine of `MACHINES`; KeyError names those there are."""
    if name not in MACHINES:
        raise KeyError(f"no simulated machine {name!r}: one of {', '.join(MACHINES)}")
    return MACHINES[name](name)


def _dgx_a100(name: str) -> Machine:
    """Eight cards on six switch chips; NUMA nodes not in card order, as such machines have them."""
    numa = (3, 3, 1, 1, 7, 7, 5, 5)
    buses = (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD)
    places = tuple(
        Place(
            "a100-40",
            card_uuid(name, i),
            bus,
            node,
            ((16 * node, 16 * node + 15), (128 + 16 * node, 143 + 16 * node)),
        )
        for i, (bus, node) in enumerate(zip(buses, numa, strict=True))
    )
    return Machine(
        name,
        places,
        _by_node(numa, PXB),
        ((SWITCH,) * 12,) * 8,
        link_version=3,
        link_mbps=25781,
        fabric=False,
    )


def _hgx_h100(name: str) -> Machine:
    numa = (0, 0, 0, 0, 1, 1, 1, 1)
    places = tuple(
        Place("h100-80", card_uuid(name, i), 0x18 + 0x11 * i, node, ((48 * node, 48 * node + 47),))
        for i, node in enumerate(numa)
    )
    links = ((SWITCH,) * 18,) * 8
    return Machine(name, places, _by_node(numa, NODE), links, link_version=4, link_mbps=26562, fabric=True)


def _pcie(name: str, board: str, numa: tuple[int, ...], cpus: int, step: int = 0x20) -> Machine:
    """Cards without NVLink, one behind each host bridge; consumer-like boards would refuse peers."""
    places = tuple(
        Place(board, card_uuid(name, i), 0x21 + step * i, node, ((cpus * node, cpus * (node + 1) - 1),))
        for i, node in enumerate(numa)
    )
    return Machine(name, places, _by_node(numa, NODE))


def _v100_cube(name: str) -> Machine:
    """The cube of eight V100: no switch, every link goes to one card, and not every pair has one."""
    pairs = {
        (0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 1, (2, 6): 2,
        (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 1,
    }  # fmt: skip  # a table reads by rows
    numa = (0, 0, 0, 0, 1, 1, 1, 1)
    places = tuple(Place("v100-32", card_uuid(name, i), 0x06 + i, node) for i, node in enumerate(numa))
    ends: list[list[int]] = [[] for _ in numa]
    for (a, b), count in pairs.items():
        ends[a] += [b] * count
        ends[b] += [a] * count
    links = tuple(tuple(far) for far in ends)
    return Machine(
        name,
        places,
        _by_node(numa, PIX),
        links,
        link_version=2,
        link_mbps=25781,
        driver="535.183.01",
        cuda=12020,
    )


def _mixed(name: str) -> Machine:
    """Two bridged A100 80 GB, two L40S, one T4 whose NUMA node nobody knows; no peers across models."""
    boards = ("a100-80", "a100-80", "l40s", "l40s", "t4")
    numa = (0, 0, 1, 1, None)
    places = tuple(
        Place(board, card_uuid(name, i), 0x31 + 0x10 * i, node)
        for i, (board, node) in enumerate(zip(boards, numa, strict=True))
    )
    links: tuple[tuple[int | str | None, ...], ...] = ((1,) * 12, (0,) * 12, (), (), ())
    return Machine(
        name,
        places,
        lambda a, b: NODE if numa[a] is not None and numa[a] == numa[b] else SYS,
        links,
        link_version=3,
        link_mbps=25781,
        peers=lambda a, b: 0 if boards[a] == boards[b] else 1,
    )


def _single(name: str, board: str) -> Machine:
    return Machine(name, (Place(board, card_uuid(name, 0), 0x01, 0, ((0, 19),)),), lambda _a, _b: SYS)


def _by_node(numa: tuple[int, ...], inside: int) -> Callable[[int, int], int]:
    return lambda a, b: inside if numa[a] == numa[b] else SYS


MACHINES: Final[dict[str, Callable[[str], Machine]]] = {
    "a100-40x8": _dgx_a100,
    "dgx-h100": _hgx_h100,
    "l40s-4": lambda name: _pcie(name, "l40s", (0, 0, 1, 1), 96),
    "a30x2": lambda name: _pcie(name, "a30", (0, 1), 32),
    "v100-cube": _v100_cube,
    "mixed": _mixed,
    "t4": lambda name: _single(name, "t4"),
    "a100-40": lambda name: _single(name, "a100-40"),
    "gb10": lambda name: _single(name, "gb10"),
    "l40s-20": lambda name: _pcie(name, "l40s", (0,) * 10 + (1,) * 10, 96, step=4),
    "no-cards": lambda name: Machine(name, (), lambda _a, _b: SYS),
}
