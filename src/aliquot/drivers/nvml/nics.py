"""Network cards near the GPUs, from the kernel's tree: those that can carry a job's traffic.

That is every RDMA device, and every Ethernet port on PCI that runs at 10 Gbit/s or more; a management port
says nothing about where to place a job. A bond stands where its first port does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Nic
from aliquot.drivers.nvml.devices import meet, path_of, read_numa, read_text

FAST_MBITS: Final = 10_000


class Seat(NamedTuple):
    """Where a device hangs: its way from the host bridge, and its NUMA node."""

    path: tuple[str, ...] | None
    numa: int | None


def read_nics(root: Path, cards: tuple[Seat, ...]) -> tuple[Nic, ...]:
    """The network cards, RDMA first, each with its level to every card; () where there are none."""
    devices = [*_rdma(root), *_fast_ports(root)]
    return tuple(
        Nic(f"NIC{position}", name, tuple(_level(seat, card) for card in cards))
        for position, (name, seat) in enumerate(devices)
    )


def _rdma(root: Path) -> list[tuple[str, Seat]]:
    return [(entry.name, seat) for entry in _entries(root / "sys/class/infiniband") if (seat := _seat(entry))]


def _fast_ports(root: Path) -> list[tuple[str, Seat]]:
    """Ports whose device is not an RDMA device already counted."""
    counted = {seat.path for _, seat in _rdma(root)}
    found = []
    for entry in _entries(root / "sys/class/net"):
        speed, seat = read_text(entry / "speed"), _seat(entry)
        if seat is None or seat.path in counted or speed is None or not speed.isdigit():
            continue
        if int(speed) >= FAST_MBITS:
            found.append((entry.name, seat))
    return found


def _seat(entry: Path) -> Seat | None:
    """None for what hangs on no PCI device: loopback, bridges, virtual links."""
    path = path_of(entry / "device")
    return None if path is None else Seat(path, read_numa(entry / "device/numa_node"))


def _level(nic: Seat, card: Seat) -> Link:
    return meet(nic.path, card.path, (nic.numa, card.numa))


def _entries(folder: Path) -> list[Path]:
    """By name, with numbers as numbers: mlx5_2 before mlx5_10."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return []
    return sorted(found, key=lambda entry: [(len(part), part) for part in entry.name.split("_")])
