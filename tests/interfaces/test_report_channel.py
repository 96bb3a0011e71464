"""What jobs report of themselves, through a running service; and that nothing they report can hurt."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import aliquot
from tests.interfaces.test_api import NOBODY, as_nobody
from tests.support.command import ROOT
from tests.support.local import is_root, wait_for
from tests.support.service import LiveService

REPORT = f"{sys.executable} -m aliquot report"
PYTHON = {"PYTHONPATH": str(ROOT / "src")}


def test_a_job_tells_how_far_it_is() -> None:
    program = (
        "import aliquot, time\n"
        "for step in range(1, 30):\n"
        "    aliquot.report(step=step, tokens=100 * step, flops=1e12 * step)\n"
        "    time.sleep(.02)\n"
        "aliquot.report(checkpoint=True)\n"
        "time.sleep(60)"
    )
    script = f"{sys.executable} -c '{program}'"
    with LiveService() as service:
        job = service.submit(script, env=PYTHON)
        wait_for(lambda: (said := service.client.job(job).progress) and said[0].checkpoint_ms, "its reports")
        (said,) = service.client.job(job).progress
        assert (said.step, said.tokens) == (29, 2900)
        assert said.steps_per_s is not None
        assert said.tokens_per_s == pytest.approx(100 * said.steps_per_s)
        peak = 312e12  # of an A100 in bf16
        assert said.flops_per_s is not None
        assert said.mfu == pytest.approx(said.flops_per_s / peak)
        shown = service.run("job", job).out
        assert "step 29" in shown
        assert "% of what its cards can do" in shown
        service.client.cancel(job)


def test_a_shell_script_reports_too_and_what_it_does_not_say_is_unknown() -> None:
    with LiveService() as service:
        job = service.submit(f"{REPORT} --step 3; sleep 60", env=PYTHON)
        wait_for(lambda: service.client.job(job).progress, "its report")
        (said,) = service.client.job(job).progress
        assert (said.step, said.steps_per_s, said.mfu, said.checkpoint_ms) == (3, None, None, None)
        service.client.cancel(job)


def test_reports_that_are_wrong_hurt_nobody() -> None:
    junk = (
        "import json, os, socket\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "wrong = [(999, 1, 1), (1, 7, 1), (1, 1, -1)]\n"
        "bodies = [json.dumps(dict(job=str(j), attempt=a, step=n)).encode() for j, a, n in wrong]\n"
        "for body in [b'', b'{', b'[1]', b'x' * 4000, *bodies]:\n"
        "    s.sendto(body, os.environ['ALIQUOT_REPORT'])"
    )
    with LiveService() as service:
        job = service.submit(
            f'{sys.executable} -c "$JUNK"; {REPORT} --step never; echo $?; {REPORT} --step 5; sleep 60',
            env=PYTHON | {"JUNK": junk},
        )
        wait_for(lambda: service.client.job(job).progress, "the report that is right")
        (said,) = service.client.job(job).progress
        assert (said.step, said.reports) == (5, 1)
        text = service.client.output(job).body.decode()
        assert "--step never: a whole number is right" in text
        assert "0\n" in text
        service.client.cancel(job)


@pytest.mark.parametrize("ends", [LiveService.kill, LiveService.stop], ids=["killed", "stopped"])
def test_a_job_that_runs_on_reports_to_the_next_service(ends: Callable[[LiveService], object]) -> None:
    program = (
        "import aliquot, time\nfor step in range(2000):\n    aliquot.report(step=step)\n    time.sleep(.02)"
    )
    with LiveService() as service:
        job = service.submit(f"exec {sys.executable} -c '{program}'", env=PYTHON)
        wait_for(lambda: service.client.job(job).progress, "a report")
        ends(service)
        service.start()
        wait_for(lambda: service.client.job(job).progress, "a report to the next")
        service.client.cancel(job)


@pytest.mark.skipif(not is_root(), reason="only root may become somebody else")
def test_each_user_has_a_socket_of_his_own_that_he_alone_may_write_to() -> None:
    with LiveService() as service:
        roots = service.submit("echo $ALIQUOT_REPORT")
        service.client.wait(roots)
        path = service.client.output(roots).body.decode().strip()
        script = f"echo $ALIQUOT_REPORT; [ -w $ALIQUOT_REPORT ] && echo mine; [ -w {path} ] || echo shut"
        (said,) = as_nobody(
            service.socket,
            f"""
job = client.submit(Submission(command=("sh", "-c", {script!r}), spec={{"gpu": {{}}}}))
client.wait(job)
say(client.output(job).body.decode().split())
""",
        )
        ((own, *words),) = said
        assert (Path(path).parent, Path(path).name) == (Path(own).parent, "0")
        assert (Path(own).name, words) == (str(NOBODY), ["mine", "shut"])


def test_outside_of_a_job_a_report_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALIQUOT_REPORT", raising=False)
    assert aliquot.report(step=1) is False


def test_a_service_that_is_away_does_not_hurt_the_job(tmp_path_factory: pytest.TempPathFactory) -> None:
    code = "import aliquot; print(aliquot.report(step=1))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=PYTHON | {"ALIQUOT_REPORT": "/nowhere/report.sock"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_to_import_it_loads_nothing_heavy() -> None:
    code = "import sys, aliquot; print(sorted(name for name in sys.modules if name.split('.')[0] in HEAVY))"
    heavy = "HEAVY = {'msgspec', 'numpy', 'numba', 'typer', 'starlette', 'asyncio', 'json', 'socket'}\n"
    done = subprocess.run(
        [sys.executable, "-c", heavy + code], env=PYTHON, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
