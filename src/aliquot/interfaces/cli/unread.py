"""Output of a process that goes on though nobody reads it: lines for which there is no room are dropped.

A service whose standard error is a pipe would stop at the first line that doesn't fit into it. To make the
pipe non-blocking would change it for everybody who shares it, so a line is begun only where the kernel has
room for a piece of it. How many were dropped is said before the next that is not.
"""

from __future__ import annotations

import io
import os
import select
import sys
from threading import Lock
from typing import Final, TextIO

PIECE: Final = select.PIPE_BUF
"""Bytes that a pipe, a terminal or a socket takes at once where it takes any."""


class Unread(io.TextIOBase):
    """In place of `stream`, whose descriptor is written to. From any thread; a line is written as a whole.

    Raises what a write raises, such as BrokenPipeError; never waits.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._fd, self._codec = stream.fileno(), (stream.encoding, stream.errors or "strict")
        self._line = ""
        self._rest = b""  # of a line that was begun
        self._dropped = 0
        self._lock = Lock()
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # which says that it could be changed
        """The stream's."""
        return self._codec[0]

    @property
    def errors(self) -> str:  # type: ignore[override]  # the same
        """The stream's."""
        return self._codec[1]

    def fileno(self) -> int:
        """The stream's."""
        return self._fd

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._fd)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str, /) -> int:
        """Write whole lines; the rest with what ends it, or at a flush."""
        if not isinstance(text, str):
            raise TypeError("text is written here")
        with self._lock:
            *lines, self._line = (self._line + text).split("\n")
            for line in lines:
                self._put(f"{line}\n")
        return len(text)

    def flush(self) -> None:
        """Write what is no whole line yet."""
        with self._lock:
            line, self._line = self._line, ""
            if line:
                self._put(line)

    def _put(self, line: str) -> None:
        if not (self._finish() and self._is_open()):
            self._dropped += 1
            return
        if self._dropped:
            lines = "1 line was" if self._dropped == 1 else f"{self._dropped} lines were"
            line, self._dropped = f"note: {lines} not written here, since nobody read\n{line}", 0
        self._rest = line.encode(*self._codec)
        self._finish()

    def _finish(self) -> bool:
        """Write what was begun, as far as there is room; whether all of it is."""
        while self._rest and self._is_open():
            self._rest = self._rest[os.write(self._fd, self._rest[:PIECE]) :]
        return not self._rest

    def _is_open(self) -> bool:
        """Whether there is room, or an error to be told of."""
        return bool(self._poll.poll(0))


def never_wait() -> None:
    """From now on nobody who prints on standard output or error waits for whoever reads it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            stream.fileno()
        except (OSError, ValueError):
            continue  # no file: nothing to wait for
        stream.flush()
        setattr(sys, name, Unread(stream))
