"""How the process of a command ends: at an interrupt, when nobody reads on, and with its last output.

Left to itself, Python raises KeyboardInterrupt wherever it happens to be; while modules are loaded, or the
interpreter ends, a traceback is all that comes of it. Here an interrupt ends the process at once, and the few
commands that have something to put back are told of it instead. Loaded before all else, it loads nothing.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` takes long enough to load to be interrupted
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

INTERRUPTED = 130  # as a shell has it: 128 and the signal's number
NOBODY_READS = 141  # the same of SIGPIPE


class BrokenOutputError(Exception):
    """Whoever read what is printed reads no more."""


class Reading:
    """While inside, a pipe that nobody reads any more raises BrokenOutputError, which no parser swallows."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            raise BrokenOutputError from error


def leave_on_interrupt() -> None:
    """From now on an interrupt ends this process at once; one that is ignored stays ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


def unwind_on_interrupt() -> None:
    """From now on the first interrupt raises KeyboardInterrupt, if it ended the process until now."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _raise_once)


def stop_unwinding() -> None:
    """The command is over: an interrupt ends the process at once again."""
    if signal.getsignal(signal.SIGINT) is _raise_once:
        signal.signal(signal.SIGINT, _leave)


def open_output() -> None:
    """Whatever is printed can be, wherever it goes; called once, before anything is printed.

    A stream that this process was started without takes it and forgets it. What a stream's encoding has no
    character for is written as its code, such as \\u732b: names of jobs and users may hold any.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for good
        getattr(sys, name).reconfigure(errors="backslashreplace")


def describe_trouble(error: OSError) -> str:
    """What the system says is wrong; where it names no file, with the folder we are in or what is printed."""
    what = error.filename
    if what is None:
        is_printing = error.errno != _trouble_here()
        what = "what is printed cannot be written" if is_printing else "the folder you are in cannot be used"
    return f"{what}: {error.strerror or error}"


def _trouble_here() -> int | None:
    """What is wrong with the folder this process is in, as the system numbers it."""
    try:
        os.getcwd()  # noqa: PTH109 - nothing more is loaded here
    except OSError as error:
        return error.errno
    return None


def leave(code: int) -> int:
    """The exit code once all is written; what cannot be written any more is let go without a word."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            code = NOBODY_READS if error.errno == errno.EPIPE else code or 1
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _raise_once(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _leave)
    raise KeyboardInterrupt
