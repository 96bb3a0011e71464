"""The limits of a member that follow from where it was placed: the cores and memory of its cards' NUMA nodes,
and the device files of cards that are not its own. Values in, values out.

Only what this host can enforce is asked for; what it cannot was said when the service began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.control.words import measured
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId
from aliquot.core.units import format_memory
from aliquot.engines.local.payload import Limits, Payload


class Grounds(NamedTuple):
    """This host: cores of each NUMA node as the kernel lists them, each card's node and its device file."""

    cpus: Mapping[int, str] = {}
    numa: Mapping[CardId, int] = {}
    devices: Mapping[CardId, str] = {}


def read_grounds(
    root: Path, numa: Mapping[CardId, int | None], minors: Mapping[CardId, int | None]
) -> Grounds:
    """What the kernel's tree under `root` says; what it does not say confines nobody."""
    cpus = {}
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        try:
            cpus[int(folder.name.removeprefix("node"))] = (folder / "cpulist").read_text().strip()
        except OSError:
            continue
    files = {card: f"/dev/nvidia{minor}" for card, minor in minors.items() if minor is not None}
    return Grounds(
        {node: listed for node, listed in cpus.items() if listed},
        {card: node for card, node in numa.items() if node is not None},
        {card: path for card, path in files.items() if (root / path.lstrip("/")).is_char_device()},
    )


def confine(
    limits: Limits, placement: Placement, grounds: Grounds, missing: Set[str] = frozenset()
) -> Limits:
    """`limits` and those of the place, where the host has the controls (`missing` names those it lacks).

    A machine of one NUMA node has nothing to bind to. Cores that were booked on NUMA nodes count, else the
    cards' nodes; a card whose node is unknown leaves its job where the kernel puts it.
    """
    if "cpuset" not in missing and limits.cpus is None and len(grounds.cpus) > 1:
        nodes = _nodes_of(placement, grounds)
        if nodes and all(node in grounds.cpus for node in nodes):
            limits = replace(
                limits,
                cpus=",".join(grounds.cpus[node] for node in sorted(nodes)),
                mems=",".join(map(str, sorted(nodes))),
            )
    if "devices" not in missing and not limits.denied_devices:
        others = sorted(path for card, path in grounds.devices.items() if card not in placement.cards)
        limits = replace(limits, denied_devices=tuple(others))
    return limits


def lapses_of(
    payload: Payload, placements: Sequence[Placement], grounds: Grounds, missing: Mapping[str, str] | None
) -> list[str]:
    """`find_lapses` of every member of a job; no placements: it is not placed yet."""
    found = []
    for member, placement in enumerate(placements or (None,)):
        found += find_lapses(payload.limits_of(member), placement, grounds, missing)
    return found


def find_lapses(
    limits: Limits, placement: Placement | None, grounds: Grounds, missing: Mapping[str, str] | None
) -> list[str]:
    """What of `limits` and of the place is not in force, in words, each with its reason.

    `missing`: control -> why the host lacks it; None: there are no cgroups, since we are not root.
    `placement` None: not placed yet.
    """
    wanted: list[tuple[str, str]] = []
    if limits.memory_mib is not None:
        wanted.append(("memory", f"at most {format_memory(limits.memory_mib)} of host memory"))
    if limits.cpu_milli is not None:
        wanted.append(("cpu", f"at most {measured(limits.cpu_milli / 1000, 'core')}"))
    if limits.pids is not None:
        wanted.append(("pids", f"at most {limits.pids} process{'' if limits.pids == 1 else 'es'}"))
    found = []
    if placement is not None and placement.cards:
        if len(grounds.cpus) > 1 and _nodes_of(placement, grounds):
            wanted.append(("cpuset", "cores and memory beside its cards"))
        if set(grounds.devices) - set(placement.cards):
            wanted.append(("devices", "no access to other cards' device files"))
        if not placement.whole:
            share = f"{placement.vector.compute / 10:g} % of a card's compute"
            found.append(f"{share}: booked, and nothing holds the job to it")
    for control, what in wanted:
        why = "the service was not started by root" if missing is None else missing.get(control, "")
        if why:
            found.append(f"{what}: {why}")
    return found


def _nodes_of(placement: Placement, grounds: Grounds) -> set[int]:
    if placement.numa:
        return {node for node, _, _ in placement.numa}
    known = {grounds.numa.get(card) for card in placement.cards}
    return set() if None in known else {node for node in known if node is not None}
