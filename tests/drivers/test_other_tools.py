"""Tools that people use see the same cards as Aliquot. Each runs as its users run it, in its own process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.drivers.conftest import RunPython, Simulate
from tests.support.nvml.state import SimulatedNvml


def run_tool(sim: SimulatedNvml, module: str, *arguments: str) -> str:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed; pip install {module}")
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=sim.env(TERM="dumb", COLUMNS="100"),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def busy_machine(simulate: Simulate) -> SimulatedNvml:
    sim = simulate("a100-40x8")
    sim.add_process(3, os.getpid(), memory_mib=32768, sm_util=77)
    sim.set_card(3, gpu_util=77)
    sim.lose(5)
    return sim


def test_gpustat_shows_the_same_cards(simulate: Simulate) -> None:
    sim = busy_machine(simulate)
    cards = json.loads(run_tool(sim, "gpustat", "--json"))["gpus"]
    assert [card["uuid"] for card in cards if card["index"] != 5] == [sim.uuid(i) for i in range(8) if i != 5]
    assert [process["pid"] for process in cards[3]["processes"]] == [os.getpid()]
    assert (cards[3]["utilization.gpu"], cards[3]["processes"][0]["gpu_memory_usage"]) == (77, 32768)


def test_nvitop_shows_the_same_cards(simulate: Simulate) -> None:
    shown = run_tool(busy_machine(simulate), "nvitop", "-1", "--ascii")
    assert shown.count("A100-SXM4-40GB") == 7
    assert "GPU is Lost" in shown
    assert "32.00GiB / 40.00GiB" in shown
    assert str(os.getpid()) in shown


def test_nvitop_shows_slices(simulate: Simulate, run_python: RunPython) -> None:
    sim = simulate("a100-40")
    sim.set_mig(0, enabled=True)
    cut = (
        "import pynvml as n; n.nvmlInit(); card = n.nvmlDeviceGetHandleByIndex(0)\n"
        "for profile, whole in ((9, 2), (14, 1)):\n"
        "    n.nvmlGpuInstanceCreateComputeInstance(n.nvmlDeviceCreateGpuInstance(card, profile), whole)"
    )
    run_python(sim, cut)
    shown = run_tool(sim, "nvitop", "-1", "--ascii")
    assert "3g.20gb" in shown
    assert "2g.10gb" in shown
