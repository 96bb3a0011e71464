"""A job that can't start as things are is accepted, and told so at once wherever it is looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from aliquot.client import Submission
from tests.interfaces.test_api import ask
from tests.support.service import LiveService

QUEUES = """\
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {name: teams}
spec:
  queues:
    - {name: small, quota: {cards: {nominal: 2, borrowing: 0}}}
    - {name: default, quota: {cards: 6}}
"""
JOB = "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec: {{{spec}, command: 'true'}}\n"
NINE = "It asks for 9 cards of one node, and none has more than 8 that would do: it waits until that changes."


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        file = running.write("queues.yaml", QUEUES)
        assert running.run("apply", file).code == 0
        yield running


def test_it_is_accepted_with_a_warning(service: LiveService) -> None:
    done = service.run("run", "--detach", "--gpus", "9", "--", "true")
    job = done.out.strip()
    assert done.code == 0
    assert f"warning: job {job} can't start on what is here now. {NINE}" in done.err.splitlines()
    assert NINE in service.run("why", job).out
    assert f"  It can't start on what is here now. {NINE}" in service.run("job", job).out.splitlines()
    assert service.client.job(job).job.phase == "pending"


def test_whoever_stays_with_it_is_told_too(service: LiveService) -> None:
    with service.spawn("run", "--gpus", "9", "--", "true") as staying:
        assert staying.stderr is not None
        line = staying.stderr.readline()
        staying.terminate()
        staying.communicate(timeout=20)
    assert "it can never fit" in line
    assert NINE.rstrip(".") in line


def test_documents_are_told_each_by_its_id(service: LiveService) -> None:
    jobs = [
        JOB.format(name="fits", spec="gpu: {count: 1}"),
        JOB.format(name="large", spec="gpu: {memory: 900GiB}"),
        JOB.format(name="quota", spec="gpu: {count: 3}, queue: small"),
        JOB.format(name="model", spec="gpu: {models: B200-180GB}"),
    ]
    done = service.run("submit", service.write("jobs.yaml", "---\n".join(jobs)))
    fits, large, quota, model = done.out.split()
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert [line.split()[2] for line in warnings] == [large, quota, model]
    assert "900 GiB of a card" in warnings[0]
    assert "queue small can never give it more than 2" in warnings[1]
    assert "B200-180GB, and no card here" in warnings[2]
    assert service.client.wait(fits).job.phase == "succeeded"


def test_the_api_says_it_in_numbers(service: LiveService) -> None:
    body = json.dumps({"command": ["true"], "spec": {"gpu": {"count": 9}}}).encode()
    status, said = ask(service, "POST", "/v1/jobs?patience=0", body)
    assert (status, said["never"]["lacks"], said["never"]["need"], said["never"]["most"]) == (
        201,
        "cards",
        9,
        8,
    )
    status, batch = ask(service, "POST", "/v1/batches", b"[" + body + b"," + body.replace(b"9", b"1") + b"]")
    assert (status, [one["never"] is None for one in batch]) == (201, [False, True])
    _, described = ask(service, "GET", "/openapi.json")
    assert "lacks" in described["components"]["schemas"]["Never"]["properties"]


def test_an_array_is_warned_of_once(service: LiveService) -> None:
    told = service.client.submit_and_see(
        Submission(command=("true",), spec={"gpu": {"count": 9}, "array": "0-3"}), patience=0
    )
    assert told.never is not None
    assert (told.jobs, told.never.lacks) == (4, "cards")
