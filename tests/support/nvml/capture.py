"""Plays a card as `nvidia-smi -q -x` printed it on a real machine: what was not printed is not reported.

Only what an inventory asks about is taken over. The vendor's program prints N/A for what the driver does not
report and leaves out what it does not know; both become "not supported" here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple
from xml.etree import ElementTree as ET

from tests.support.nvml.machines import BOARDS, SYS, Board, Machine, Place
from tests.support.nvml.state import SimulatedNvml

MODES = {"Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}


class CapturedCard(NamedTuple):
    """One `<gpu>`. None is what the print does not say."""

    name: str
    uuid: str
    bus: int
    serial: str | None
    total_mib: int
    reserved_mib: int | None
    used_mib: int
    mode: int | None
    mig: bool | None
    slices: int
    processes: tuple[tuple[int, str, int], ...] | None  # pid, type, MiB


def read_capture(text: str) -> CapturedCard:
    """The first card of a print."""
    gpu = ET.fromstring(text).find("gpu")
    assert gpu is not None
    listed = gpu.find("processes")
    return CapturedCard(
        name=say(gpu, "product_name") or "",
        uuid=say(gpu, "uuid") or "GPU-not-printed",
        bus=int(gpu.attrib["id"].split(":")[1], 16),
        serial=say(gpu, "serial"),
        total_mib=mib(gpu, "fb_memory_usage/total") or 0,
        reserved_mib=mib(gpu, "fb_memory_usage/reserved"),
        used_mib=mib(gpu, "fb_memory_usage/used") or 0,
        mode=MODES.get(say(gpu, "compute_mode") or ""),
        mig={"Enabled": True, "Disabled": False}.get(say(gpu, "mig_mode/current_mig") or ""),
        slices=len(gpu.findall("mig_devices/mig_device")),
        processes=None if listed is None else tuple(read_process(row) for row in listed.iter("process_info")),
    )


def play_capture(card: CapturedCard) -> SimulatedNvml:
    """A machine of this one card; the caller leaves it as a context."""
    known = next((board for board in BOARDS.values() if board.name == card.name), None)
    board = known or Board(card.name, 0, 0, 0x10DE, (7, 0), 6, 1, 100)
    board = replace(
        board,
        memory_mib=card.total_mib,
        reserved_mib=card.reserved_mib or 0,
        cut=board.cut if card.mig is not None else "",
        serial=card.serial is not None,
    )
    sim = SimulatedNvml(Machine("captured", (Place(board, card.uuid, card.bus, 0),), lambda _a, _b: SYS))
    sim.use_memory(0, card.used_mib - sum(size for _, _, size in card.processes or ()))
    sim.set_card(0, compute_mode=card.mode, **({} if card.serial is None else {"serial": card.serial}))
    if card.reserved_mib is None:
        sim.inject("nvmlDeviceGetMemoryInfo_v2", "FUNCTION_NOT_FOUND")
    if card.mig:
        sim.set_mig(0, enabled=True)
    for pid, kind, size in card.processes or ():
        sim.add_process(0, pid, memory_mib=size, kind="graphics" if kind == "G" else "compute")
    if card.processes is None:
        for form in ("_v2", "_v3"):
            sim.inject(f"nvmlDeviceGetComputeRunningProcesses{form}", "FUNCTION_NOT_FOUND")
    return sim


def read_process(row: ET.Element) -> tuple[int, str, int]:
    return int(say(row, "pid") or 0), say(row, "type") or "C", mib(row, "used_memory") or 0


def say(element: ET.Element, path: str) -> str | None:
    """The text at `path`; None for what is absent or not applicable."""
    text = element.findtext(path)
    return None if text is None or text.strip() in {"", "N/A"} else text.strip()


def mib(element: ET.Element, path: str) -> int | None:
    text = say(element, path)
    return None if text is None else int(text.split()[0])
