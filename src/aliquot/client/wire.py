"""One connection to a service: a question in HTTP/1.1 over a Unix socket, and its whole answer.

The library that speaks HTTP in general, with mail headers and TLS, takes longer to load than a short command
runs. What speaks here is small because both ends are ours: one question at a time, answers with a length.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

MOST_LINE: Final = 65_536
MOST_HEADERS: Final = 100


class WireError(Exception):
    """What came is no answer in HTTP."""


class Answer(NamedTuple):
    """`headers` by name in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """A connection to the service at `path`, made when it is first spoken on. Raises OSError, WireError."""

    def __init__(self, path: Path) -> None:
        self._path, self._pid = path, os.getpid()
        self._socket: socket.socket | None = None
        self._came: BinaryIO | None = None

    def ask(self, method: str, target: str, body: bytes | None, seconds: float) -> Answer:
        """Ask and wait, no longer than `seconds` for anything. Closes where that fails or was the last."""
        try:
            came = self._speak(method, target, body, seconds)
            answer = _read_answer(came)
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def is_open(self) -> bool:
        """Whether it is ours (not our parent's, before a fork), and no end has come on it."""
        if self._pid == os.getpid() and self._socket is not None:
            came, _, _ = select.select([self._socket], [], [], 0)
            if not came:
                return True
        self.close()
        return False

    def close(self) -> None:
        """Hang up."""
        if self._came is not None:
            self._came.close()
        if self._socket is not None:
            self._socket.close()
        self._socket = self._came = None

    def __del__(self) -> None:
        self.close()

    def _speak(self, method: str, target: str, body: bytes | None, seconds: float) -> BinaryIO:
        if self._socket is None or self._came is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(seconds)
            self._socket.connect(str(self._path))
            self._came = cast("BinaryIO", self._socket.makefile("rb"))
        self._socket.settimeout(seconds)
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: aliquot\r\nContent-Type: application/json\r\n{length}\r\n"
        )
        self._socket.sendall(head.encode("ascii") + (body or b""))
        return self._came


def _read_answer(came: BinaryIO) -> Answer:
    status = 100
    while status < 200:  # "go on" and the like come before the answer
        words = _line(came).split(None, 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise WireError(f"no answer in HTTP: {' '.join(words)[:80]!r}")
        status, headers = int(words[1]), _read_headers(came)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Answer(status, headers, _read_chunks(came))
    length = headers.get("content-length", "")
    if not length and headers.get("connection", "").lower() == "close":
        return Answer(status, headers, came.read())
    if not length.isdigit():
        raise WireError(f"an answer of {length!r} bytes")
    return Answer(status, headers, _exactly(came, int(length)))


def _read_headers(came: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    while line := _line(came):
        name, colon, value = line.partition(":")
        if not colon or len(headers) == MOST_HEADERS:
            raise WireError(f"no header: {line[:80]!r}")
        headers[name.strip().lower()] = value.strip()
    return headers


def _read_chunks(came: BinaryIO) -> bytes:
    pieces = []
    while size := _size(_line(came)):
        pieces.append(_exactly(came, size))
        _line(came)
    while _line(came):  # what may follow the last piece
        pass
    return b"".join(pieces)


def _size(line: str) -> int:
    try:
        return int(line.partition(";")[0], 16)
    except ValueError:
        raise WireError(f"no size of a piece: {line[:80]!r}") from None


def _line(came: BinaryIO) -> str:
    line = came.readline(MOST_LINE)
    if not line.endswith(b"\n"):
        raise WireError("a line without an end") if line else ConnectionResetError("hung up")
    return line.decode("latin-1").rstrip("\r\n")


def _exactly(came: BinaryIO, size: int) -> bytes:
    body = came.read(size)
    if len(body) != size:
        raise WireError(f"{len(body)} bytes of {size}, and no more")
    return body
