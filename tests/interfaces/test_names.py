"""Ids and names as people may mistype them, and commands that are given several: over a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from aliquot.client import Client, Submission
from aliquot.control.errors import UnavailableError
from aliquot.core.errors import SpecError
from tests.interfaces.test_api import ask
from tests.support.command import complaint
from tests.support.local import wait_for
from tests.support.service import LiveService

ODD: Final = {
    "nothing": "",
    "a blank": " ",
    "a slash": "/",
    "a path": "a/b",
    "a per cent sign": "%",
    "a code": "%2e%2e",
    "the folder above": "..",
    "two lines": "1\n2",
    "a command for the terminal": "\x1b[31m1",
    "letters of other scripts": "作业",
    "a digit that is none": "\N{SUPERSCRIPT TWO}",
    "bytes that are no text": "\udcff",
    "zeros before it": "0001",
    "more digits than a number has": "9" * 5000,
    "very long": "x" * 70_000,
}


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


COMMANDS: Final = ("job", "logs", "cancel", "wait", "why", "explain", "drain", "undrain", "unreserve")


@pytest.mark.parametrize("word", list(ODD.values()), ids=list(ODD))
def test_an_odd_name_is_one_line_that_says_so(service: LiveService, word: str) -> None:
    for command in COMMANDS:
        if command == "explain" and ("/" in word or word == ".." or word.startswith("x")):
            continue  # a file of documents, then, or the name of a job in one
        said = complaint(service.run(command, word))
        assert said.isprintable()
        assert len(said) < 250
        assert any(part in said for part in ("no job", "no node or card", "no reservation", "be right")), said


def test_the_python_client_refuses_what_is_no_name(service: LiveService) -> None:
    calls: list[Callable[[str], object]] = [
        service.client.job,
        service.client.cancel,
        service.client.output,
        service.client.explain,
        service.client.drain,
        service.client.unreserve,
        lambda name: service.client.signal(name, 15),
    ]
    for call in calls:
        for word in ("", "a/b", "\n"):
            with pytest.raises(SpecError):
                call(word)


@pytest.mark.parametrize(
    "path", ["/v1/jobs/", "/v1/jobs//output", "/v1/jobs/a%2Fb", "/v1/reservations/", "//"]
)
def test_a_path_without_a_name_leads_nowhere(service: LiveService, path: str) -> None:
    status, said = ask(service, "GET", path)
    assert status == 404
    assert "nothing is at" in said["error"]


def test_a_method_that_is_none_of_a_path_is_named(service: LiveService) -> None:
    status, said = ask(service, "PUT", "/v1/jobs")
    assert (status, said["error"]) == (405, "'/v1/jobs' takes no PUT")


def test_what_is_no_service_of_aliquot_is_told_from_one(tmp_path: Path) -> None:
    answers = {
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n": "answered 307",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi": "no service of Aliquot",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}": "otherwise than",
    }
    for at, (answer, words) in enumerate(answers.items()):
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / str(at)))
            listening.listen()
            thread = threading.Thread(target=_answer_once, args=(listening, answer))
            thread.start()
            with pytest.raises(UnavailableError, match=words):
                Client(tmp_path / str(at)).site()
            thread.join()


def _answer_once(listening: socket.socket, answer: bytes) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(answer)


# --- several at once -------------------------------------------------------------------------------------


def test_what_can_not_be_cancelled_keeps_nobody_else_from_it(service: LiveService) -> None:
    first, second = (service.submit("sleep 60") for _ in range(2))
    over = service.submit("true")
    service.client.wait(over)
    done = service.run("cancel", first, "9999", over, "a/b", second, first)
    assert done.code == 2
    starts = ("no job '9999'", f"job {over} is over already", "ID: 'a/b'")
    for line, start in zip(done.err.splitlines(), starts, strict=True):
        assert line.startswith(f"aliquot: error: {start}")
    phases = [service.client.wait(job).job.phase for job in (first, second)]
    assert phases == ["cancelled", "cancelled"]
    assert service.run("cancel", service.submit("sleep 60")).code == 0


def test_the_others_are_waited_for_where_one_is_not_there(service: LiveService) -> None:
    good, bad = service.submit("sleep 0.2"), service.submit("exit 3")
    done = service.run("wait", "9999", good)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert service.client.job(good).is_over
    assert service.run("wait", "9999", good, bad).code == 3


def test_several_places_are_drained_and_what_is_not_there_is_named(service: LiveService) -> None:
    node = service.client.site().nodes[0]
    done = service.run("drain", "nowhere", node)
    assert (done.code, "no node or card 'nowhere'" in done.err) == (2, True)
    assert {card.state for card in service.client.gpus()} == {"drained"}
    assert service.run("undrain", node, "0", "1").code == 0
    assert {card.state for card in service.client.gpus()} == {"ok"}


def test_reservations_are_taken_back_together(service: LiveService) -> None:
    for name in ("a", "b"):
        assert service.run("reserve", name, "--start", "now+1h", "--duration", "1h").code == 0
    assert service.run("unreserve", "a", "none", "b").code == 2
    assert service.client.reservations() == []


# --- without a grace -------------------------------------------------------------------------------------

STUBBORN: Final = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


def stubborn(service: LiveService) -> str:
    """A job that takes no notice of TERM, and has an hour for it."""
    job = service.client.submit(a_stubborn_job())
    wait_for(lambda: service.client.output(job).body == b"ready\n", "the job to be deaf")
    return job


def a_stubborn_job() -> Submission:
    return Submission(command=("sh", "-c", STUBBORN), spec={"gpu": {}}, grace="1h")


def test_cancelled_now_a_job_that_ignores_term_is_gone(service: LiveService) -> None:
    job = stubborn(service)
    assert service.run("cancel", "--now", job).code == 0
    detail = service.client.wait(job)
    (ending,) = detail.attempts[0].exits
    assert ending is not None
    assert (detail.job.phase, ending.status, ending.reason) == ("cancelled", 137, "cancelled")


def test_an_end_under_way_is_hurried_and_the_record_knows() -> None:
    with LiveService() as service:
        job = stubborn(service)
        assert service.run("cancel", job).code == 0
        wait_for(lambda: service.client.job(job).job.phase == "stopping", "it to be told to end")
        said = service.run("job", job).out
        assert said.splitlines()[0].endswith(": stopping, cancelled")
        assert "attempt 1: is ending; " in said
        # the service dies before it can carry out what it has accepted
        assert service.run("cancel", "--now", job).code == 0
        service.kill().start()
        assert service.client.wait(job).job.phase == "cancelled"


def test_an_array_is_cancelled_now_as_a_whole(service: LiveService) -> None:
    array = service.client.submit(
        Submission(command=("sh", "-c", STUBBORN), spec={"gpu": {}, "array": "0-2"}, grace="1h")
    )
    wait_for(lambda: {row.phase for row in service.client.jobs(array=array)} == {"running"}, "all to run")
    assert service.run("cancel", "--now", array).code == 0
    assert service.run("wait", array).code in {130, 137}
    assert {row.phase for row in service.client.jobs(array=array)} == {"cancelled"}
