"""Looks at how the cards are used at one moment. The time is the caller's: nothing here knows a clock.

A card that does not answer is marked lost in the sample; the others are still told of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aliquot.core.errors import DriverError
from aliquot.core.ids import CardId
from aliquot.drivers.nvml.answers import CardLostError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.cards import read_memory
from aliquot.drivers.nvml.processes import add_busyness, read_processes
from aliquot.drivers.nvml.readings import CardProcess, CardSample, Sample


def sample_cards(nvml: Nvml, handles: Mapping[CardId, Any], at: int) -> Sample:
    """One sample of the given cards, in their order. Never raises: a card in trouble shows as such."""
    return Sample(at, tuple(_sample_card(nvml, uuid, handle) for uuid, handle in handles.items()))


def _sample_card(nvml: Nvml, uuid: CardId, handle: Any) -> CardSample:
    try:
        memory = read_memory(nvml, handle, uuid)
        rates = nvml.ask("nvmlDeviceGetUtilizationRates", handle, card=uuid)
        processes = read_processes(nvml, handle, uuid)
    except CardLostError:
        return CardSample(uuid, lost=True)
    except DriverError:
        return CardSample(uuid)  # nothing known this time; it may answer the next
    if processes is not None:
        processes = add_busyness(nvml, handle, uuid, processes)
    return CardSample(
        uuid,
        used_mib=memory.used if memory.used is not None else _sum(processes),
        gpu_percent=None if rates is None else int(rates.gpu),
        memory_percent=None if rates is None else int(rates.memory),
        processes=processes,
    )


def _sum(processes: tuple[CardProcess, ...] | None) -> int | None:
    """Of a card that uses the host's memory: what its processes say, if all of them do."""
    sizes = [process.memory_mib for process in processes or ()]
    if processes is None or None in sizes:
        return None
    return sum(size for size in sizes if size is not None)
