"""The client's connection: answers as they come, those that break off, and connections that are kept."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.client import Client
from aliquot.client.wire import Answer, Wire, WireError
from aliquot.control.errors import UnavailableError

OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Says what it was told to, one text a question; hangs up once nothing is left to say."""

    def __init__(self, path: Path) -> None:
        self.path, self.heard, self.calls = path, b"", 0
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        self._listening.listen()

    def say(self, *texts: bytes) -> Wire:
        """In a thread, to whoever calls next; a wire to call with."""
        threading.Thread(target=self._serve, args=(texts,), daemon=True).start()
        return Wire(self.path)

    def close(self) -> None:
        """Nobody answers any more."""
        self._listening.close()

    def _serve(self, texts: tuple[bytes, ...]) -> None:
        connection, _ = self._listening.accept()
        self.calls += 1
        with connection:
            for text in texts:
                heard = b""
                while not heard.endswith((b"\r\n\r\n", b"body")):
                    heard += connection.recv(65_536)
                self.heard += heard
                connection.sendall(text)


@pytest.fixture
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="aliquot-") as folder:
        running = Server(Path(folder) / "s")
        yield running
        running.close()


@pytest.mark.parametrize(
    ("text", "status", "body"),
    [
        pytest.param(OK + b"Content-Length: 2\r\n\r\nhi", 200, b"hi", id="with a length"),
        pytest.param(OK + b"CONTENT-LENGTH:2\r\nX:  y\r\n\r\nhi", 200, b"hi", id="names in any case"),
        pytest.param(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, b"", id="an error and nothing"
        ),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
            200, b"hi0123456789", id="in pieces",
        ),
        pytest.param(
            b"HTTP/1.1 100 Go On\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\n!", 200, b"!", id="go on"
        ),
        pytest.param(OK + b"Connection: close\r\n\r\nall there is", 200, b"all there is", id="to its end"),
    ],
)  # fmt: skip  # a table reads by columns
def test_an_answer_is_read_whole(server: Server, text: bytes, status: int, body: bytes) -> None:
    answer = server.say(text).ask("GET", "/v1", None, 5)
    assert (answer.status, answer.body) == (status, body)
    assert server.heard.startswith(b"GET /v1 HTTP/1.1\r\nHost: aliquot\r\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="something else"),
        pytest.param(OK + b"Content-Length: 9\r\n\r\nhi", id="breaks off in the body"),
        pytest.param(OK + b"Content-Len", id="breaks off in the head"),
        pytest.param(OK + b"Content-Length: many\r\n\r\n", id="a length in words"),
        pytest.param(OK + b"no colon\r\n\r\n", id="no header"),
        pytest.param(OK + b"X: y\r\n\r\n", id="no length, and no end to come"),
        pytest.param(OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", id="a piece without a size"),
        pytest.param(OK + b"x: y\r\n" * 101 + b"\r\n", id="headers without end"),
    ],
)
def test_what_is_no_answer_is_an_error_and_the_connection_is_closed(server: Server, text: bytes) -> None:
    wire = server.say(text)
    with pytest.raises(WireError):
        wire.ask("GET", "/v1", None, 5)
    assert not wire.is_open()


def test_a_connection_is_kept_until_the_other_side_hangs_up(server: Server) -> None:
    text = OK + b"Content-Length: 2\r\n\r\nhi"
    wire = server.say(text, text)
    assert wire.ask("POST", "/a", b"body", 5) == Answer(200, {"content-length": "2"}, b"hi")
    assert wire.is_open()
    assert wire.ask("POST", "/b", b"body", 5).body == b"hi"
    assert server.calls == 1
    with pytest.raises(OSError, match=r"hung up|reset|Broken pipe"):
        wire.ask("GET", "/c", None, 5)
    assert not wire.is_open()


def test_a_service_that_says_nothing_is_not_waited_for_forever(server: Server) -> None:
    server.say()
    wire = Wire(server.path)
    with pytest.raises(OSError):  # noqa: PT011  # which one depends on who is faster
        wire.ask("GET", "/v1", None, 0.2)


def test_whoever_asks_is_told_where_nobody_answers(server: Server) -> None:
    server.say(b"SSH-2.0-OpenSSH\r\n")
    with pytest.raises(UnavailableError, match="did not answer \\(no answer in HTTP"):
        Client(server.path).site()
    with pytest.raises(UnavailableError, match="no service answers"):
        Client(server.path.parent / "nobody").site()
