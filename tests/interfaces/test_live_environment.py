"""What of Aliquot a real job finds in its environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.service import LiveService


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def test_a_job_asks_the_service_that_runs_it_whatever_the_shell_said(service: LiveService) -> None:
    words = ("--name", "asker", "--", sys.executable, "-m", "aliquot")
    done = service.run("run", *words, "jobs", ALIQUOT_SOCKET="/run/elsewhere.sock")
    assert done.code == 0, done
    assert "asker" in done.out
    asked = service.run("run", *words, "run", "--detach", "--", "sh", "-c", "echo $ALIQUOT_SOCKET")
    assert asked.code == 0, asked
    inner = asked.out.strip()
    service.client.wait(inner)
    assert service.run("logs", inner).out == f"{service.socket}\n"


def test_nothing_else_of_aliquot_comes_from_the_shell(service: LiveService) -> None:
    done = service.run("run", "--", "env", ALIQUOT_TRACES="/traces", ALIQUOT_JOB="another")
    found = dict(line.split("=", 1) for line in done.out.splitlines() if line.startswith("ALIQUOT_"))
    assert "ALIQUOT_TRACES" not in found
    assert found["ALIQUOT_JOB"] == service.client.jobs()[-1].id
