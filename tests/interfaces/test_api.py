"""The API over a real socket: who may do what, what is said of mistakes, and waiting for things to happen."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from aliquot.client import Client
from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.core.errors import NotFoundError, SpecError
from aliquot.interfaces.api.output import read_chunk
from aliquot.interfaces.api.routes import ROUTES
from aliquot.interfaces.api.server import MOST_EACH, listen
from tests.support.command import ROOT
from tests.support.local import is_root
from tests.support.service import LiveService

NOBODY: Final = 65534


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


def ask(service: LiveService, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    """Status and JSON of one request, made without our client."""
    connection = http.client.HTTPConnection("aliquot")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(service.socket))
    connection.request(method, path, body)
    answer = connection.getresponse()
    said = json.loads(answer.read())
    connection.close()
    return answer.status, said


def test_the_description_names_every_route_and_resolves(service: LiveService) -> None:
    status, described = ask(service, "GET", "/openapi.json")
    assert (status, described["openapi"]) == (200, "3.1.0")
    for route in ROUTES:
        operation = described["paths"][route.path][route.method.lower()]
        assert operation["summary"]
        assert str(route.status) in operation["responses"]
    refs = {
        word.rpartition("/")[2]
        for word in json.dumps(described).split('"')
        if word.startswith("#/components/")
    }
    assert refs <= described["components"]["schemas"].keys()
    assert described["components"]["schemas"]["Submission"]["required"] == ["command"]


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "words"),
    [
        pytest.param("/v1/jobs", b'{"comm', 400, "", "not JSON", id="a body that is cut off"),
        pytest.param("/v1/jobs", b"{}", 422, "command", "missing", id="no command"),
        pytest.param("/v1/jobs", b'{"command": "x"}', 422, "command", "array", id="a command in one piece"),
        pytest.param("/v1/jobs", b'{"command": []}', 422, "spec", "", id="asks for nothing"),
        pytest.param(
            "/v1/jobs", b'{"command": [], "spec": {"cpu": 1}}', 422, "command", "", id="an empty command"
        ),
        pytest.param(
            "/v1/jobs", b'{"command": ["x"], "colour": 1}', 422, "colour", "unknown", id="an unknown field"
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}, "time": "4h"}}',
            422,
            "spec.time",
            "write 'time' next to 'command'",
            id="beside the spec, and written into it",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x", "a\\u0000b"], "spec": {"gpu": {}}}',
            422,
            "command",
            "zero bytes",
            id="a zero byte",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": [""], "spec": {"gpu": {}}}',
            422,
            "command",
            "[''] cannot",
            id="no program",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {"memory": "20Gb"}}}',
            422,
            "spec.gpu.memory",
            "bits",
            id="memory in bits",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {"count": 0}}}',
            422,
            "spec.gpu.count",
            "",
            id="no card at all",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}, "movable": true}}',
            422,
            "spec.movable",
            "for real",
            id="a process that could be moved",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "time": "4"}',
            422,
            "time",
            "duration",
            id="a time without unit",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "warn": "SIGNAL"}',
            422,
            "warn",
            "no signal",
            id="a signal nobody knows",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "cwd": "here"}',
            422,
            "cwd",
            "",
            id="a relative folder",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "grace": "100h"}',
            422,
            "grace",
            "too long",
            id="a grace that nobody could wait for",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "warnBefore": "2m"}',
            422,
            "warnBefore",
            "there is no warning",
            id="how long before a warning that there is not",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "warnBefore": "1h at most"}',
            422,
            "warnBefore",
            "",
            id="no duration, of a warning that there is not",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "warn": "USR1", "warnBefore": "100h"}',
            422,
            "warnBefore",
            "too long",
            id="a warning that nobody could wait for",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "time": "9999999999h"}',
            422,
            "time",
            "too long",
            id="a time beyond all numbers",
        ),
        pytest.param(
            "/v1/jobs",
            b'{"command": ["x"], "spec": {"gpu": {}}, "umask": 1000}',
            422,
            "umask",
            "cannot be right",
            id="a umask of too many bits",
        ),
        pytest.param("/v1/jobs/none/cancel", b"", 404, "", "no job 'none'", id="a job that is not there"),
        pytest.param("/v1/jobs/1/signal", b'{"signal": 99}', 422, "signal", "", id="a signal out of range"),
        pytest.param("/v1/nodes/moon/drain", b"{}", 404, "", "no node or card 'moon'", id="a node elsewhere"),
        pytest.param("/v2/jobs", b"{}", 404, "/v2/jobs", "", id="a path that is not there"),
        pytest.param("/v1/gpus", b"{}", 405, "/v1/gpus", "", id="a method that is not allowed"),
        pytest.param(
            "/v1/jobs", b'{"command": ["' + b"x" * (5 << 20) + b'"]}', 413, "/v1/jobs", "MiB", id="too much"
        ),
    ],
)
def test_a_mistake_is_named_with_its_field(
    service: LiveService, path: str, body: bytes, status: int, field: str, words: str
) -> None:
    found, said = ask(service, "POST", path, body)
    assert (found, said["field"]) == (status, field), said
    assert words in said["error"] + said["hint"]
    assert service.client.jobs(over=False) == []


def test_a_field_of_one_of_a_batch_that_nobody_knows_is_named_with_its_place(service: LiveService) -> None:
    body = b'[{"command": ["x"], "spec": {"gpu": {}}}, {"command": ["x"], "colour": 1}]'
    status, said = ask(service, "POST", "/v1/batches", body)
    assert (status, said["index"], said["field"]) == (422, 1, "colour")


def test_a_job_without_a_name_is_called_as_its_program(service: LiveService) -> None:
    status, said = ask(service, "POST", "/v1/jobs", b'{"command": ["/bin/true"], "spec": {"gpu": {}}}')
    assert (status, service.client.job(said["id"]).job.name) == (201, "true")
    service.client.wait(said["id"])


@pytest.mark.parametrize("depth", [300, 500, 900, 3000])
@pytest.mark.parametrize("spec", [b'{"x":%s}', b'{"gpu":{"count":%s}}', b'{"array":%s}'])
def test_what_is_nested_without_end_is_refused(service: LiveService, spec: bytes, depth: int) -> None:
    body = b'{"command":["true"],"spec":' + spec % (b"[" * depth + b"]" * depth) + b"}"
    status, said = ask(service, "POST", "/v1/jobs", body)
    assert status == 422, said
    assert said["hint"] or said["field"]


@pytest.mark.parametrize("query", ["limit=none", "limit=0", "colour=red"])
def test_a_bad_parameter_is_refused(service: LiveService, query: str) -> None:
    status, said = ask(service, "GET", f"/v1/jobs?{query}")
    assert status == 422
    assert said["error"]


def test_waiting_ends_when_the_phase_changes(service: LiveService) -> None:
    job = service.submit("sleep 0.3; exit 4")
    began = time.monotonic()
    detail = service.client.wait(job)
    assert 0.2 < time.monotonic() - began < 10
    assert (detail.job.phase, detail.job.exit_status) == ("failed", 4)


def test_waiting_in_vain_ends_with_the_timeout(service: LiveService) -> None:
    job = service.submit("sleep 30")
    service.until_running(job)
    began = time.monotonic()
    assert service.client.job(job, phase="running", timeout=0.2).job.phase == "running"
    assert 0.15 < time.monotonic() - began < 5
    service.client.cancel(job)
    assert service.client.wait(job).job.phase == "cancelled"


def test_output_is_followed_to_its_end(service: LiveService) -> None:
    job = service.submit("echo one; sleep 0.3; echo two")
    pieces, piece = [], service.client.output(job, timeout=5)
    while True:
        pieces.append(piece.body)
        if piece.is_over:
            break
        piece = service.client.output(job, offset=piece.offset, file=piece.file, timeout=5)
    assert b"".join(pieces) == b"one\ntwo\n"
    assert len(pieces) >= 2


def test_what_is_over_cannot_be_cancelled(service: LiveService) -> None:
    job = service.submit("true")
    service.client.wait(job)
    with pytest.raises(ConflictError, match="over already: succeeded"):
        service.client.cancel(job)
    with pytest.raises(ConflictError):
        service.client.signal(job, 15)


def test_many_submit_at_once_and_none_is_lost(service: LiveService) -> None:
    before = len(service.client.jobs())
    ids: list[str] = []
    threads = [
        threading.Thread(target=lambda: ids.extend(service.submit("true") for _ in range(4)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 16
    assert {service.client.wait(job).job.phase for job in ids} == {"succeeded"}
    assert len(service.client.jobs()) == before + 16


@pytest.mark.skipif(not is_root(), reason="only root may become somebody else")
def test_another_user_sees_all_and_controls_his_own(service: LiveService) -> None:
    roots = service.submit("sleep 30", name="of-root")
    service.until_running(roots)
    said = as_nobody(
        service.socket,
        f"""
