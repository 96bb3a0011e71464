"""Who gave a real job up, or why nobody did, as the commands and the API say it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.service import LiveService

JOB = """---
apiVersion: aliquot.dev/v1
kind: Job
metadata: {{name: {name}}}
spec: {{cpu: 0.1, {more}}}
"""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def test_who_waited_for_a_success_that_never_comes_is_told_of_whose(service: LiveService) -> None:
    text = JOB.format(name="first", more="command: exit 3")
    text += JOB.format(name="onok", more="afterOk: first, command: 'true'")
    text += JOB.format(name="chain", more="afterOk: onok, command: 'true'")
    first, onok, chain = service.run("submit", service.write("chain.yaml", text)).out.split()
    assert service.run("wait", first).code == 3
    assert service.run("wait", chain).code == 130
    why = {
        onok: f"job {first} (first), which had to succeed, failed",
        chain: f"job {onok} (onok), which had to succeed, was cancelled",
    }
    for job, because in why.items():
        detail = json.loads(service.run("job", job, "--json").out)
        assert (detail["job"]["reason"], detail["given_up"]["why"]) == ("dependency", because)
        assert detail["given_up"]["by"] is None
        assert f"  cancelled, since {because} (dependency)" in service.run("job", job).out.splitlines()
        said = service.run("why", job).out
        assert said == f"{job} is over: cancelled, since {because} (dependency).\n"
        (row,) = [line for line in service.run("jobs", "--all").out.splitlines() if line.split()[:1] == [job]]
        assert row.endswith("dependency")


def test_who_waits_for_one_that_has_failed_before_is_told_the_same(service: LiveService) -> None:
    failed = service.submit("exit 1", name="early")
    service.client.wait(failed)
    late = service.submit("true", spec={"afterOk": [failed]})
    detail = service.client.wait(late)
    assert detail.given_up is not None
    assert detail.given_up.why == f"job {failed} (early), which had to succeed, failed"


def test_who_cancelled_a_job_is_said_also_after_a_restart(service: LiveService) -> None:
    runs, waits = service.submit("exec sleep 60"), service.submit("true", gpus=80)
    service.until_running(runs)
    for job in (runs, waits):
        assert service.run("cancel", job).code == 0
        service.client.wait(job)
    service.kill().start()
    for job in (runs, waits):
        detail = service.client.job(job)
        assert detail.given_up is not None
        assert (detail.given_up.by, detail.given_up.user) == (detail.job.owner, detail.job.user)
        assert (detail.job.reason, detail.given_up.why) == ("", "")
        assert f"  cancelled by {detail.job.user}" in service.run("job", job).out.splitlines()
        assert f"{job} is over: cancelled by {detail.job.user}." in service.run("why", job).out
    assert "has its attempts" in service.run("why", runs).out
    assert "has its attempts" not in service.run("why", waits).out


def test_of_a_job_that_ended_by_itself_nobody_is_said_to_have_given_it_up(service: LiveService) -> None:
    job = service.submit("true")
    assert service.client.wait(job).given_up is None
