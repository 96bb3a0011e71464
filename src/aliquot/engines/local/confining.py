"""The limits of a member that follow from where it was placed: the cores and memory of its cards' NUMA nodes,
and the device files of cards that are not its own. Values in, values out.

Only what this host can enforce is asked for; what it cannot was said when the service began.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.grants import Placement
from aliquot.core.ids import CardId
from aliquot.engines.local.payload import Limits


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


def _nodes_of(placement: Placement, grounds: Grounds) -> set[int]:
    if placement.numa:
        return {node for node, _, _ in placement.numa}
    known = {grounds.numa.get(card) for card in placement.cards}
    return set() if None in known else {node for node in known if node is not None}
