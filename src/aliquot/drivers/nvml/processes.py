"""Who runs on a card. A driver of any age is asked in the newest form that it knows."""

from __future__ import annotations

from typing import Any, Final

from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.readings import CardProcess, ProcessKind

MIB: Final = 1 << 20
_NO_INSTANCE: Final = 0xFFFFFFFF
_FORMS: Final = ("_v3", "_v2")
# In order: what a later list says of a process is nearer to the truth. MPS clients are in two lists.
_LISTS: Final = (
    (ProcessKind.GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
    (ProcessKind.COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
    (ProcessKind.MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
)


def read_processes(nvml: Nvml, handle: Any, card: str) -> tuple[CardProcess, ...] | None:
    """Processes on a card by pid, each once per slice; None where the driver does not list compute processes.

    Memory is rounded up to a MiB. Raises DriverError.
    """
    found: dict[tuple[int, int | None, int | None], CardProcess] = {}
    listed = False
    for kind, symbol in _LISTS:
        rows = _ask_newest(nvml, symbol, handle, card)
        listed = listed or (rows is not None and kind is ProcessKind.COMPUTE)
        for row in rows or ():
            process = _process(kind, row)
            key = (process.pid, process.gi, process.ci)
            found[key] = process if key not in found else _merge(found[key], process)
    return tuple(found[key] for key in sorted(found, key=_order)) if listed else None


def add_busyness(nvml: Nvml, handle: Any, processes: tuple[CardProcess, ...]) -> tuple[CardProcess, ...]:
    """The same with how busy each kept the card, where the driver has a sample of it."""
    if not processes or all(process.gi is not None for process in processes):
        return processes
    try:
        samples = nvml.binding.nvmlDeviceGetProcessUtilization(handle, 0)
    except nvml.binding.NVMLError:
        return processes  # nothing sampled lately, or not by this driver: unknown stays unknown
    latest: dict[int, tuple[int, int]] = {}
    for sample in samples:
        at, sm = int(sample.timeStamp), int(sample.smUtil)
        latest[int(sample.pid)] = max(latest.get(int(sample.pid), (0, 0)), (at, sm))
    return tuple(_with_sm(process, latest.get(process.pid)) for process in processes)


def _ask_newest(nvml: Nvml, symbol: str, handle: Any, card: str) -> list[Any] | None:
    for form in _FORMS:
        rows = nvml.ask(symbol + form, handle, card=card)
        if rows is not None:
            return list(rows)
    return None


def _process(kind: ProcessKind, row: Any) -> CardProcess:
    used = row.usedGpuMemory
    return CardProcess(
        pid=int(row.pid),
        kind=kind,
        memory_mib=None if used is None else -(-int(used) // MIB),
        gi=_instance(row.gpuInstanceId),
        ci=_instance(row.computeInstanceId),
    )


def _instance(number: Any) -> int | None:
    return None if number is None or int(number) == _NO_INSTANCE else int(number)


def _merge(known: CardProcess, more: CardProcess) -> CardProcess:
    """One process in two lists has its memory once."""
    sizes = [size for size in (known.memory_mib, more.memory_mib) if size is not None]
    return CardProcess(more.pid, more.kind, max(sizes) if sizes else None, more.gi, more.ci)


def _with_sm(process: CardProcess, sample: tuple[int, int] | None) -> CardProcess:
    if sample is None:
        return process
    return CardProcess(process.pid, process.kind, process.memory_mib, process.gi, process.ci, sample[1])


def _order(key: tuple[int, int | None, int | None]) -> tuple[int, int, int]:
    pid, gi, ci = key
    return pid, -1 if gi is None else gi, -1 if ci is None else ci
