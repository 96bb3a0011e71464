"""Reads one card. What identifies and sizes it must be readable; other facts may stay unknown, with a notice.

A card's model is the catalogue's, found by the driver's name for it, with the sizes the driver reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from aliquot.core.errors import DriverError, PermanentError
from aliquot.core.ids import CardId
from aliquot.core.inventory import CardModel
from aliquot.drivers.nvml.answers import CardLostError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.devices import device_numa, short_address
from aliquot.drivers.nvml.mig import read_mig
from aliquot.drivers.nvml.processes import MIB, read_processes
from aliquot.drivers.nvml.readings import CardReading, ComputeMode, Notice, NoticeKind

_T = TypeVar("_T")
_WORDS: Final = 16  # of 64 CPUs or NUMA nodes
_NODE_SCOPE: Final = 0


class Memory(NamedTuple):
    """MiB, rounded down. `total` None: the card has no memory of its own. `reserved` None: not reported."""

    total: int | None
    reserved: int | None
    used: int | None


class CardSource(NamedTuple):
    """What reading a card needs beside its handle."""

    nvml: Nvml
    root: Path
    models: Mapping[str, CardModel]  # by casefolded name and alias
    shared_mib: int | None  # the host's memory, which a card without its own uses


def read_card(source: CardSource, handle: Any, index: int) -> tuple[CardReading, list[Notice]]:
    """The card and what is doubtful about it. Raises DriverError where it cannot be identified or sized."""
    nvml, where = source.nvml, f"card {index}"
    uuid = str(nvml.call("nvmlDeviceGetUUID", handle, card=where))
    name = str(nvml.call("nvmlDeviceGetName", handle, card=uuid))
    pci = short_address(str(nvml.call("nvmlDeviceGetPciInfo", handle, card=uuid).busId))
    memory = read_memory(nvml, handle, uuid)
    model, notices = size_model(source, uuid, name, memory)
    facts = _Facts(uuid, notices)
    reading = CardReading(
        index=index,
        uuid=CardId(uuid),
        name=name,
        model=model,
        pci=pci,
        memory_mib=memory.total,
        reserved_mib=memory.reserved,
        unified=memory.total is None,
        numa=facts.read("NUMA node", lambda: read_numa(source, handle, uuid, pci)),
        minor=facts.ask(nvml, "minor number", "nvmlDeviceGetMinorNumber", handle),
        serial=facts.ask(nvml, "serial number", "nvmlDeviceGetSerial", handle),
        capability=facts.read("compute capability", lambda: _capability(nvml, handle, uuid)),
        compute_mode=facts.read("compute mode", lambda: read_compute_mode(nvml, handle, uuid)),
        persistence=facts.ask(nvml, "persistence mode", "nvmlDeviceGetPersistenceMode", handle),
        processes=facts.read("processes", lambda: read_processes(nvml, handle, uuid)),
        mig=facts.read("MIG mode", lambda: read_mig(nvml, handle, uuid)),
    )
    if "MIG mode" in facts.unknown:
        reading = msgspec.structs.replace(reading, mig_known=False)
    return reading, [*notices, *_usability(reading)]


def read_memory(nvml: Nvml, handle: Any, card: str) -> Memory:
    """Sizes of a card. Drivers before R510 do not tell what they keep for themselves."""
    binding = nvml.binding
    newer = nvml.ask("nvmlDeviceGetMemoryInfo", handle, binding.nvmlMemory_v2, card=card)
    if newer is not None:
        used = -(-int(newer.used) // MIB)
        return Memory(int(newer.total) // MIB, -(-int(newer.reserved) // MIB), used)
    older = nvml.ask("nvmlDeviceGetMemoryInfo", handle, card=card)
    if older is not None:
        return Memory(int(older.total) // MIB, None, -(-int(older.used) // MIB))
    return Memory(None, None, None)


def size_model(source: CardSource, uuid: str, name: str, memory: Memory) -> tuple[CardModel, list[Notice]]:
    """The catalogue's model with measured sizes. Raises PermanentError where nothing gives a size."""
    known = source.models.get(name.casefold())
    notices = []
    if known is None:
        text = f"{uuid}: no model named {name!r} in the catalogue; its speeds are unknown"
        notices.append(Notice(NoticeKind.MODEL_UNKNOWN, text, uuid))
    total = memory.total
    if total is None:
        total = source.shared_mib
        text = f"{uuid}: {name} uses the host's memory; what the host gives out is not free for the card"
        notices.append(Notice(NoticeKind.UNIFIED_MEMORY, text, uuid))
    if not total:
        raise PermanentError(f"{uuid}: the driver reports no memory size")
    reserved = memory.reserved
    if reserved is None and memory.total is not None:
        reserved = known.reserved_mib if known else 0
        text = f"{uuid}: this driver does not say what it keeps of the memory; {reserved} MiB assumed"
        notices.append(Notice(NoticeKind.RESERVED_UNKNOWN, text, uuid))
    model = known or CardModel(name, total)
    return msgspec.structs.replace(model, memory_mib=total, reserved_mib=reserved or 0), notices


