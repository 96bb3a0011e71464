"""The host's own cores and memory, and how NUMA nodes divide them, from the kernel's tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from aliquot.core.errors import PermanentError
from aliquot.core.inventory import Numa
from aliquot.core.topology.cpus import parse_ranges
from aliquot.drivers.nvml.devices import read_text


class Host(NamedTuple):
    """Milli-cores and MiB of a machine; `numa[node]` is one NUMA node, () where the kernel shows none."""

    cpu_milli: int
    host_mib: int
    numa: tuple[Numa, ...]


def read_host(root: Path) -> Host:
    """The machine under `root`. Raises PermanentError where the kernel does not show cores or memory."""
    cores = _count_cpus(read_text(root / "sys/devices/system/cpu/online"))
    memory = _total_mib(read_text(root / "proc/meminfo"))
    if cores is None or memory is None:
        raise PermanentError(f"{root}: cannot read the host's {'cores' if cores is None else 'memory'}")
    return Host(cores * 1000, memory, _read_numa(root))


def _read_numa(root: Path) -> tuple[Numa, ...]:
    """Numbered from 0 without gaps, as the core wants it; a number that is not there has nothing."""
    nodes = {}
    for folder in sorted((root / "sys/devices/system/node").glob("node[0-9]*")):
        cores, memory = _count_cpus(read_text(folder / "cpulist")), _total_mib(read_text(folder / "meminfo"))
        if cores is None or memory is None:
            return ()
        nodes[int(folder.name.removeprefix("node"))] = Numa(cores * 1000, memory)
    return tuple(nodes.get(number, Numa(0, 0)) for number in range(max(nodes, default=-1) + 1))


def _count_cpus(text: str | None) -> int | None:
    """How many CPUs a list names; a node of memory alone has an empty one."""
    if text == "":
        return 0
    ranges = parse_ranges(text) if text is not None else None
    return None if ranges is None else sum(last - first + 1 for first, last in ranges)


def _total_mib(text: str | None) -> int | None:
    match = re.search(r"MemTotal:\s+(\d+) kB", text or "")
    return None if match is None else int(match[1]) // 1024
