"""`aliquot submit` of several jobs: all or none, and every mistake said of its place in the files."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from aliquot.client import Client, Submission
from aliquot.control.errors import BatchError
from aliquot.core.errors import SpecError
from tests.interfaces.test_api import ask
from tests.support.command import complaint
from tests.support.service import LiveService

QUEUES = """\
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {name: teams}
spec:
  queues:
    - {name: vision}
    - {name: text}
"""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    made = LiveService()
    made.options.append(str(made.write("queues.yaml", QUEUES)))
    with made as running:
        yield running


def job(name: str, *lines: str) -> str:
    """A document of seven lines and those of its own, from the eighth on."""
    own = "".join(f"  {line}\n" for line in lines)
    head = f"apiVersion: aliquot.dev/v1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n"
    return f"{head}  cpu: 1\n  command: echo {name}\n{own}"


def known(service: LiveService) -> int:
    return len(service.client.jobs())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("queue: vison", "spec.queue: unknown queue 'vison' (did you mean 'vision'", id="queue"),
        pytest.param(
            "gpu: {cuont: 1}", "spec.gpu.cuont: unknown key 'cuont' (did you mean 'count'", id="key"
        ),
        pytest.param("gpu: {memory: 20}", "spec.gpu.memory: '20' has no unit", id="no unit"),
        pytest.param("retries: x", "spec.retries: 'x': Expected int, got str (a whole number", id="number"),
        pytest.param("retries: -1", "spec.retries: -1 cannot be right (0 or more)", id="too few"),
        pytest.param("grace: 99h", "spec.grace: '99h' is too long (at most 1 h)", id="too long"),
        pytest.param("warn: USR9", "spec.warn: no signal 'USR9' (such as USR1)", id="signal"),
        pytest.param("umask: 999", "spec.umask: '999' is not a umask", id="umask"),
        pytest.param("env: {A: [1]}", "spec.env: Expected str, got array (names and values", id="variable"),
        pytest.param("replicas: 3", "spec.replicas: '3': has no meaning for a job", id="of simulations"),
        pytest.param("after: 777", "spec.after: there is no job '777' to wait for", id="nobody to wait for"),
    ],
)
def test_what_is_wrong_with_the_last_of_several_files_refuses_all(
    service: LiveService, line: str, words: str
) -> None:
    before = known(service)
    good = service.write("good.yaml", f"{job('a')}---\n{job('b', 'queue: text')}")
    bad = service.write("bad.yaml", f"# three jobs\n{job('c')}---\n{job('d', line)}")
    said = complaint(service.run("submit", good, bad))
    assert said.startswith(f"{bad}:17: {words}")
    assert known(service) == before


def test_documents_are_checked_in_the_order_of_the_files(service: LiveService) -> None:
    before = known(service)
    for text, words in (
        ("kind: Job\n", "1: 'apiVersion' is missing (add apiVersion)"),
        ("apiVersion: aliquot.dev/v2\nkind: Job\n", "1: apiVersion: 'aliquot.dev/v2' is not known here"),
        ("apiVersion: aliquot.dev/v1\nkind: Pod\n", "2: kind: 'Pod' is not known here (one of Job)"),
        (job("a").replace("  name: a", "  nmae: a"), "4: metadata.nmae: unknown key 'nmae' (did you mean"),
        (job("a").replace("spec:", "sepc:"), "6: sepc: unknown key 'sepc' (did you mean 'spec'?)"),
        (job("a").replace("command: ", "comand: "), "6: spec: no command: nothing to run"),
    ):
        file = service.write("one.yaml", text)
        said = complaint(service.run("submit", service.write("good.yaml", job("z")), file))
        assert said.startswith(f"{file}:{words}")
    assert known(service) == before


def test_a_json_document_is_named_by_its_job(service: LiveService) -> None:
    documents = [
        {"apiVersion": "aliquot.dev/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
        for name, spec in (
            ("a", {"command": "x", "cpu": 1}),
            ("b", {"command": "x", "cpu": 1, "queue": "vison"}),
        )
    ]
    file = service.write("jobs.json", json.dumps(documents))
    said = complaint(service.run("submit", file))
    assert said.startswith(f"{file}, job 'b': spec.queue: unknown queue 'vison'")


def test_those_of_several_files_wait_for_each_other_by_name(service: LiveService) -> None:
    last = service.write("last.yaml", job("last", "queue: text", "afterOk: [first, many]"))
    first = service.write(
        "first.yaml", f"{job('first', 'queue: text')}---\n{job('many', 'array: 2', 'queue: text')}"
    )
    done = service.run("submit", last, first)
    assert done.code == 0, done.err
    ids = done.out.split()
    assert [service.client.jobs(array=ids[1])[0].name, len(ids)] == ["many", 3]
    assert service.client.wait(ids[2]).job.phase == "succeeded"
    assert service.client.output(ids[2]).body == b"last\n"


def test_as_json_all_are_told_with_where_they_stand(service: LiveService) -> None:
    file = service.write("jobs.yaml", f"{job('a', 'queue: text')}---\n{job('b', 'queue: text')}")
    told = json.loads(service.run("submit", "--json", file).out)
    assert [set(one) >= {"id", "phase", "position"} for one in told] == [True, True]
    assert all(one["phase"] for one in told)


def test_the_api_says_which_of_a_batch_is_wrong(service: LiveService) -> None:
    before = known(service)
    good = {"command": ["true"], "spec": {"cpu": 1, "queue": "text"}}
    batches = (
        ([good, good | {"spec": {"cpu": 1, "queue": "vison"}}], 422, 1, "spec.queue"),
        ([good, good, good | {"retries": "x"}], 422, 2, "retries"),
        ([good | {"spec": {"cpu": 1, "after": "777"}}], 422, 0, "spec.after"),
        ({"command": []}, 422, None, ""),
    )
    for body, status, index, field in batches:
        code, said = ask(service, "POST", "/v1/batches", json.dumps(body).encode())
        assert (code, said["index"], said["field"]) == (status, index, field)
    assert known(service) == before
    with pytest.raises(BatchError) as refused:
        service.client.submit_all([Submission(command=("x",)), Submission(command=("x",), spec={"cpu": "x"})])
    assert refused.value.at == 0
    assert isinstance(refused.value.error, SpecError)


def test_more_than_can_be_read_at_once_is_refused_in_words(service: LiveService) -> None:
    before = known(service)
    body = b"[" + b",".join([b'{"command":["x"]}'] * 20_001) + b"]"
    code, said = ask(service, "POST", "/v1/batches", body)
    assert (code, said["error"]) == (422, "20001 jobs at once")
    assert known(service) == before


def test_a_large_batch_that_stalls_holds_up_only_other_large_ones_of_its_user(service: LiveService) -> None:
    head = b"POST /v1/batches HTTP/1.1\r\nHost: aliquot\r\nContent-Length: 20000000\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as stalling:
        stalling.connect(str(service.socket))
        stalling.sendall(head + b"[" + b" " * (5 << 20))
        assert service.client.gpus()
        small = Submission(command=("true",), spec={"cpu": 1, "queue": "text"})
        assert service.client.wait(service.client.submit_all([small])[0]).is_over
        large = [msgspec.structs.replace(small, env={"X": "x" * (3 << 20)})] * 2
        with ThreadPoolExecutor(1) as others:
            waiting = others.submit(Client(service.socket).submit_all, large)
            assert service.client.gpus()
            assert not waiting.done()
            stalling.close()
            assert len(waiting.result(60)) == 2


def test_hundreds_of_documents_are_one_submission(service: LiveService) -> None:
    service.run("drain")
    file = service.write("many.yaml", "---\n".join(job(f"j{at}", "queue: vision") for at in range(300)))
    before = known(service)
    done = service.run("submit", file, BALLAST="x" * (16 << 10))
    assert (done.code, len(done.out.split())) == (0, 300), done.err
    assert known(service) == before + 300
    service.run("cancel", *done.out.split())
    service.run("undrain")
