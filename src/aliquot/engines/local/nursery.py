"""The process that forks supervisors, and the one channel on which all of them tell news.

To fork the service, or even to spawn from it, costs milliseconds; the nursery is small and takes a fraction
of one. Nothing depends on it: when it dies, supervisors live on and a new one is begun.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Final, NamedTuple

from aliquot.engines.local.folders import lock_owner

_HEADER: Final = struct.Struct("=IIQ")  # size of the body, kind, serial
_START, _DROP = ord("S"), ord("D")
_ORDERS_FD, _NEWS_FD = 3, 4  # where it expects them
_FREE_FD: Final = 10  # above both, so that moving one does not close the other
_PATIENCE_S: Final = 5.0
_ROOM: Final = 1 << 20  # for news, as far as the kernel lets us
_PIECE: Final = 2048
_LOOK_S: Final = 0.001
LOCK: Final = "nursery.lock"


class News(NamedTuple):
    """What a supervisor told, or the nursery of it: started, stopping, over (with its record), gone."""

    serial: int
    what: str
    record: str


class Nursery:
    """Begins when made. Raises OSError where `program` cannot be run.

    `state`: the folder of the attempts' folders. `pidfd` and `news` may be polled: readable when it has died,
    and when there is news.
    """

    def __init__(self, program: Path, state: Path) -> None:
        orders, their_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        news, their_news = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders, self.news = orders, news
        self._unsent: list[bytes] = []
        try:
            self._pid = _spawn(program, state / LOCK, their_orders, their_news)
        except OSError:
            orders.close()
            news.close()
            raise
        finally:
            their_orders.close()
            their_news.close()
        orders.settimeout(_PATIENCE_S)
        news.setblocking(False)  # the socket's own signature
        self.pidfd = os.pidfd_open(self._pid)

    def start(self, serial: int, folder: str, spec: bytes) -> None:
        """Have the folder made, and a supervisor see to its attempt, at the next `flush`."""
        self._order(_START, serial, os.fsencode(folder) + b"\0" + spec)

    def drop(self, folder: str) -> None:
        """Have a folder taken away, soon after the next `flush`."""
        self._order(_DROP, 0, os.fsencode(folder))

    def flush(self) -> None:
        """Send what was ordered. Raises OSError: what was ordered may then happen or not.

        Half an order would spoil every later one, so then it has to be buried.
        """
        if not self._unsent:
            return
        try:
            self._orders.sendall(b"".join(self._unsent))
        finally:
            self._unsent.clear()

    def hear(self) -> list[News]:
        """What was told since the last call, oldest first; from all whose channel this is."""
        heard: list[News] = []
        while True:
            try:
                piece = self.news.recv(_PIECE)
            except (BlockingIOError, InterruptedError):
                return heard
            if not piece:  # nobody is left on the other side
                return heard
            head, _, record = piece.decode(errors="replace").partition("\n")
            serial, _, what = head.partition(" ")
            heard.append(News(int(serial), what, record))

    def close(self) -> None:
        """Let it end; its supervisors go on. Whoever is told later reads the records."""
        self._orders.close()
        self.news.close()
        os.close(self.pidfd)

    def bury(self) -> None:
        """See to it that it is dead, so that another can begin, and stays in no table of processes."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitid(os.P_PID, self._pid, os.WEXITED)

    def _order(self, kind: int, serial: int, body: bytes) -> None:
        self._unsent += (_HEADER.pack(len(body), kind, serial), body)


def await_end(state: Path, patience_s: float = _PATIENCE_S) -> None:
    """Return once no nursery of an earlier service is left, which is soon; one that hangs is killed."""
    end = time.monotonic() + patience_s
    while (pid := living_nursery(state)) is not None:
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_S)


def living_nursery(state: Path) -> int | None:
    """The pid of the nursery of the attempts in `state`, whichever service began it."""
    try:
        fd = os.open(state / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return lock_owner(fd)
    finally:
        os.close(fd)


def _spawn(program: Path, lock: Path, orders: socket.socket, news: socket.socket) -> int:
    news.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
    moved = [fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _FREE_FD) for end in (orders, news)]
    actions = [
        (os.POSIX_SPAWN_DUP2, moved[0], _ORDERS_FD),
        (os.POSIX_SPAWN_DUP2, moved[1], _NEWS_FD),
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    words = [str(program), "--nursery", str(lock)]
    try:
        return os.posix_spawn(program, words, {}, file_actions=actions, setsid=True)
    finally:
        for end in moved:
            os.close(end)
