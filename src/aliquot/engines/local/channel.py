"""The sockets that jobs report on: one for each user, below the runtime folder, each with a queue of its own.

Who speaks is what the kernel says. Who floods his socket is slowed down by a full queue, his own: what does
not fit is lost, which a report must bear, and nobody else loses any. All are read in turn, and together no
faster than `BURST` reports in `REST_S`.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

NAME: Final = "reports"
MOST: Final = 4096  # bytes of a report
BURST: Final = 200  # reports taken in one round of all users
REST_S: Final = 0.02
_UCRED: Final = struct.Struct("=iII")  # pid, uid, gid
_LONGEST: Final = 107  # bytes the kernel allows for the name of a socket
_DIGITS: Final = 10  # of the largest uid


class Channel:
    """Hands the uid and the body of each datagram to `note`, in a thread of its own.

    Raises OSError where sockets cannot be made in `folder`. Files are given to the users they are for, which
    takes root; `path_for` may be called from any thread.
    """

    def __init__(self, folder: Path, note: Callable[[int, bytes], object]) -> None:
        self.folder = folder / NAME
        self._note = note
        if len(os.fsencode(self.folder)) + 1 + _DIGITS > _LONGEST:
            raise OSError(f"names in {self.folder} are longer than {_LONGEST} bytes")
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o711)
        for left in self.folder.iterdir():
            left.unlink()  # of a service that was killed
        self._sockets: dict[int, socket.socket] = {}  # by descriptor
        self._paths: dict[int, Path] = {}  # by uid
        self._lock = threading.Lock()
        self._epoll = select.epoll()
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._epoll.register(self._end, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="aliquot-reports", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def path_for(self, uid: int) -> Path | None:
        """Where processes of `uid` report; made at the first call. None where it cannot be made."""
        with self._lock:
            path = self._paths.get(uid)
            if path is None:
                try:
                    path = self._paths[uid] = self._listen(uid)
                except OSError:
                    return None
            return path

    def close(self) -> None:
        """Hear no more; jobs that report meanwhile are not hurt by it."""
        os.eventfd_write(self._end, 1)
        self._thread.join()
        for one in self._sockets.values():
            one.close()
        for path in self._paths.values():
            path.unlink(missing_ok=True)
        self.folder.rmdir()
        self._epoll.close()
        os.close(self._end)

    def _listen(self, uid: int) -> Path:
        path = self.folder / str(uid)
        one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            path.unlink(missing_ok=True)
            one.bind(str(path))
            path.chmod(0o600)
            if uid != os.geteuid():
                os.chown(path, uid, -1)
        except OSError:
            one.close()
            raise
        self._sockets[one.fileno()] = one
        self._epoll.register(one.fileno(), select.EPOLLIN)
        return path

    def _run(self) -> None:
        while True:
            ready = [fd for fd, _ in self._epoll.poll()]
            if self._end in ready:
                return
            share = max(1, BURST // len(ready))
            more = [self._hear(fd, share) for fd in ready]
            if any(more):
                time.sleep(REST_S)

    def _hear(self, fd: int, share: int) -> bool:
        """Take up to so many reports of one user; True where there may be more."""
        for _ in range(share):
            try:
                body, notes, _, _ = self._sockets[fd].recvmsg(MOST, socket.CMSG_SPACE(_UCRED.size))
            except OSError:
                return False
            uid = _uid_of(notes)
            if uid is not None:
                self._note(uid, body)
        return True


def _uid_of(notes: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, said in notes:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return int(_UCRED.unpack(said[: _UCRED.size])[1])
    return None
