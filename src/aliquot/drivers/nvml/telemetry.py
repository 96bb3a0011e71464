"""Looks at how the cards are used at one moment. The time is the caller's: nothing here knows a clock.

A card that does not answer is marked lost in the sample; the others are still told of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from aliquot.core.errors import DriverError
from aliquot.core.ids import CardId
from aliquot.drivers.nvml.answers import CardLostError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.cards import Memory, read_memory
from aliquot.drivers.nvml.processes import add_busyness, read_processes
from aliquot.drivers.nvml.readings import CardProcess, CardSample, Sample

_T = TypeVar("_T")


def sample_cards(nvml: Nvml, handles: Mapping[CardId, Any], at: int) -> Sample:
    """One sample of the given cards, in their order. Never raises: a card in trouble shows as such."""
    return Sample(at, tuple(_sample_card(nvml, uuid, handle) for uuid, handle in handles.items()))


def _sample_card(nvml: Nvml, uuid: CardId, handle: Any) -> CardSample:
    """What can be read of a card; one question that fails leaves the others their answers."""
    try:
        memory = _attempt(lambda: read_memory(nvml, handle, uuid))
        rates = _attempt(lambda: nvml.ask("nvmlDeviceGetUtilizationRates", handle, card=uuid))
        processes = _attempt(lambda: read_processes(nvml, handle, uuid))
    except CardLostError:
        return CardSample(uuid, lost=True)
    if processes is not None:
        processes = add_busyness(nvml, handle, processes)
    return CardSample(
        uuid,
        used_mib=_used(memory, processes),
        gpu_percent=None if rates is None else int(rates.gpu),
        memory_percent=None if rates is None else int(rates.memory),
        processes=processes,
    )


def _attempt(question: Callable[[], _T]) -> _T | None:
    try:
        return question()
    except CardLostError:
        raise
    except DriverError:
        return None  # nothing known this time; it may answer the next


def _used(memory: Memory | None, processes: tuple[CardProcess, ...] | None) -> int | None:
    """As read; of a card that uses the host's memory, what its processes say, if all of them do."""
    if memory is None or memory.total is not None:
        return None if memory is None else memory.used
    sizes = [process.memory_mib for process in processes or ()]
    if processes is None or None in sizes:
        return None
    return sum(size for size in sizes if size is not None)
