"""One service per journal: a lock file beside it, held for as long as the process lives.

The kernel drops the lock when its holder dies, however it dies, so nothing has to be cleaned up. The pid in
the file is only for the message; a pid is never trusted to tell who holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from aliquot.engines.local.errors import JournalError, JournalLockedError, JournalReadOnlyError

_LOOK_S: Final = 0.01
_UNWRITABLE: Final = {errno.EROFS, errno.EACCES, errno.EPERM}


PATIENCE_S: Final = 2.0
"""A child that is begun has the lock too, until the kernel has replaced its program: a service that ends or
is killed in that moment leaves it to the child."""


class Holding:
    """The lock on `path`. Raises JournalLockedError where another process has it: at once while who took it
    lives, else after a moment."""

    def __init__(self, path: Path) -> None:
        self._fd = _open(path)
        try:
            _lock(self._fd)
        except OSError as error:
            pid = _read_pid(self._fd)
            os.close(self._fd)
            if error.errno != errno.EWOULDBLOCK:
                raise JournalError(f"{path}: cannot be locked ({error.strerror})") from error
            who = f"process {pid}" if pid else "another process"
            raise JournalLockedError(
                f"{path.with_suffix('')} is in use by {who}: one service per journal", pid
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let another service have it; more than once is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _lock(fd: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK or _lives(_read_pid(fd)) or time.monotonic() > end:
                raise
            time.sleep(_LOOK_S)
        else:
            return


def _lives(pid: int | None) -> bool:
    return pid is not None and pid != os.getpid() and Path(f"/proc/{pid}").exists()


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        kind = JournalReadOnlyError if error.errno in _UNWRITABLE else JournalError
        raise kind(f"{path}: {error.strerror}; the journal needs a folder it may write") from error


def _read_pid(fd: int) -> int | None:
    text = os.pread(fd, 20, 0).strip()
    return int(text) if text.isdigit() else None
