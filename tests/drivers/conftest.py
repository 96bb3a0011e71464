"""Machines for the driver tests: the simulated NVML, in this process or in others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

from aliquot.catalog import load_catalog
from aliquot.core.inventory import CardModel
from tests.support.nvml.build import CannotBuildError, build_library
from tests.support.nvml.state import SimulatedNvml

ROOT = Path(__file__).resolve().parents[2]

Simulate = Callable[[str], SimulatedNvml]
RunPython = Callable[[SimulatedNvml, str], str]


@pytest.fixture(scope="session")
def nvml_library() -> Path:
    """The compiled library; skips where it cannot be compiled."""
    try:
        return build_library()
    except CannotBuildError as error:
        pytest.skip(str(error))


@pytest.fixture
def simulate(nvml_library: Path) -> Iterator[Simulate]:
    """`simulate("a100-40x8")`: a machine that this process sees through NVML, until the test ends."""
    with ExitStack() as stack:

        def start(machine: str) -> SimulatedNvml:
            sim = stack.enter_context(SimulatedNvml(machine))
            return stack.enter_context(sim.here())

        yield start


@pytest.fixture
def pynvml(nvml_library: Path) -> ModuleType:
    """The vendor's binding, not yet opened."""
    binding: ModuleType = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    return binding


@pytest.fixture(scope="session")
def models() -> dict[str, CardModel]:
    """The catalogue's GPU models."""
    return dict(load_catalog().models())


@pytest.fixture(scope="session")
def run_python() -> RunPython:
    """Runs a program in a process of its own that sees the machine; returns what it printed."""

    def run(sim: SimulatedNvml, code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=sim.env(PYTHONPATH=f"{ROOT / 'src'}:{ROOT}"),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
