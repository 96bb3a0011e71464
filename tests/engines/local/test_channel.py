"""The sockets that jobs report on: each user has his own, and nobody can fill another's."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aliquot.engines.local.channel import Channel
from tests.support.local import is_root, wait_for

ME = os.geteuid()
NOBODY = 65534


class Heard:
    """What was noted, by uid."""

    def __init__(self) -> None:
        self.bodies: dict[int, list[bytes]] = {}

    def note(self, uid: int, body: bytes) -> None:
        self.bodies.setdefault(uid, []).append(body)


@contextmanager
def listening(folder: Path) -> Iterator[tuple[Channel, Heard]]:
    heard = Heard()
    with Channel(folder, heard.note) as channel:
        yield channel, heard


def send(path: Path | None, *bodies: bytes) -> int:
    """How many of them were taken; one for which there is no room now is not tried again."""
    taken = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        for body in bodies:
            try:
                taken += one.sendto(body, str(path)) == len(body)
            except BlockingIOError:
                continue
    return taken


def test_who_speaks_is_what_the_kernel_says(tmp_path: Path) -> None:
    with listening(tmp_path) as (channel, heard):
        assert channel.path_for(ME) == channel.path_for(ME)
        send(channel.path_for(ME), b"one", b"")
        wait_for(lambda: heard.bodies == {ME: [b"one", b""]}, "both")


def test_what_a_killed_service_left_does_not_matter_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "7").touch()
    (tmp_path / "reports" / str(ME)).touch()
    with listening(tmp_path) as (channel, heard):
        send(channel.path_for(ME), b"x")
        wait_for(lambda: heard.bodies, "it")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_too_long_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="longer than"):
        Channel(tmp_path / ("x" * 100), lambda uid, body: None)


@pytest.mark.skipif(not is_root(), reason="only root may listen for others")
def test_a_user_who_floods_his_socket_loses_his_own_reports_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    with listening(tmp_path) as (channel, heard):
        theirs, ours = channel.path_for(NOBODY), channel.path_for(ME)
        is_over = threading.Event()

        def flood() -> None:
            while not is_over.is_set():
                send(theirs, *[b"flood"] * 500)

        threads = [threading.Thread(target=flood) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(heard.bodies.get(ME, ())) > 500, "the flood")
        sent = 0
        for number in range(50):
            sent += send(ours, b"ours %d" % number)
            time.sleep(0.005)
        assert sent == 50, "there was room for each"
        wait_for(lambda: b"ours 49" in heard.bodies[ME], "the last")
        is_over.set()
        for thread in threads:
            thread.join()
        assert [body for body in heard.bodies[ME] if body != b"flood"] == [
            b"ours %d" % at for at in range(50)
        ]


@pytest.mark.skipif(not is_root(), reason="only root may become somebody else")
def test_a_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    with listening(tmp_path) as (channel, heard):
        theirs, ours = channel.path_for(NOBODY), channel.path_for(ME)
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setuid(NOBODY)
            code = 1
            try:
                send(ours, b"let me in")
            except PermissionError:
                code = 0 if send(theirs, b"mine") else 2
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        wait_for(lambda: heard.bodies == {NOBODY: [b"mine"]}, "his own")
