"""Signals of whoever runs a job, from before it is submitted until it is over: they are for the job.

What comes while the service has not answered yet waits for the answer, so that no accepted job is left.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final, Self

from aliquot.control.errors import UnavailableError
from aliquot.control.live import Remote
from aliquot.core.errors import AliquotError
from aliquot.interfaces.cli.leaving import INTERRUPTED

PASSED: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
HARMLESS: Final = frozenset({signal.SIGUSR1, signal.SIGUSR2})  # they mean something to the job or nothing
OF_SIGNALS: Final = 128  # an exit code is this and the signal's number
_GIVEN_UP: Final = frozenset({INTERRUPTED, OF_SIGNALS + signal.SIGTERM, OF_SIGNALS + signal.SIGKILL})


class Passing:
    """While inside, signals go to the job, once it is known.

    One that ends a process gives up a job that does not run yet, and a second interrupt one that does. What
    this process ignores, such as the hangup of a terminal under nohup, is ignored on.
    """

    def __init__(self, remote: Remote) -> None:
        self.given_up: int | None = None  # the signal that the job was given up for
        self._remote = remote
        self._job: str | None = None
        self._waiting: list[int] = []
        self._interrupts = 0
        self._is_away = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take signals."""
        for number in PASSED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def go_to(self, job: str) -> None:
        """It is accepted: from now on signals are for `job`, and those that came before are passed on."""
        self._job = job
        waiting, self._waiting = self._waiting, []
        for number in waiting:
            self._pass_on(number, job)

    def leave_to_itself(self, job: str) -> None:
        """It is accepted, and nobody stays with it: give it up if that was asked for meanwhile."""
        wanted = [number for number in self._waiting if number not in HARMLESS]
        if wanted:
            self._remote.cancel(job)
            self.given_up = wanted[0]

    def code(self, own: int) -> int:
        """The exit code: the job's own, unless it was given up before it ran, and that was its end."""
        if self.given_up is None or own not in _GIVEN_UP:
            return own
        return OF_SIGNALS + self.given_up

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._job is not None:
            self._pass_on(number, self._job)
            return
        if number not in HARMLESS and any(one not in HARMLESS for one in self._waiting):
            _leave(number, "the service has not answered; 'aliquot jobs' shows whether it has the job")
        self._waiting.append(number)

    def _pass_on(self, number: int, job: str) -> None:
        self._interrupts += number == signal.SIGINT
        try:
            reached = self._remote.signal(job, number) if self._interrupts < 2 else False
            if not reached and number not in HARMLESS:
                self._remote.cancel(job)
                if self._interrupts < 2:  # else it ran, and ends as it likes
                    self.given_up = self.given_up or number
        except UnavailableError:
            if self._is_away and number not in HARMLESS:
                _leave(number, f"the service is away; job {job} goes on")
            self._is_away = True
            _say("the service is away and cannot be told; once more, and the job is left to itself")
        except AliquotError:
            pass  # it is over already


def _leave(number: int, line: str) -> None:
    _say(line)
    os._exit(OF_SIGNALS + number)


def _say(line: str) -> None:
    """Whoever is interrupted may be in the middle of printing, so not by the same stream."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())