mine = client.submit(Submission(command=("id", "-u"), spec={{"gpu": {{}}}}))
detail = client.wait(mine)
say(detail.job.owner, detail.job.phase, detail.command, client.output(mine).body.decode().strip())
say([job.name for job in client.jobs(over=False)], client.job({roots!r}).command)
for what in (lambda: client.cancel({roots!r}), lambda: client.signal({roots!r}, 9),
             lambda: client.output({roots!r}), lambda: client.drain(client.site().nodes[0])):
    try:
        say("allowed", what())
    except AliquotError as error:
        say(type(error).__name__)
""",
    )
    assert said[0] == [NOBODY, "succeeded", ["id", "-u"], str(NOBODY)]
    assert said[1] == [["of-root"], None]
    assert said[2:] == [["ForbiddenError"]] * 4
    assert service.client.job(roots).job.phase == "running"
    service.client.cancel(roots)
    service.client.wait(roots)


def test_a_user_who_takes_all_connections_shuts_nobody_out(service: LiveService) -> None:
    said = as_nobody(
        service.socket,
        f"""
import socket
kept = [socket.socket(socket.AF_UNIX) for _ in range({MOST_EACH} + 20)]
closed = 0
for one in kept:
    one.settimeout(10)
    one.connect({str(service.socket)!r})
