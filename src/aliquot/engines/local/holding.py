"""One service per journal: a lock file beside it, held for as long as the process lives.

The kernel drops the lock when its holder dies, however it dies, so nothing has to be cleaned up. The pid in
the file is only for the message; a pid is never trusted to tell who holds the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from aliquot.engines.local.errors import JournalError, JournalLockedError, JournalReadOnlyError

_UNWRITABLE: Final = {errno.EROFS, errno.EACCES, errno.EPERM}


class Holding:
    """The lock on `path`. Raises JournalLockedError at once where another process has it."""

    def __init__(self, path: Path) -> None:
        self._fd = _open(path)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        kind = JournalReadOnlyError if error.errno in _UNWRITABLE else JournalError
        raise kind(f"{path}: {error.strerror}; the journal needs a folder it may write") from error


def _read_pid(fd: int) -> int | None:
    text = os.pread(fd, 20, 0).strip()
    return int(text) if text.isdigit() else None
