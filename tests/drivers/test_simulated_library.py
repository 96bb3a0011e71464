"""The simulated NVML through the vendor's own binding: what a program on a real machine would see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from ctypes import Structure, byref, c_uint, c_ulonglong
from types import ModuleType
from typing import Any

import pytest

from tests.drivers.conftest import ROOT, RunPython, Simulate
from tests.support.nvml.build import find_header
from tests.support.nvml.state import SimulatedNvml

MIB = 1 << 20


class OldProcess(Structure):
    """A process as drivers before instances listed it."""

    _fields_ = (("pid", c_uint), ("usedGpuMemory", c_ulonglong))


@pytest.fixture
def open_nvml(pynvml: ModuleType) -> Iterator[Callable[[], ModuleType]]:
    opened = []

    def start() -> ModuleType:
        pynvml.nvmlInit()
        opened.append(True)
        return pynvml

    yield start
    for _ in opened:
        pynvml.nvmlShutdown()


def refusal(pynvml: ModuleType, symbol: str, *arguments: Any) -> int:
    with pytest.raises(pynvml.NVMLError) as caught:
        getattr(pynvml, symbol)(*arguments)
    return int(caught.value.value)


def test_a_card_is_found_by_index_uuid_serial_and_bus_address(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("a100-40x8")
    nvml = open_nvml()
    handle = nvml.nvmlDeviceGetHandleByIndex(5)
    uuid, serial = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetSerial(handle)
    address = nvml.nvmlDeviceGetPciInfo(handle).busId
    found = [
        nvml.nvmlDeviceGetHandleByUUID(uuid),
        nvml.nvmlDeviceGetHandleByPciBusId(address),
        nvml.nvmlDeviceGetHandleByPciBusId(address.lower()[4:]),
        nvml.nvmlDeviceGetHandleBySerial(serial),
    ]
    assert uuid == sim.uuid(5)
    assert [nvml.nvmlDeviceGetIndex(card) for card in found] == [5] * 4


def test_the_two_forms_of_memory_count_what_the_driver_keeps_differently(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("t4")
    nvml = open_nvml()
    sim.add_process(0, 4321, memory_mib=1000)
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    old, new = nvml.nvmlDeviceGetMemoryInfo(handle), nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
    assert (old.total, old.used) == (15360 * MIB, 1443 * MIB)
    assert (new.total, new.reserved, new.used) == (15360 * MIB, 443 * MIB, 1000 * MIB)
    assert old.free == new.free == 13917 * MIB


@pytest.mark.parametrize("version", [0, 1, (3 << 24) | 40, (2 << 24) | 41])
def test_a_structure_of_another_version_is_refused(
    simulate: Simulate, open_nvml: Callable[[], ModuleType], version: int
) -> None:
    simulate("t4")
    nvml = open_nvml()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    mismatch = nvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
    memory = nvml.c_nvmlMemory_v2_t()
    memory.version = version
    ask = nvml._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")
    assert ask(handle, byref(memory)) == mismatch


@pytest.mark.parametrize("form", ["", "_v2", "_v3"])
def test_processes_are_listed_in_the_forms_of_three_ages(
    simulate: Simulate, open_nvml: Callable[[], ModuleType], form: str
) -> None:
    sim = simulate("mixed")
    nvml = open_nvml()
    sim.add_process(2, 100, memory_mib=300)
    sim.add_process(2, 101, memory_mib=None)
    sim.add_process(2, 102, memory_mib=7, kind="graphics")
    rows = (nvml.c_nvmlProcessInfo_v2_t if form else OldProcess) * 8
    handle, array, count = nvml.nvmlDeviceGetHandleByIndex(2), rows(), c_uint(8)
    ask = nvml._nvmlGetFunctionPointer(f"nvmlDeviceGetComputeRunningProcesses{form}")
    assert ask(handle, byref(count), array) == 0
    assert [(row.pid, row.usedGpuMemory) for row in array[: count.value]] == [
        (100, 300 * MIB),
        (101, 2**64 - 1),
    ]
    assert ask(handle, byref(c_uint(1)), array) == nvml.NVML_ERROR_INSUFFICIENT_SIZE


def test_a_followed_process_leaves_the_card_when_it_dies(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("t4")
    nvml = open_nvml()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    with subprocess.Popen(["sleep", "60"]) as program:
        sim.add_process(0, program.pid, memory_mib=500, follow=True)
        assert [row.pid for row in nvml.nvmlDeviceGetComputeRunningProcesses(handle)] == [program.pid]
        program.kill()
    assert nvml.nvmlDeviceGetComputeRunningProcesses(handle) == []
    assert nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used == 0


def test_an_injected_error_strikes_one_symbol_of_one_card_as_often_as_asked(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("l40s-4")
    nvml = open_nvml()
    cards = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(4)]
    sim.inject("nvmlDeviceGetTemperature", "UNKNOWN", card=1, skip=1, times=2)

    def ask(card: int) -> int:
        try:
            return int(nvml.nvmlDeviceGetTemperature(cards[card], nvml.NVML_TEMPERATURE_GPU))
        except nvml.NVMLError as error:
            return -int(error.value)

    assert [ask(1) for _ in range(5)] == [34, -999, -999, 34, 34]
    assert [ask(card) for card in (0, 2, 3)] == [34, 34, 34]


def test_a_lost_card_answers_nothing_and_the_others_go_on(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("l40s-4")
    nvml = open_nvml()
    handle = nvml.nvmlDeviceGetHandleByIndex(2)
    sim.lose(2)
    lost = nvml.NVML_ERROR_GPU_IS_LOST
    assert nvml.nvmlDeviceGetCount() == 4
    assert refusal(nvml, "nvmlDeviceGetHandleByIndex", 2) == lost
    assert refusal(nvml, "nvmlDeviceGetName", handle) == lost
    assert nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(3)) == "NVIDIA L40S"
    sim.find_again(2)
    assert nvml.nvmlDeviceGetName(handle) == "NVIDIA L40S"


def test_an_xid_reaches_every_listener_of_that_card(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("l40s-4")
    nvml = open_nvml()
    heard: dict[str, list[int]] = {}

    def listen(name: str, card: int) -> None:
        events = nvml.nvmlEventSetCreate()
        handle = nvml.nvmlDeviceGetHandleByIndex(card)
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
        ready.release()
        try:
            heard[name] = [int(nvml.nvmlEventSetWait_v2(events, 2000).eventData)]
        except nvml.NVMLError as error:
            heard[name] = [-int(error.value)]
        nvml.nvmlEventSetFree(events)

    ready = threading.Semaphore(0)
    threads = [threading.Thread(target=listen, args=(f"{i}", 1)) for i in range(2)]
    for thread in threads:
        thread.start()
    for _ in threads:
        ready.acquire()
    began = time.monotonic()
    sim.raise_xid(1, 48)
    for thread in threads:
        thread.join()
    assert heard == {"0": [48], "1": [48]}
    assert time.monotonic() - began < 1


def test_waiting_for_an_event_of_another_card_ends_at_the_time_limit(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("l40s-4")
    nvml = open_nvml()
    events = nvml.nvmlEventSetCreate()
    nvml.nvmlDeviceRegisterEvents(
        nvml.nvmlDeviceGetHandleByIndex(0), nvml.nvmlEventTypeXidCriticalError, events
    )
    sim.raise_xid(1, 48)
    assert refusal(nvml, "nvmlEventSetWait_v2", events, 30) == nvml.NVML_ERROR_TIMEOUT
    nvml.nvmlEventSetFree(events)


def test_an_xid_crosses_process_borders(simulate: Simulate, run_python: RunPython) -> None:
    sim = simulate("t4")
    listener = f"""