for one in kept[{MOST_EACH}:]:
    try:
        closed += one.recv(1) == b""
    except ConnectionResetError:
        closed += 1
say(closed)
""",
    )
    assert said == [[20]]
    assert service.client.site().nodes


def test_the_record_is_for_the_service_alone(service: LiveService) -> None:
    modes = {path.name: path.stat().st_mode & 0o077 for path in service.state.glob("journal.db*")}
    assert modes
    assert set(modes.values()) == {0}


def test_a_link_is_not_followed_for_somebody(tmp_path: Path) -> None:
    secret, link = tmp_path / "secret", tmp_path / "1.0.log"
    secret.write_text("key")
    link.symlink_to(secret)
    with pytest.raises(ForbiddenError):
        read_chunk(link, 0, 0, owner=NOBODY)


@pytest.mark.skipif(not is_root(), reason="only root has files of somebody else's")
def test_a_second_name_of_roots_file_is_not_read_for_somebody(tmp_path: Path) -> None:
    secret, name = tmp_path / "secret", tmp_path / "1.0.log"
    secret.write_text("key")
    os.link(secret, name)
    with pytest.raises(ForbiddenError):
        read_chunk(name, 0, 0, owner=NOBODY)


def test_a_file_of_another_that_was_moved_to_that_place_is_not_read_for_somebody(tmp_path: Path) -> None:
    secret, name = tmp_path / "secret", tmp_path / "1.0.log"
    secret.write_text("key")
    secret.rename(name)  # in his own folder he may, whoever has written it
    with pytest.raises(ForbiddenError, match="not a plain file of the job's owner"):
        read_chunk(name, 0, 0, owner=NOBODY)


def test_output_that_was_rotated_is_read_from_its_new_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old and long\n")
    before = read_chunk(path, 0, 0, None)
    path.rename(tmp_path / "log.1")
    path.write_bytes(b"new\n")
    after = read_chunk(path, before.offset, before.file, None)
    assert (after.body, after.offset) == (b"new\n", 4)


def test_a_socket_left_behind_is_replaced_and_a_living_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listen(path, 0o600).close()
    with listen(path, 0o600), pytest.raises(SpecError, match="another service answers"):
        listen(path, 0o600)
    with pytest.raises(SpecError, match="107 bytes"):
        listen(tmp_path / ("x" * 120), 0o600)


def test_no_service_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="aliquot up"):
        Client(tmp_path / "none").site()


def test_an_unknown_job_is_not_found(service: LiveService) -> None:
    with pytest.raises(NotFoundError, match="'12345'"):
        service.client.explain("12345")


def as_nobody(path: Path, script: str) -> list[Any]:
    """What `script` says when run by nobody; everything is imported while it may still be read."""
    program = f"""
import json, os
from pathlib import Path
from aliquot.client import Client, Submission
from aliquot.core.errors import AliquotError
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
client = Client(Path({str(path)!r}))
say = lambda *words: print(json.dumps(words))
{script}
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
