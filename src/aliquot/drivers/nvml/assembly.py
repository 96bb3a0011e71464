"""Puts what was read into the core's node, and says what does not fit together.

The driver, the bus and the host are three witnesses: a card on the bus that the driver does not show, a NUMA
node that the host does not have, a fabric that is not up are told, not guessed away.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from typing import Any, Final

import msgspec

from aliquot.core.errors import DriverError
from aliquot.core.ids import NodeId
from aliquot.core.inventory import Card, Node
from aliquot.core.topology.wiring import Wiring
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.host import Host
from aliquot.drivers.nvml.readings import Absent, CardReading, Detection, Failed, Notice, NoticeKind

_FABRIC_NONE: Final = 0
_FABRIC_DONE: Final = 3


def build_node(node: NodeId, host: Host, cards: Sequence[CardReading], wiring: Wiring) -> Node:
    """The node as the core knows it."""
    return Node(
        id=node,
        cpu_milli=host.cpu_milli,
        host_mib=host.host_mib,
        cards=tuple(Card(card.uuid, card.model, card.numa, card.pci) for card in cards),
        wiring=wiring,
        numa=host.numa,
    )


def nothing_there(on_bus: Sequence[str], reason: str) -> Detection:
    """No card to be had: known to be none where the bus shows none either, else a failure to see them."""
    if on_bus:
        return Failed(f"{len(on_bus)} NVIDIA cards are on the bus ({', '.join(on_bus)}), but {reason}")
    return Absent(reason)


def find_missing(on_bus: Sequence[str], cards: Sequence[CardReading], count: int) -> list[Notice]:
    """Cards on the bus that the driver does not count at all. An unreadable one has its own notice."""
    shown = {card.pci for card in cards}
    missing = [address for address in on_bus if address not in shown]
    if len(on_bus) <= count:
        return []
    return [
        Notice(NoticeKind.CARD_MISSING, f"{address}: on the bus, but not shown by the driver", address)
        for address in missing
    ]


def seat_on_host(card: CardReading, host: Host, notices: list[Notice]) -> CardReading:
    """The card, without a NUMA node that this host does not have: one seen from inside a virtual machine."""
    if card.numa is None or not host.numa or card.numa < len(host.numa):
        return card
    text = (
        f"{card.uuid}: near NUMA node {card.numa}, but this host has only {len(host.numa)}; taken as unknown"
    )
    notices.append(Notice(NoticeKind.FACT_UNKNOWN, text, card.uuid))
    return msgspec.structs.replace(card, numa=None)


def read_fabric(nvml: Nvml, handles: Sequence[Any], cards: Sequence[CardReading]) -> list[Notice]:
    """Cards whose switch fabric is not up: NVLinks through switches carry nothing until it is."""
    found = []
    for handle, card in zip(handles, cards, strict=True):
        fabric = nvml.binding.c_nvmlGpuFabricInfo_v2_t()
        try:
            answer = nvml.ask("nvmlDeviceGetGpuFabricInfoV", handle, byref(fabric), card=card.uuid)
        except DriverError as error:
            found.append(Notice(NoticeKind.FABRIC, f"state of the fabric unknown: {error}", card.uuid))
            continue
        if answer is None or int(fabric.state) == _FABRIC_NONE:
            continue
        if int(fabric.state) != _FABRIC_DONE or int(fabric.status) != 0:
            text = f"{card.uuid}: the NVLink fabric is not up; is the fabric manager running?"
            found.append(Notice(NoticeKind.FABRIC, text, card.uuid))
    return found
