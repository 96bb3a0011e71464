"""Staying with a job: its place in the queue, its output as it comes, its signals, its exit code.

A service that goes away for a while is waited for: the job does not notice, and neither need its caller.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from aliquot.control.errors import UnavailableError
from aliquot.control.live import OutputPiece, Remote
from aliquot.control.views import JobDetail, JobSummary, Submission
from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.endings import end_line
from aliquot.interfaces.cli.job_rows import counts_of
from aliquot.interfaces.cli.live_asks import tasks_of
from aliquot.interfaces.cli.live_text import WHEN, waiting_line
from aliquot.interfaces.cli.plain import say
from aliquot.interfaces.cli.several import do_each

POLL_S: Final = 20.0
AWAY_S: Final = 60.0
GIVEN_UP: Final = 130
UNKNOWN: Final = 1
ARRAY_S: Final = 1.0  # between two looks at an array
MEMBERS_S: Final = 0.2  # between two looks at the output of members
PENDING: Final = "pending"
_NOT_ASKED: Final = (FileNotFoundError, ConnectionRefusedError, PermissionError)
_T = TypeVar("_T")


def submit_surely(remote: Remote, wanted: Submission) -> str:
    """Submit a job; its id, also where the answer to that was lost: under its key it is asked for again."""
    keyed = wanted if wanted.key else replace(wanted, key=os.urandom(16).hex())
    try:
        return remote.submit(keyed)
    except UnavailableError as error:
        # without a connection nothing was asked, and what the service has answered itself is no accident
        if error.__cause__ is None or isinstance(error.__cause__, _NOT_ASKED):
            raise
    return _patiently(lambda: remote.submit(keyed))


def run_job(remote: Remote, job: str) -> int:
    """Stay with `job` until it is over; its exit code."""
    with _given_up_unread(remote, job):
        _await_turn(remote, job)
        print_output(remote, job, follow=True)
        detail = _await_end(remote, job)
    code = exit_code(detail)
    said = end_line(detail)
    if said:
        say(said)
    return code


def run_array(remote: Remote, array: str) -> int:
    """Stay with all jobs of `array`, and say how many are how far; the exit code of the first that failed."""
    said = ""
    with _given_up_unread(remote, array):
        while True:
            (row,) = _patiently(lambda: remote.jobs(array=array, fold=True))
            line = f"array {array}: {counts_of(row)}"
            if line != said:
                say(line)
                said = line
            if row.over_ms is not None:
                break
            time.sleep(ARRAY_S)
    return _worst(_patiently(lambda: remote.jobs(array=array)))


def print_output(remote: Remote, job: str, *, follow: bool, member: int | None = None) -> None:
    """What `job` has printed, to standard output as it is; to its end if `follow`.

    Of a job of several members and without `member`, all of it, each line behind its member's number.
    """
    size = _patiently(lambda: remote.job(job)).job.members if member is None else 1
    if size > 1:
        _print_all(remote, job, size, follow=follow)
        return
    piece = OutputPiece(b"", 0, 0, is_over=False)
    while not piece.is_over:
        timeout = POLL_S if follow else 0
        ask = partial(remote.output, job, member=member or 0, timeout=timeout)
        piece = _patiently(partial(ask, offset=piece.offset, file=piece.file))
        sys.stdout.buffer.write(piece.body)
        sys.stdout.flush()
        if not piece.body and not follow:
            return


def _print_all(remote: Remote, job: str, size: int, *, follow: bool) -> None:
    """Member after member, again and again; a line is printed once it is whole, or there is no more."""
    pieces = [OutputPiece(b"", 0, 0, is_over=False) for _ in range(size)]
    rests = [b""] * size
    while True:
        came = False
        for member in range(size):
            if pieces[member].is_over:
                continue
            ask = partial(remote.output, job, member=member)
            piece = _patiently(partial(ask, offset=pieces[member].offset, file=pieces[member].file))
            *lines, rests[member] = (rests[member] + piece.body).split(b"\n")
            if (piece.is_over or (not follow and not piece.body)) and rests[member]:
                lines, rests[member] = [*lines, rests[member]], b""
            for line in lines:
                sys.stdout.buffer.write(b"%d: %s\n" % (member, line))
            came = came or bool(piece.body)
            pieces[member] = piece
        sys.stdout.flush()
        if all(piece.is_over for piece in pieces) or (not came and not follow):
            return
        if not came:
            time.sleep(MEMBERS_S)


def wait_for(remote: Remote, jobs: Sequence[str]) -> int:
    """Until all, jobs and arrays, are over; the exit code of the first that failed, or 0."""
    codes: list[int] = []
    missed = do_each(jobs, lambda job: codes.append(_await_code(remote, job)))
    return next((code for code in codes if code), missed)


def exit_code(detail: JobDetail) -> int:
    """The job's own; where it has none, 0 for a success, 130 where it was given up, else 1."""
    return code_of(detail.job)


def code_of(job: JobSummary) -> int:
    """The same of its row."""
    status = job.exit_status
    if status is not None:
        return status if status or job.phase == "succeeded" else UNKNOWN
    return {"succeeded": 0, "cancelled": GIVEN_UP}.get(job.phase, UNKNOWN)


def _await_code(remote: Remote, job: str) -> int:
    """The exit code of a job, or of the first job of an array that failed, once all is over."""
    tasks = _patiently(lambda: tasks_of(remote, job))
    if tasks is None:
        return exit_code(_await_end(remote, job))
    codes = [exit_code(_await_end(remote, task.id)) for task in tasks if task.over_ms is None]
    return _worst(_patiently(lambda: remote.jobs(array=job))) or next((code for code in codes if code), 0)


def _worst(tasks: Sequence[JobSummary]) -> int:
    """The exit code of the first that did not succeed, or 0."""
    codes = [code_of(task) for task in tasks]
    return next((code for code in codes if code), 0)


def _await_turn(remote: Remote, job: str) -> None:
    """Say on standard error where it stands, as long as it waits."""
    said = ""
    detail = _patiently(lambda: remote.job(job, phase=PENDING, timeout=0.5))
    while detail.job.phase == PENDING:
        line = _patiently(lambda: waiting_line(remote.explain(job)))
        if line and line.partition(WHEN)[0] != said:
            say(line)
            said = line.partition(WHEN)[0]  # when it starts is another with every look
        detail = _patiently(lambda: remote.job(job, phase=PENDING, timeout=2))


def _await_end(remote: Remote, job: str) -> JobDetail:
    detail = _patiently(lambda: remote.job(job))
    while not detail.is_over:
        detail = _patiently(partial(remote.job, job, phase=detail.job.phase, timeout=POLL_S))
    return detail


def _patiently(ask: Callable[[], _T]) -> _T:
    """Ask again while the service is away, for a minute."""
    end: float | None = None
    while True:
        try:
            return ask()
        except UnavailableError:
            if end is None:
                end = time.monotonic() + AWAY_S
                say("the service is away; the job goes on, waiting for it")
            if time.monotonic() >= end:
                raise
            time.sleep(0.2)


@contextmanager
def _given_up_unread(remote: Remote, job: str) -> Iterator[None]:
    """Where its output goes nowhere any more, nobody waits for it: it is given up."""
    try:
        yield
    except OSError:  # of what is printed: what goes wrong with the service is an UnavailableError
        with suppress(AliquotError, OSError):
            _patiently(lambda: remote.cancel(job))
        raise