import pynvml as n, sys
n.nvmlInit(); events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(n.nvmlDeviceGetHandleByIndex(0), n.nvmlEventTypeXidCriticalError, events)
from pathlib import Path; Path({str(sim.path)!r} + '.ready').touch()
print(n.nvmlEventSetWait_v2(events, 5000).eventData)
"""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(run_python(sim, listener)))
    thread.start()
    ready = sim.path.with_name(sim.path.name + ".ready")
    while thread.is_alive() and not ready.exists():
        time.sleep(0.005)
    sim.raise_xid(0, 31)
    thread.join()
    assert said == ["31"]


def test_all_processes_see_one_machine(simulate: Simulate, run_python: RunPython) -> None:
    sim = simulate("a100-40x8")
    change = (
        "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(3);"
        "n.nvmlDeviceSetComputeMode(h, n.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)"
    )
    look = (
        "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetComputeMode(n.nvmlDeviceGetHandleByIndex(3)))"
    )
    run_python(sim, change)
    assert run_python(sim, look) == "3"


def test_a_process_killed_inside_a_call_does_not_stop_the_others(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("t4")
    nvml = open_nvml()
    holder = "import time\nfrom tests.support.nvml.state import joined_machine\nsim = joined_machine()\nwith sim.edit():\n    print('held', flush=True)\n    time.sleep(60)"  # noqa: E501  # a program in one piece
    with subprocess.Popen(
        [sys.executable, "-c", holder], env=sim.env(PYTHONPATH=str(ROOT)), stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "held"
        program.send_signal(signal.SIGKILL)
    assert nvml.nvmlDeviceGetCount() == 1


def test_many_processes_change_it_at_once_without_losing_anything(simulate: Simulate) -> None:
    sim = simulate("a100-40x8")
    worker = "import os\nfrom tests.support.nvml.state import joined_machine\nsim = joined_machine()\nfor i in range(100): sim.add_process(i % 8, os.getpid() * 1000 + i, memory_mib=1)"  # noqa: E501  # a program in one piece
    programs = [
        subprocess.Popen([sys.executable, "-c", worker], env=sim.env(PYTHONPATH=str(ROOT))) for _ in range(4)
    ]
    assert [program.wait() for program in programs] == [0] * 4
    rows = {row.pid for card in range(8) for row in sim.state.device[card].process if row.pid}
    assert len(rows) == 400


@pytest.mark.parametrize(
    ("machine", "code", "expected"),
    [
        pytest.param("t4", "DRIVER_NOT_LOADED", 9, id="the driver is not loaded"),
        pytest.param("t4", "LIB_RM_VERSION_MISMATCH", 18, id="updated without a reboot"),
    ],
)
def test_opening_fails_as_asked(
    simulate: Simulate, pynvml: ModuleType, machine: str, code: str, expected: int
) -> None:
    simulate(machine).fail_init(code)
    assert refusal(pynvml, "nvmlInit") == expected


def test_without_a_state_there_is_no_driver(
    simulate: Simulate, pynvml: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate("t4")
    monkeypatch.delenv("ALIQUOT_NVML_STATE")
    assert refusal(pynvml, "nvmlInit") == pynvml.NVML_ERROR_DRIVER_NOT_LOADED


def test_it_answers_at_least_the_symbols_that_tools_ask_for(nvml_library: Any) -> None:
    symbols = exported(str(nvml_library))
    declared = find_header().read_text(encoding="utf-8", errors="replace")
    assert len(symbols) >= 150
    assert sorted(symbol for symbol in symbols if symbol not in declared) == []


def test_health_is_told_by_calls_and_by_fields_alike(
    simulate: Simulate, open_nvml: Callable[[], ModuleType]
) -> None:
    sim = simulate("a100-40")
    nvml = open_nvml()
    sim.set_card(
        0, remapped_uncorrected=3, remap_pending=1, ecc_uncorrected=[2, 5], throttle=8, temperature=88
    )
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    fields = nvml.nvmlDeviceGetFieldValues(
        handle,
        [nvml.NVML_FI_DEV_REMAPPED_UNC, nvml.NVML_FI_DEV_REMAPPED_PENDING, nvml.NVML_FI_DEV_RETIRED_DBE],
    )
    assert list(nvml.nvmlDeviceGetRemappedRows(handle)) == [0, 3, 1, 0]
    assert [(field.nvmlReturn, field.value.uiVal) for field in fields[:2]] == [(0, 3), (0, 1)]
    assert fields[2].nvmlReturn == nvml.NVML_ERROR_NOT_SUPPORTED
    assert nvml.nvmlDeviceGetTotalEccErrors(handle, 1, 1) == 5
    assert nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) == nvml.nvmlClocksThrottleReasonHwSlowdown
    assert nvml.nvmlDeviceGetTemperature(handle, 0) == 88


def exported(library: str) -> list[str]:
    """Names of NVML's own symbols in a compiled library, read from its string table."""
    done = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    names = [line.split()[-1] for line in done.stdout.splitlines()]
    return [name for name in names if name.startswith("nvml")]