def read_numa(source: CardSource, handle: Any, uuid: str, pci: str) -> int | None:
    """The one NUMA node near the card; None where nobody knows or more than one is."""
    masks = source.nvml.ask("nvmlDeviceGetMemoryAffinity", handle, _WORDS, _NODE_SCOPE, card=uuid)
    nodes = set_bits(masks) if masks is not None else []
    if len(nodes) == 1:
        return nodes[0]
    return device_numa(source.root, pci)


def read_compute_mode(nvml: Nvml, handle: Any, card: str) -> ComputeMode | None:
    """Who may use the card; None where it is not reported."""
    mode = nvml.ask("nvmlDeviceGetComputeMode", handle, card=card)
    return None if mode is None else ComputeMode(int(mode))


def set_bits(words: Any) -> list[int]:
    """Positions of the set bits of 64-bit words, lowest word first."""
    return [64 * at + bit for at, word in enumerate(words) for bit in range(64) if int(word) >> bit & 1]


class _Facts:
    """Reads facts that may stay unknown: a failure becomes a notice, but a lost card ends the reading."""

    def __init__(self, uuid: str, notices: list[Notice]) -> None:
        self._uuid, self._notices = uuid, notices
        self.unknown: set[str] = set()

    def read(self, what: str, question: Callable[[], _T]) -> _T | None:
        try:
            return question()
        except CardLostError:
            raise
        except DriverError as error:
            self.unknown.add(what)
            self._notices.append(Notice(NoticeKind.FACT_UNKNOWN, f"{what} unknown: {error}", self._uuid))
            return None

    def ask(self, nvml: Nvml, what: str, symbol: str, handle: Any) -> Any | None:
        return self.read(what, lambda: nvml.ask(symbol, handle, card=self._uuid))


def _capability(nvml: Nvml, handle: Any, card: str) -> tuple[int, int] | None:
    answer = nvml.ask("nvmlDeviceGetCudaComputeCapability", handle, card=card)
    return None if answer is None else (int(answer[0]), int(answer[1]))


def _usability(card: CardReading) -> list[Notice]:
    found = []
    if card.compute_mode is ComputeMode.PROHIBITED:
        found.append(
            Notice(
                NoticeKind.NOT_USABLE, f"{card.uuid}: compute mode PROHIBITED, no job can use it", card.uuid
            )
        )
    if card.mig is not None and card.mig.enabled and not card.mig.devices:
        text = f"{card.uuid}: MIG is on and there is no slice; no job can use it until one is made"
        found.append(Notice(NoticeKind.NOT_USABLE, text, card.uuid))
    if card.mig is not None and card.mig.enabled is not card.mig.pending:
        state = "on" if card.mig.pending else "off"
        text = f"{card.uuid}: MIG will be {state} after a reset of the card"
        found.append(Notice(NoticeKind.RESET_DUE, text, card.uuid))
    return found
