"""The live commands as people run them: a service in one process, commands in others, real jobs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.engines.local.places import find_runtime
from aliquot.interfaces.cli.spelling import spell_explain
from tests.support.command import aliquot, complaint
from tests.support.local import wait_for
from tests.support.service import LiveService


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def test_a_job_of_eight_cards_registers_matches_binds_runs_and_is_reclaimed() -> None:
    with LiveService() as service:
        cards = json.loads(service.run("gpus", "--json").out)
        assert [card["memory_mib"] >= 32 * 1024 for card in cards] == [True] * 8

        script = 'echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $ALIQUOT_JOB"; pwd; exit 7'
        done = service.run("run", "--gpus", "8", "--memory", "32GiB", "--", "sh", "-c", script)
        assert done.code == 7
        uuids = ",".join(card["uuid"] for card in cards)
        assert done.out.splitlines() == [f"PCI_BUS_ID {uuids} 1", str(service.folder)]

        detail = json.loads(service.run("job", "1", "--json").out)
        (attempt,) = detail["attempts"]
        assert (detail["job"]["phase"], detail["job"]["exit_status"]) == ("failed", 7)
        assert (len(attempt["holds"][0]["cards"]), attempt["holds"][0]["memory_mib"]) == (8, 32 * 1024)
        free = json.loads(service.run("gpus", "--json").out)
        assert [card["free_compute_milli"] for card in free] == [1000] * 8
        assert "driver simulated" in service.stop()


def test_a_service_killed_in_the_middle_is_taken_up_where_it_was() -> None:
    with LiveService() as service:
        running = service.spawn(
            "run", "--", "sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.4; done; exit 3"
        )
        wait_for(service.client.jobs, "the job")
        service.until_running("1")
        waiting = service.submit("echo after", gpus=8)
        before = service.client.job("1").attempts
        service.kill().start()
        out, err = running.communicate(timeout=20)
        assert (running.returncode, out.split()) == (3, ["1", "2", "3", "4", "5"]), err
        detail = service.client.job("1")
        assert len(detail.attempts) == 1
        assert detail.attempts[0].granted_ms == before[0].granted_ms
        assert service.client.wait(waiting).job.phase == "succeeded"
        assert service.submit("true") == "3"


def test_what_ends_while_nobody_serves_is_seen_by_the_next_service() -> None:
    with LiveService() as service:
        job = service.submit("sleep 0.5; exit 5")
        service.until_running(job)
        service.stop()
        time.sleep(0.7)
        service.start()
        detail = service.client.wait(job)
        assert (detail.job.phase, detail.job.exit_status, len(detail.attempts)) == ("failed", 5, 1)


def test_a_job_waits_its_turn_and_says_so(service: LiveService) -> None:
    first = service.submit("sleep 30", gpus=8)
    service.until_running(first)
    second = service.spawn("run", "--gpus", "4", "--", "echo", "my turn")
    wait_for(lambda: len(service.client.jobs(over=False)) == 2, "the second job")
    time.sleep(0.8)
    said = service.run("explain", str(int(first) + 1)).out
    assert "Place 1 of 1 in the queue" in said
    assert "1 node lacks free cards: 4 needed, at most 0 free" in said
    assert service.run("cancel", first).code == 0
    out, err = second.communicate(timeout=20)
    assert (second.returncode, out) == (0, "my turn\n")
    assert "place 1 of 1: nothing that is free fits" in err


def test_a_placed_job_is_explained_with_the_terms_of_its_choice(service: LiveService) -> None:
    job = service.submit("sleep 30", gpus=2)
    service.until_running(job)
    said = service.run("explain", job).out
    assert "2 whole cards" in said
    assert "It costs" in said
    service.client.cancel(job)
    assert service.client.wait(job).is_over
    assert "is over: cancelled" in service.run("why", job).out


def test_signals_reach_the_job(service: LiveService) -> None:
    # no shell: a signal reaches the whole process group, and a shell would tell of its children's ends
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('usr', flush=True))\n"
        "signal.signal(signal.SIGINT, lambda *_: (print('int', flush=True), sys.exit(9)))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    running = service.spawn("run", "--", sys.executable, "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGUSR1)
    assert running.stdout.readline() == "usr\n"
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=20)
    assert (running.returncode, out) == (9, "int\n")


def test_an_interrupt_gives_up_a_job_that_waits(service: LiveService) -> None:
    first = service.submit("sleep 30", gpus=8)
    service.until_running(first)
    waiting = service.spawn("run", "--", "true")
    assert waiting.stderr is not None
    assert "waits, place 1 of 1" in waiting.stderr.readline()
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=20)
    assert waiting.returncode == 130
    assert "cancelled" in err
    service.client.cancel(first)
    service.client.wait(first)


def test_detached_it_is_waited_for_and_read_later(service: LiveService) -> None:
    done = service.run(
        "run", "--detach", "--name", "later", "--", "sh", "-c", "echo $FLAG; exit 2", FLAG="up"
    )
    job = done.out.strip()
    assert (done.code, job.isdigit()) == (0, True)
    assert service.run("wait", job).code == 2
    assert service.run("logs", job).out == "up\n"
    assert service.run("logs", "-f", job).out == "up\n"
    listed = service.run("jobs", "--all").out.splitlines()
    assert any(line.split()[:2] == [job, "later"] and line.endswith("2") for line in listed)
    assert "exited with 2" in service.run("job", job).out


def test_a_job_beyond_its_time_is_ended_and_says_why(service: LiveService) -> None:
    done = service.run("run", "--time", "300ms", "--", "sleep", "30")
    assert done.code == 128 + signal.SIGTERM
    assert "failed: time-limit" in done.err


def test_a_command_that_is_not_there_gives_127(service: LiveService) -> None:
    done = service.run("run", "--", "no-such-command")
    assert done.code == 127, done
    assert "no-such-command" in done.err


def test_jobs_of_a_document_are_submitted(service: LiveService) -> None:
    file = service.folder / "jobs.yaml"
    job = "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    asked = [
        job.format(
            name="a", spec="gpu: {memory: 10GiB, compute: 25%}, command: [sh, -c, 'echo $X'], env: {X: 1}"
        ),
        job.format(name="b", spec="gpu: {count: 2}, queue: team, priority: 3, command: pwd, cwd: /tmp"),
    ]
    file.write_text("---\n".join(asked))
    done = service.run("submit", file)
    first, second = done.out.split()
    assert [service.client.wait(job).job.phase for job in (first, second)] == ["succeeded"] * 2
    assert service.client.output(first).body == b"1\n"
    assert service.client.output(second).body == b"/tmp\n"
    hold = service.client.job(first).attempts[0].holds[0]
    assert (hold.whole, hold.compute_milli, hold.memory_mib) == (False, 250, 10 * 1024)
    listed = service.client.job(second).job
    assert (listed.queue, listed.priority, listed.cards) == ("team", 3, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("kind: Job\n", "apiVersion", id="no version"),
        pytest.param("apiVersion: aliquot.dev/v1\nkind: Cluster\n", "kind: 'Cluster'", id="not a job"),
        pytest.param(
            "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: a}\nspec: {gpu: {}}\n",
            "no command",
            id="nothing to run",
        ),
        pytest.param(
            "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: a}\nspec: {command: x, retries: many}\n",
            "retries",
            id="a number in words",
        ),
    ],
)
def test_a_document_that_is_no_job_is_refused(service: LiveService, text: str, words: str) -> None:
    file = service.folder / "bad.yaml"
    file.write_text(text)
    said = complaint(service.run("submit", file))
    assert words in said
    assert str(file) in said


def test_a_drained_machine_starts_nothing_until_undrained(service: LiveService) -> None:
    assert service.run("drain").code == 0
    assert {card.state for card in service.client.gpus()} == {"drained"}
    job = service.submit("true")
    assert service.client.job(job, phase="pending", timeout=0.3).job.phase == "pending"
    assert "not available" in service.run("why", job).out
    assert service.run("undrain").code == 0
    assert service.client.wait(job).job.phase == "succeeded"


def test_queues_show_what_waits_and_runs(service: LiveService) -> None:
    first = service.submit("sleep 30", gpus=8, spec={"gpu": {"count": 8}, "queue": "vision"})
    service.until_running(first)
    second = service.submit("true", spec={"gpu": {}, "queue": "vision"})
    rows = [line.split() for line in service.run("queues").out.splitlines()]
    assert ["vision", "0", "1", "1", "8"] in rows
    service.client.cancel(first)
    assert service.client.wait(second).job.phase == "succeeded"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("cancel", "9999"), "no job '9999'", id="an unknown job"),
        pytest.param(("run", "--gpus", "0", "--memory", "1GiB", "true"), "--gpus", id="a slice of no card"),
        pytest.param(("run", "--memory", "20", "true"), "spec.gpu.memory", id="memory without unit"),
        pytest.param(("run", "--env", "X", "true"), "NAME=VALUE", id="a variable without value"),
    ],
)
def test_mistakes_are_one_line(service: LiveService, words: tuple[str, ...], said: str) -> None:
    assert said in complaint(service.run(*words))


def test_a_second_service_on_the_same_record_is_refused(service: LiveService) -> None:
    said = complaint(service.run("up", "--simulate", "l40s-4", "--state", service.state))
    assert "one service per journal" in said


def test_without_a_service_the_way_to_start_one_is_named(tmp_path: Path) -> None:
    said = complaint(aliquot("jobs", "--socket", tmp_path / "none"))
    assert "'aliquot up' starts one" in said


def test_without_a_driver_simulated_cards_are_offered(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a driver here")
    said = complaint(aliquot("up", "--state", tmp_path / "state"))
    assert "--simulate a100-40x8" in said
    assert not (tmp_path / "state").exists()


def test_a_state_folder_that_cannot_be_made_is_named() -> None:
    said = complaint(aliquot("up", "--simulate", "l40s-4", "--state", "/proc/none/state"))
    assert "--state: /proc/none/state cannot be made" in said


def test_a_shape_that_is_not_there_is_named(tmp_path: Path) -> None:
    said = complaint(aliquot("up", "--simulate", "dgx-z1", "--state", tmp_path / "state"))
    assert "dgx-z1" in said
    assert "dgx-h100" in said


def test_a_shape_in_a_file_is_served_and_a_wrong_one_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ncards: [{model: L40S, count: two}]\n")
    said = complaint(aliquot("up", "--simulate", file, "--state", tmp_path / "state"))
    assert said == f"{file}:2: cards[0].count: 'two' is not a whole number (1 to 16)"
    assert not (tmp_path / "state").exists()
    assert "none.yaml: no such file" in complaint(aliquot("up", "--simulate", "none.yaml"))
    file.write_text("name: mine\ncards: [{model: l40s, count: 2}]\n")
    with LiveService("--simulate", str(file), shape=None) as service:
        assert [card.model for card in service.client.gpus()] == ["L40S", "L40S"]


def test_what_the_command_line_says_comes_before_the_environment() -> None:
    with LiveService(ALIQUOT_SOCKET="/proc/none.sock") as service:
        assert service.client.site().cards == 8, "it listens in its --state"
        there = {"ALIQUOT_SOCKET": "/proc/none.sock"}
        assert aliquot("gpus", "--socket", service.socket, **there).code == 0
        assert aliquot("jobs", "--socket", service.socket, **there).code == 0
        assert "/proc/none.sock" in complaint(aliquot("gpus", **there))


def test_one_number_after_explain_means_a_live_job() -> None:
    assert spell_explain(["explain", "12", "--json"]) == ["why", "12", "--json"]
    assert spell_explain(["explain", "first.yaml", "train"]) == ["explain", "first.yaml", "train"]
    assert spell_explain(["explain", "--socket", "s", "12"]) == ["why", "--socket", "s", "12"]
    assert spell_explain(["explain", "train"]) == ["explain", "train"], "the file was forgotten"
    assert spell_explain(["explain", ""]) == ["why", ""]
    assert spell_explain(["jobs"]) == ["jobs"]


def test_a_job_inside_a_job_inherits_no_cards(service: LiveService) -> None:
    done = service.run(
        "run", "--gpus", "0", "--", "sh", "-c", 'echo "[$CUDA_VISIBLE_DEVICES]"', CUDA_VISIBLE_DEVICES="7"
    )
    assert done.out == "[]\n"
    assert os.environ.get("CUDA_VISIBLE_DEVICES") in {None, ""}


def test_a_service_that_stops_leaves_nothing_behind_but_what_outlives_it() -> None:
    with LiveService() as service:
        runtime = find_runtime(service.state)
        job = service.submit("sleep 60")
        service.until_running(job)
        service.stop()
        assert runtime.exists(), "a job runs"
        service.start()
        service.client.cancel(job)
        service.client.wait(job)
        service.stop()
        assert runtime == service.state or not runtime.exists()
