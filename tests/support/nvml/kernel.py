"""A kernel tree of one's own: cores, memory, NUMA nodes, cards, network cards as /sys and /proc show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

NVIDIA: Final = "0x10de"
MELLANOX: Final = "0x15b3"


class KernelTree:
    """Written below `root` bit by bit. A way is what hangs on what: `("pci0000:00", "0000:00:01.0", ...)`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def host(self, nodes: Sequence[tuple[str, int]]) -> KernelTree:
        """NUMA nodes as (list of CPUs, GiB); together they are the machine."""
        for number, (cpus, gib) in enumerate(nodes):
            folder = self.root / f"sys/devices/system/node/node{number}"
            write(folder / "cpulist", cpus)
            write(folder / "meminfo", f"Node {number} MemTotal:       {gib * 1024 * 1024} kB")
        write(self.root / "sys/devices/system/cpu/online", ",".join(cpus for cpus, _ in nodes if cpus))
        write(self.root / "proc/meminfo", f"MemTotal:  {sum(gib for _, gib in nodes) * 1024 * 1024} kB")
        return self

    def card(self, way: Sequence[str], numa: int = -1) -> KernelTree:
        """An NVIDIA card."""
        self._device(way, NVIDIA, "0x030200", numa)
        return self

    def rdma(self, name: str, way: Sequence[str], numa: int = -1) -> KernelTree:
        """A network card for RDMA, with its port."""
        device = self._device(way, MELLANOX, "0x020000", numa)
        link(self.root / "sys/class/infiniband" / name / "device", device)
        return self.port(f"eth-{name}", way, speed=200_000, numa=numa)

    def port(self, name: str, way: Sequence[str], *, speed: int, numa: int = -1) -> KernelTree:
        """An Ethernet port with its speed in Mbit/s."""
        device = self._device(way, MELLANOX, "0x020000", numa)
        write(self.root / "sys/class/net" / name / "speed", str(speed))
        link(self.root / "sys/class/net" / name / "device", device)
        return self

    def virtual(self, name: str) -> KernelTree:
        """A port on no device, such as a bridge."""
        write(self.root / "sys/class/net" / name / "speed", "10000")
        return self

    def _device(self, way: Sequence[str], vendor: str, kind: str, numa: int) -> Path:
        device = self.root.joinpath("sys/devices", *way)
        for name, text in (("vendor", vendor), ("class", kind), ("numa_node", str(numa))):
            write(device / name, text)
        link(self.root / "sys/bus/pci/devices" / way[-1], device)
        return device


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")


def link(at: Path, target: Path) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    if not at.is_symlink():
        at.symlink_to(target)
