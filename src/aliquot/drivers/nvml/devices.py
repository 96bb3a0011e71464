"""PCI devices of the machine as the kernel shows them: which are NVIDIA's, where each hangs, its NUMA node.

Independent of the driver, so it can say that a card is there which the driver does not show, and how near a
card and a network card are. `root` is "/" or a copy of the tree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aliquot.core.topology.links import Link

NVIDIA: Final = "0x10de"
_DISPLAY: Final = ("0x0300", "0x0302")  # PCI classes: VGA and 3D controllers


def find_cards(root: Path) -> tuple[str, ...]:
    """Bus addresses (`0000:07:00.0`) of NVIDIA's display devices, ascending; () where none shows."""
    found = []
    for device in _devices(root):
        vendor, kind = read_text(device / "vendor"), read_text(device / "class")
        if vendor == NVIDIA and kind is not None and kind.startswith(_DISPLAY):
            found.append(device.name)
    return tuple(sorted(found))


def device_path(root: Path, address: str) -> tuple[str, ...] | None:
    """The way to a device from its host bridge on, ("pci0000:00", "0000:00:01.0"); None if unknown."""
    return path_of(root / "sys/bus/pci/devices" / address)


def path_of(link: Path) -> tuple[str, ...] | None:
    """The same for a link to a device of the kernel's tree."""
    if not link.exists():
        return None
    parts = link.resolve().parts
    start = next((i for i, part in enumerate(parts) if part.startswith("pci") and ":" in part), None)
    return None if start is None else parts[start:]


def device_numa(root: Path, address: str) -> int | None:
    """The NUMA node of a device; None where the kernel does not know."""
    return read_numa(root / "sys/bus/pci/devices" / address / "numa_node")


def read_numa(file: Path) -> int | None:
    """A node number as the kernel writes it: -1 is unknown."""
    text = read_text(file)
    return int(text) if text is not None and text.isdigit() else None


def meet(a: tuple[str, ...] | None, b: tuple[str, ...] | None, numa: tuple[int | None, int | None]) -> Link:
    """How near two devices are by their ways from the host bridge, and by NUMA node where they share none.

    Two devices behind one switch have a port and a place below the last thing they share: PIX. More in
    between is PXB; nothing but the host bridge is PHB.
    """
    if a is None or b is None:
        return Link.UNKNOWN
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    if shared > 1:
        return Link.PIX if max(len(a), len(b)) - shared <= 2 else Link.PXB
    if shared == 1:
        return Link.PHB
    if None in numa:
        return Link.UNKNOWN
    return Link.NODE if numa[0] == numa[1] else Link.SYS


def short_address(bus_id: str) -> str:
    """The kernel's form of the driver's address: `00000000:0F:00.0` is `0000:0f:00.0`."""
    domain, _, rest = bus_id.partition(":")
    return f"{domain[-4:]}:{rest}".lower()


def read_text(file: Path) -> str | None:
    """One value of the kernel's tree, stripped; None where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _devices(root: Path) -> list[Path]:
    try:
        return sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return []
