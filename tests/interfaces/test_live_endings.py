"""How real jobs ended, as the commands and the API say it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.service import LiveService


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def test_a_failure_that_is_tried_again_is_called_one(service: LiveService) -> None:
    done = service.run("run", "--retries", "1", "--", "sh", "-c", "exit $((ALIQUOT_ATTEMPT_NUMBER + 4))")
    job = service.client.jobs()[-1].id
    lines = service.run("job", job).out.splitlines()
    assert done.code == 6
    assert [line.split(";")[0] for line in lines if "attempt" in line] == [
        "  attempt 1: failed, tried again",
        "  attempt 2: failed",
    ]
    assert [line.split(" after")[0] for line in lines if "exited" in line] == [
        "    exited with 5",
        "    exited with 6",
    ]


def test_how_an_attempt_ended_is_told_before_the_job_is_over(service: LiveService) -> None:
    script = "[ $ALIQUOT_ATTEMPT_NUMBER = 1 ] && exit 3; sleep 60"
    job = service.submit(script, retries=1)
    service.client.job(job, phase="running", timeout=5)
    while len(service.client.job(job).attempts) < 2:
        pass
    first = service.client.job(job).attempts[0]
    assert (first.outcome, first.exits[0] and first.exits[0].status) == ("failed", 3)
    service.client.cancel(job)
    assert service.client.wait(job).attempts[1].outcome == "cancelled"


def test_a_time_limit_is_final_and_named_everywhere(service: LiveService) -> None:
    done = service.run("run", "--time", "200ms", "--retries", "3", "--", "sleep", "60")
    job = service.client.jobs()[-1].id
    assert (done.code, done.err) == (143, f"job {job} failed: time-limit, it ran into its time limit\n")
    detail = service.client.job(job)
    assert (len(detail.attempts), detail.job.reason) == (1, "time-limit")
    said = service.run("job", job).out
    assert "ended by signal 15 (TERM), exit code 143, after" in said
    assert "it ran into its time limit (time-limit)" in said
    (row,) = [line for line in service.run("jobs", "--all").out.splitlines() if line.split()[0] == job]
    assert row.endswith("143 time-limit")
    assert json.loads(service.run("job", job, "--json").out)["job"]["reason"] == "time-limit"


@pytest.mark.parametrize(
    ("command", "code", "why"),
    [("no-such-command", 127, "No such file or directory"), ("/dev/null", 126, "Permission denied")],
)
def test_what_can_not_be_run_has_the_code_of_a_shell(
    service: LiveService, command: str, code: int, why: str
) -> None:
    done = service.run("run", "--", command)
    job = service.client.jobs()[-1].id
    assert (done.code, done.err) == (code, f"job {job} failed: cannot run {command}: {why}\n")
    assert f"could not be run: cannot run {command}: {why}; exit code {code}" in service.run("job", job).out
    assert service.client.job(job).job.exit_status == code


def test_who_was_killed_is_not_said_to_have_exited(service: LiveService) -> None:
    assert service.run("run", "--", "sh", "-c", "kill -9 $$").code == 137
    job = service.client.jobs()[-1].id
    assert "ended by signal 9 (KILL), exit code 137, after" in service.run("job", job).out


def test_a_job_that_kills_its_supervisor_each_time_is_not_begun_for_ever(service: LiveService) -> None:
    done = service.run("run", "--retries", "0", "--", "sh", "-c", "kill -9 $PPID; exec sleep 60")
    job = service.client.jobs()[-1].id
    why = "its supervisor was killed time after time"
    assert (done.code, done.err.splitlines()[-1]) == (1, f"job {job} failed: lost, {why}")
    detail = service.client.job(job)
    assert (detail.job.phase, detail.job.reason, detail.job.exit_status) == ("failed", "lost", None)
    lines = [line.strip() for line in service.run("job", job).out.splitlines()]
    assert [line.split(";")[0] for line in lines if line.startswith("attempt")] == [
        "attempt 1: lost, nobody saw how it ended, tried again",
        "attempt 2: lost, nobody saw how it ended, tried again",
        "attempt 3: lost, nobody saw how it ended",
    ]
    assert f"ended, and nobody saw how: {why} (lost)" in lines
    (row,) = [line for line in service.run("jobs", "--all").out.splitlines() if line.split()[:1] == [job]]
    assert row.endswith(" lost")
