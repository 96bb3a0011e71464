"""A service goes on though nobody reads what it says: in pipes of its own, and as a process."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import TextIO

import pytest

from aliquot.interfaces.cli.unread import Unread
from tests.support.local import wait_for
from tests.support.service import LiveService

PAGE = 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, TextIO]]:
    """The end to read from, and a stream to write to, of a pipe that holds one page."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PAGE)
    with open(into, "w", encoding="utf-8", errors="backslashreplace") as stream:  # noqa: PTH123 - a descriptor
        yield out, stream
    os.close(out)


def test_lines_without_room_are_dropped_and_counted_once_there_is_some(pipe: tuple[int, TextIO]) -> None:
    out, stream = pipe
    unread = Unread(stream)
    for number in range(100):
        print(f"line {number:04} {'x' * 90}", file=unread, flush=True)
    read = os.read(out, 10 * PAGE).decode().splitlines()
    assert read[0].startswith("line 0000 ")
    whole = [line for line in read if len(line) == 100]
    print("after", file=unread, flush=True)
    rest = os.read(out, 10 * PAGE).decode()
    counted, last = rest.splitlines()[-2:]
    assert last == "after"
    dropped = int(counted.split()[1])
    assert counted == f"note: {dropped} lines were not written here, since nobody read"
    begun = len(read) - len(whole)
    assert len(whole) + begun + dropped == 100
    assert begun <= 1


def test_a_line_that_was_begun_is_finished_before_another(pipe: tuple[int, TextIO]) -> None:
    out, stream = pipe
    unread = Unread(stream)
    unread.write("long" * PAGE + "\n")
    unread.write("dropped\n")
    found = ""
    while not found.endswith("end\n"):
        found += os.read(out, 10 * PAGE).decode()
        unread.write("end\n")
    lines = found.splitlines()
    assert lines[0] == "long" * PAGE
    assert lines[1].startswith("note: ")
    assert "dropped" not in lines


def test_what_nobody_can_read_any_more_is_an_error_as_ever(pipe: tuple[int, TextIO]) -> None:
    out, stream = pipe
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, out)
    os.close(null)
    with pytest.raises(BrokenPipeError):
        Unread(stream).write("to nobody\n")


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_service_whose_output_is_a_full_pipe_that_nobody_reads_goes_on(name: str) -> None:
    with LiveService() as service:
        service.stop()
        files = service.write(
            "queues.yaml", "apiVersion: aliquot.dev/v1\nkind: Queue\nmetadata: {name: a}\nspec: {}\n"
        )
        service.options.append(str(files))
        out, into = os.pipe()
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PAGE)
        os.write(into, b"x" * PAGE)
        service.start(**{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, name: into})
        os.close(into)
        assert service.process is not None
        service.process.send_signal(signal.SIGHUP)
        wait_for(lambda: service.client.wait(service.submit("true")).job.phase == "succeeded", "a job")
        service.stop()
        os.close(out)
