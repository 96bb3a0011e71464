"""The end of `make demo`: a service on simulated cards, and jobs through it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_ends_with_a_service_and_jobs_that_succeed() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "demo_service.sh"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("succeeded") == 5
    assert "10 succeeded" in done.stdout
    assert "rank 1 of 2" in done.stdout
    assert "cards: GPU-" in done.stdout
