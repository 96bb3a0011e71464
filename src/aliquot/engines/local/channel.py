"""The socket that jobs report on: one for all, in the runtime folder, so that it costs a job nothing.

Who speaks is what the kernel says. A sender that floods it is slowed down by a full queue; what does not fit
is lost, which a report must bear.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

NAME: Final = "report.sock"
MOST: Final = 4096  # bytes of a report
BURST: Final = 200  # reports taken in a row before others get their turn
REST_S: Final = 0.02
_UCRED: Final = struct.Struct("=iII")  # pid, uid, gid
_LONGEST: Final = 107  # bytes the kernel allows for the name of a socket


class Channel:
    """Hands the uid and the body of each datagram to `note`, in a thread of its own.

    Raises OSError where the socket cannot be made. `is_open_to_all`: to every user, else to our own.
    """

    def __init__(self, folder: Path, note: Callable[[int, bytes], object], *, is_open_to_all: bool) -> None:
        self.path = folder / NAME
        self._note = note
        if len(os.fsencode(self.path)) > _LONGEST:
            raise OSError(f"its name is longer than {_LONGEST} bytes")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.path.unlink(missing_ok=True)
        self._socket.bind(str(self.path))
        self.path.chmod(0o666 if is_open_to_all else 0o600)
        self._thread = threading.Thread(target=self._run, name="aliquot-reports", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hear no more; jobs that report meanwhile are not hurt by it."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self.path.unlink(missing_ok=True)

    def _run(self) -> None:
        taken = 0
        while True:
            try:
                body, notes, _, _ = self._socket.recvmsg(MOST, socket.CMSG_SPACE(_UCRED.size))
            except OSError:
                return
            uid = _uid_of(notes)
            if uid is None and not body:
                return  # shut down
            if uid is not None:
                self._note(uid, body)
            taken += 1
            if taken % BURST == 0:
                time.sleep(REST_S)


def _uid_of(notes: list[tuple[int, int, bytes]]) -> int | None:
    for level, kind, said in notes:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            return int(_UCRED.unpack(said[: _UCRED.size])[1])
    return None
