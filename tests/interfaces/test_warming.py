"""What a service has compiled: once for each version, before its first job, and not by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from aliquot.bootstrap_kernels import DONE, Warming
from aliquot.config.kernel_cache import kernel_folder
from tests.support.command import ROOT
from tests.support.local import is_root
from tests.support.service import LiveService

SAID = "is compiled, once for this version"
POLICY = """\
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {name: teams}
spec: {queues: [{name: vision, quota: {cards: 6}}, {name: text, quota: {cards: 2}}]}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: lab}
spec: {preemption: {grace: 1s}}
"""


def make_done(cache: Path) -> Path:
    """A cache in which all is said to be compiled."""
    folder = kernel_folder(cache)
    folder.mkdir(parents=True)
    (folder / DONE).touch()
    return folder


@pytest.mark.slow
def test_a_fresh_installation_compiles_before_its_first_job_and_says_so_once(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "aliquot", "up", "--simulate", "l40s-4", "--state", str(tmp_path / "s")]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path / "c")}
    for said in (1, 0):
        with subprocess.Popen(
            words, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as service:
            assert service.stdout is not None
            lines = [service.stdout.readline()]
            while not lines[-1].startswith("listening"):
                lines.append(service.stdout.readline())
                assert lines[-1], f"it has ended: {lines}"
            assert Warming(tmp_path / "c", tmp_path / "s").is_done, "before it takes jobs"
            assert sum(SAID in line for line in lines) == said
            service.send_signal(signal.SIGTERM)


def test_plans_of_a_service_need_nothing_compiled(tmp_path: Path) -> None:
    """Backfill, preemption, taking back what is lent: nothing is left where compiled kernels are kept."""
    folder = make_done(tmp_path)
    with LiveService(XDG_CACHE_HOME=str(tmp_path)) as service:
        file = service.write("site.yaml", POLICY)
        assert service.run("apply", file).code == 0
        lent = service.submit("sleep 600", gpus=8, spec={"gpu": {"count": 8}, "queue": "text"})
        service.until_running(lent)
        owed = service.submit("true", gpus=6, spec={"gpu": {"count": 6}, "queue": "vision"})
        service.client.wait(owed)
        random = Random(1)
        for _ in range(20):
            queue = random.choice(["text", "vision"])
            service.submit("true", gpus=random.randrange(1, 9), spec={"queue": queue})
        service.client.cancel(lent)
    compiled = {file.name.partition(".")[0] for file in folder.rglob("*.nbi")}
    assert compiled <= {"counts", "backfill", "forward"}, "what counts when jobs start, in its own thread"


def test_who_compiled_is_gone_when_the_service_is(tmp_path: Path) -> None:
    warming = Warming(tmp_path, tmp_path / "state")
    assert not warming.is_done
    warming.begin()
    warming.close()
    warming.wait()
    assert not warming.is_done


def test_an_interrupt_while_it_compiles_ends_the_service_and_who_compiles(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "aliquot", "up", "--simulate", "l40s-4", "--state", str(tmp_path / "s")]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src"), "XDG_CACHE_HOME": str(tmp_path / "c")}
    with subprocess.Popen(words, env=variables, stderr=subprocess.PIPE, text=True) as service:
        assert service.stderr is not None
        said = ""
        while SAID not in said:
            said = service.stderr.readline()
            assert said, "it has ended"
        service.send_signal(signal.SIGINT)
        _, err = service.communicate(timeout=60)
    assert (service.returncode, err) == (130, "")


def test_where_the_users_cache_cannot_be_written_the_state_takes_it(tmp_path: Path) -> None:
    if is_root():
        nowhere = Path("/proc/none")
    else:
        nowhere = tmp_path / "closed"
        nowhere.mkdir(mode=0o500)
    assert Warming(nowhere, tmp_path / "state").cache == tmp_path / "state"
    assert Warming(tmp_path / "open", tmp_path / "state").cache == tmp_path / "open"
