"""The levels at which two devices of a machine can meet, nearest first, and what each is worth in MB/s.

The numbers are estimates for ordering and for predicted speed, not measurements: NVLink and PCIe are what
collective libraries reckon with, the fall from level to level follows common measurements. A site that knows
better hands its own numbers to the constructors of `Wiring`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from aliquot.core.errors import SpecError


class Link(IntEnum):
    """How far apart two devices are; a larger value is farther. UNKNOWN is last: nobody said."""

    SELF = 0
    NV = 1  # one or more NVLinks, straight or through NVSwitch
    PIX = 2  # at most one PCIe bridge between them
    PXB = 3  # several PCIe bridges, no host bridge
    PHB = 4  # a PCIe host bridge
    NODE = 5  # two host bridges of one NUMA node
    SYS = 6  # two NUMA nodes
    UNKNOWN = 7


NEAR: Final = Link.PXB  # the farthest level at which a card and a NIC exchange data without passing the CPU

MEANING: Final = {
    Link.SELF: "itself",
    Link.NV: "NVLink",
    Link.PIX: "one PCIe switch",
    Link.PXB: "several PCIe switches, below the CPU",
    Link.PHB: "through a PCIe host bridge",
    Link.NODE: "across host bridges of one NUMA node",
    Link.SYS: "across NUMA nodes",
    Link.UNKNOWN: "unknown",
}

NVLINK_MBS: Final = 20_000  # one NVLink, one way; generations 2 to 4 lie between 20 and 21 GB/s
MAX_NVLINKS: Final = 36  # more links than any card has; a larger count is a misread cell

PCIE_MBS: Final = {3: 12_000, 4: 24_000, 5: 48_000, 6: 96_000}  # usable, x16, one way, by PCIe generation
SOCKET_MBS: Final = {3: 10_000, 4: 16_000, 5: 22_000, 6: 40_000}  # CPU to CPU in machines of that generation

# Share of the PCIe speed that is left at each level, in 1/1000: PXB at gen 4 is 950 x 24 = 22,800 MB/s.
_LEFT_OF_PCIE: Final = {Link.PIX: 1000, Link.PXB: 950, Link.PHB: 830, Link.NODE: 750}


def pcie_mbs(gen: int) -> int:
    """MB/s of a x16 slot or switch uplink of PCIe generation `gen`. Raises SpecError for an unknown one."""
    if gen not in PCIE_MBS:
        raise SpecError(
            f"PCIe generation {gen!r} is not known", field="gen", value=gen, hint="one of 3, 4, 5, 6"
        )
    return PCIE_MBS[gen]


def level_mbs(level: Link, gen: int, socket_mbs: int) -> int:
    """MB/s between two cards that meet at PCIe `level`; 0 where there is no such path or nobody knows."""
    if level is Link.SYS:
        return min(socket_mbs, level_mbs(Link.NODE, gen, socket_mbs))
    return pcie_mbs(gen) * _LEFT_OF_PCIE.get(level, 0) // 1000