def test_a_stand_in_program_takes_memory_on_the_cards_it_may_see(simulate: Simulate) -> None:
    sim: SimulatedNvml = simulate("a100-40x8")
    environment = sim.env(PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES=f"{sim.uuid(6)},{sim.uuid(2)}")
    command = [sys.executable, "-m", "tests.support.nvml.occupy", "--memory-mib", "32768"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT) as program:
        assert program.stdout is not None
        assert program.stdout.readline().strip() == "on 6,2"
        held = [
            row.memory // MIB
            for card in (6, 2)
            for row in sim.state.device[card].process
            if row.pid == program.pid
        ]
        os.kill(program.pid, signal.SIGTERM)
    assert held == [32768, 32768]


def test_a_hung_card_hangs_only_its_caller(simulate: Simulate, open_nvml: Callable[[], ModuleType]) -> None:
    sim = simulate("l40s-4")
    nvml = open_nvml()
    cards = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(2)]
    sim.inject("nvmlDeviceGetName", "TIMEOUT", card=1, times=1, delay_ms=400)
    hung = threading.Thread(target=refusal, args=(nvml, "nvmlDeviceGetName", cards[1]))
    hung.start()
    while not sim.state.fault[0].hits:
        time.sleep(0.001)
    assert nvml.nvmlDeviceGetName(cards[0]) == "NVIDIA L40S"
    assert hung.is_alive()
    hung.join()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["t4", "--", "sh", "-c", "test -s $ALIQUOT_NVML_STATE; exit 7"], 7, "", id="a command"),
        pytest.param(["t4"], 2, "usage", id="no command"),
        pytest.param(["z9", "--", "true"], 2, "a100-40x8", id="no such machine"),
    ],
)
def test_a_command_is_played_on_a_machine(
    nvml_library: Any, arguments: list[str], code: int, said: str
) -> None:
    command = [sys.executable, "-m", "tests.support.nvml.play", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr
