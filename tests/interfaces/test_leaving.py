"""How commands end: at a signal in any moment, in a pipe that nobody reads, with nowhere to print to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import interrupted
from tests.support.command import ROOT, Done
from tests.support.local import wait_for
from tests.support.service import LiveService, environment

PATIENCE_S = 300


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def at(service: LiveService, number: signal.Signals, when: str, *words: str) -> Done:
    """`aliquot WORDS...` that is sent a signal then."""
    program = [sys.executable, str(Path(interrupted.__file__)), number.name, when, *words]
    variables = environment() | {"ALIQUOT_SOCKET": str(service.socket)}
    done = subprocess.run(
        program,
        env=variables,
        cwd=service.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def last(service: LiveService) -> str:
    return service.client.jobs()[-1].id


def document(service: LiveService) -> str:
    head = "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: a}\n"
    return str(service.write("a.yaml", f"{head}spec: {{cpu: 1, command: echo}}\n"))


@pytest.mark.parametrize(
    ("module", "words"),
    [
        pytest.param("aliquot.interfaces.cli.quick", ("run", "--", "true"), id="the first module"),
        pytest.param("typer", ("run", "--", "true"), id="the parser"),
        pytest.param("aliquot.interfaces.cli.live", ("run", "--", "true"), id="the command"),
        pytest.param("msgspec", ("run", "--", "true"), id="a compiled module"),
        pytest.param("aliquot.client.client", ("run", "--", "true"), id="the client"),
        pytest.param("aliquot.interfaces.cli.job_rows", ("jobs",), id="jobs"),
        pytest.param("aliquot.config.source", ("submit", "none.yaml"), id="submit"),
        pytest.param("aliquot.interfaces.cli.live_run", ("wait", "1"), id="wait"),
        pytest.param("aliquot.interfaces.cli.live_run", ("logs", "-f", "1"), id="logs"),
        pytest.param("rich.live", ("top",), id="top"),
        pytest.param("uvicorn", ("up", "--simulate", "l40s-4", "--state", "s2"), id="up"),
        pytest.param("numpy", ("simulate", str(ROOT / "examples/first")), id="simulate"),
    ],
)
def test_an_interrupt_while_modules_are_loaded_is_130_and_no_traceback(
    service: LiveService, module: str, words: tuple[str, ...]
) -> None:
    done = at(service, signal.SIGINT, f"load:{module}", *words)
    assert (done.code, done.out, done.err.strip()) == (130, "", "")


@pytest.mark.parametrize("module", ["aliquot", "aliquot.reporting", "aliquot.__main__", "aliquot.interfaces"])
def test_the_program_may_be_interrupted_before_anything_of_it_is_loaded(module: str) -> None:
    script = (
        "import os, runpy, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        f"runpy.run_path({str(ROOT / 'bin/aliquot')!r}, run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("flags", [(), ("--detach",), ("--array", "0-2")], ids=["alone", "detached", "array"])
def test_a_job_submitted_in_the_moment_of_a_signal_is_not_left_behind(
    service: LiveService, moment: str, number: signal.Signals, flags: tuple[str, ...]
) -> None:
    blocker = service.submit("sleep 600", gpus=8)
    service.until_running(blocker)
    done = at(service, number, f"{moment}:/v1/jobs", "run", *flags, "--", "sleep", "600")
    assert "Traceback" not in done.err
    assert {job.phase for job in service.client.jobs() if job.id != blocker and job.over_ms is None} == set()
    assert done.code == 128 + number
    service.client.cancel(blocker)
    service.client.wait(blocker)


def test_a_service_that_never_answers_is_left_at_the_second_interrupt(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        with subprocess.Popen(
            [sys.executable, "-m", "aliquot", "run", "--socket", str(tmp_path / "s"), "--", "true"],
            env=environment(), stderr=subprocess.PIPE, text=True,
        ) as running:  # fmt: skip  # two lines read better than nine
            asking, _ = listening.accept()
            assert asking.recv(1)
            while running.poll() is None:
                running.send_signal(signal.SIGINT)
                time.sleep(0.05)
            _, err = running.communicate()
            asking.close()
    said = "the service has not answered; 'aliquot jobs' shows whether it has the job\n"
    assert (running.returncode, err) == (130, said)


def test_a_signal_before_the_answer_reaches_a_job_that_runs_by_then(service: LiveService) -> None:
    done = at(service, signal.SIGTERM, "after:/v1/jobs", "run", "--", "sleep", "600")
    assert done.code == 128 + signal.SIGTERM
    assert service.client.job(last(service)).is_over


@pytest.mark.parametrize(
    ("path", "words"),
    [
        pytest.param("/v1/batches", ("submit", "a.yaml"), id="submit"),
        pytest.param("/v1/gpus", ("gpus",), id="gpus"),
        pytest.param("/v1/gpus", ("top", "--once"), id="top"),
    ],
)
def test_an_interrupt_in_the_middle_of_a_command_is_130(
    service: LiveService, path: str, words: tuple[str, ...]
) -> None:
    document(service)
    for moment in ("before", "after"):
        done = at(service, signal.SIGINT, f"{moment}:{path}", *words)
        assert (done.code, done.err.strip()) == (130, "")


def test_an_interrupt_ends_who_waits_for_a_job_and_not_the_job(service: LiveService) -> None:
    job = service.submit("echo begun; sleep 600")
    service.until_running(job)
    done = at(service, signal.SIGINT, f"after:/v1/jobs/{job}", "wait", job)
    assert (done.code, done.err) == (130, "")
    reading = service.spawn("logs", "-f", job)
    assert reading.stdout is not None
    assert reading.stdout.readline() == "begun\n"
    reading.send_signal(signal.SIGINT)
    _, err = reading.communicate(timeout=PATIENCE_S)
    assert (reading.returncode, err) == (130, "")
    assert service.client.job(job).job.phase == "running"
    service.client.cancel(job)


def test_a_hangup_that_is_ignored_is_not_passed_on(service: LiveService) -> None:
    words = [sys.executable, "-m", "aliquot", "run", "--", "sh", "-c", "echo ready; read x < go; echo $x"]
    os.mkfifo(service.folder / "go")
    variables = environment() | {"ALIQUOT_SOCKET": str(service.socket)}
    with subprocess.Popen(
        ["nohup", *words], env=variables, cwd=service.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as running:  # fmt: skip  # two lines read better than nine
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGHUP)
        (service.folder / "go").write_text("on\n")
        out, err = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, out) == (0, "on\n"), err


def into_nothing(service: LiveService, *words: str) -> tuple[int, str]:
    """The code of `aliquot WORDS...` whose output nobody reads, and what it says on standard error."""
    here, there = os.pipe()
    os.close(here)
    with subprocess.Popen(
        [sys.executable, "-m", "aliquot", *words], cwd=service.folder, stdout=there, stderr=subprocess.PIPE,
        env=environment() | {"ALIQUOT_SOCKET": str(service.socket)}, text=True,
    ) as running:  # fmt: skip  # two lines read better than nine
        os.close(there)
        _, err = running.communicate(timeout=PATIENCE_S)
    return running.returncode, err


def test_a_job_whose_output_nobody_reads_is_given_up(service: LiveService) -> None:
    code, err = into_nothing(service, "run", "--", "sh", "-c", "echo a; sleep 600")
    assert (code, err) == (141, "")
    job = last(service)
    wait_for(lambda: service.client.job(job).is_over, "the job to end")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--help",), id="help"),
        pytest.param(("run", "--help"), id="help of a command"),
        pytest.param(("--version",), id="version"),
        pytest.param(("jobs",), id="jobs"),
        pytest.param(("jobs", "--json"), id="jobs in JSON"),
        pytest.param(("gpus",), id="gpus"),
        pytest.param(("queues", "--socket={socket}"), id="queues"),
        pytest.param(("logs", "{job}"), id="logs"),
        pytest.param(("job", "{job}"), id="job"),
        pytest.param(("top", "--once"), id="top"),
        pytest.param(("submit", "a.yaml"), id="submit"),
        pytest.param(("run", "--detach", "--", "true"), id="a job left to itself"),
        pytest.param(("policies",), id="policies"),
        pytest.param(("simulate", str(ROOT / "examples/first")), id="simulate"),
        pytest.param(("simulate", str(ROOT / "examples/first"), "--json", "-"), id="simulate in JSON"),
        pytest.param(("explain", str(ROOT / "examples/first/first.yaml"), "train"), id="explain"),
    ],
)
def test_into_a_pipe_that_nobody_reads_every_command_ends_quietly(
    service: LiveService, words: tuple[str, ...]
) -> None:
    document(service)
    job = service.submit("echo a")
    service.client.wait(job)
    said = [word.format(job=job, socket=service.socket) for word in words]
    code, err = into_nothing(service, *said)
    assert (code, "Traceback" in err, "Exception" in err) == (141, False, False), err


def test_where_there_is_no_room_to_print_that_is_said(service: LiveService) -> None:
    for words in (("jobs",), ("gpus",), ("--help",)):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "aliquot", *words], stdout=full, stderr=subprocess.PIPE, text=True,
                env=environment() | {"ALIQUOT_SOCKET": str(service.socket)}, check=False, timeout=PATIENCE_S,
            )  # fmt: skip  # two lines read better than nine
        assert done.returncode == 2, done.stderr
        assert done.stderr == "aliquot: error: what is printed cannot be written: No space left on device\n"


def test_without_an_output_nothing_is_printed_and_all_is_well(service: LiveService) -> None:
    for words in ("jobs", "gpus", "--help"):
        done = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m aliquot {words} >&-'],
            env=environment() | {"ALIQUOT_SOCKET": str(service.socket)}, stderr=subprocess.PIPE, text=True,
            check=False, timeout=PATIENCE_S,
        )  # fmt: skip  # two lines read better than nine
        assert (done.returncode, done.stderr) == (0, "")
