"""A service on its way: a file beside its socket says so, and who asks too early is told.

It holds the number of the process that starts, so that what one leaves behind that was killed means nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def announced(socket: Path) -> Iterator[None]:
    """While inside, whoever finds nothing at `socket` may know that this process will answer there."""
    file = _file_of(socket)
    with suppress(OSError):  # without it the service is merely not announced
        socket.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(os.getpid()), encoding="ascii")
        file.chmod(0o644)
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink()


def is_announced(socket: Path) -> bool:
    """Whether a process that lives is about to answer there."""
    try:
        pid = int(_file_of(socket).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False
    return Path("/proc", str(pid)).exists()


def _file_of(socket: Path) -> Path:
    return socket.with_name(f"{socket.name}.starting")
