"""What a job runs and how, which the core need not know: command, environment, user, output, limits, ending.

A payload is stored in the journal beside the submission of its job. None is "not said": no limit is set, the
engine's own place is taken.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from aliquot.core.errors import SpecError
from aliquot.core.grants import Placement


class User(msgspec.Struct, frozen=True):
    """Whom the job runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Output(msgspec.Struct, frozen=True):
    """Where output goes: absolute paths. A file that would grow over `keep_kib` is rotated.

    `keep_files` are kept in all, the newest under the plain name.
    """

    out: str | None = None  # None: a file of the engine's
    err: str | None = None  # None: with `out`
    keep_kib: int | None = None
    keep_files: int = 4


class Stop(msgspec.Struct, frozen=True):
    """How a job is ended: `warn_signal`, after `warn_ms` TERM, after `grace_ms` KILL."""

    warn_signal: int | None = None
    warn_ms: int = 0
    grace_ms: int = 10_000


class Limits(msgspec.Struct, frozen=True):
    """What the cgroup of a job enforces, as far as the host can."""

    memory_mib: int | None = None
    cpu_milli: int | None = None
    cpus: str | None = None  # a list such as "0-3,8"
    mems: str | None = None  # NUMA nodes to take memory from
    pids: int | None = None
    denied_devices: tuple[str, ...] = ()  # device files such as /dev/nvidia3


class Payload(msgspec.Struct, frozen=True):
    """One job's command and all around it. Each member of a gang runs the same."""

    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    user: User | None = None  # None: whom the service runs as
    umask: int = 0o022
    output: Output = Output()
    stop: Stop = Stop()
    limits: Limits = Limits()
    rlimits: tuple[tuple[str, int, int], ...] = ()  # such as ("nofile", soft, hard)
    time_ms: int | None = None
    retries: int = 0  # attempts after the first that may follow a failure; none follows a limit
    member_limits: tuple[Limits, ...] = ()  # of a gang whose members ask for different things
    members: int = 1  # as written; a gang may have fewer at a time
    widths: tuple[int, ...] = ()  # of an elastic job; its limits are those at the width it was written with

    def limits_of(self, member: int, placement: Placement | None = None) -> Limits:
        """Those of one member; of an elastic job, where it was placed, those of the width it has there."""
        limits = self.member_limits[member] if member < len(self.member_limits) else self.limits
        if not self.widths or placement is None:
            return limits
        return replace(
            limits,
            memory_mib=limits.memory_mib and placement.host,
            cpu_milli=limits.cpu_milli and placement.cpu,
        )


class Ending(msgspec.Struct, frozen=True):
    """How one member of an attempt ended, as its supervisor recorded it."""

    how: str  # exited, signalled, refused, unrunnable (then `code` is 127 where it is not there, else 126)
    code: int = 0
    signal: int = 0
    reason: str = ""  # who ended it: cancelled, time-limit, ...
    text: str = ""
    wall_ms: int = 0
    user_ms: int = 0
    system_ms: int = 0
    max_rss_kib: int = 0
    lost_bytes: int = 0
    at_ms: int = 0

    @property
    def status(self) -> int:
        """The exit code a shell would report."""
        return 128 + self.signal if self.signal else self.code

    @property
    def did_run(self) -> bool:
        """Whether the command ran at all."""
        return self.how in {"exited", "signalled"}

    @property
    def is_success(self) -> bool:
        """Whether the work is done: nobody ended it and it says so itself."""
        return self.how == "exited" and self.code == 0 and not self.reason


PayloadOf = Callable[[str], Payload | None]

_DECODER = msgspec.json.Decoder(Payload)


def encode_payload(payload: Payload) -> bytes:
    """`payload` as JSON."""
    return msgspec.json.encode(payload)


def decode_payload(body: bytes) -> Payload:
    """The payload of `body`. Raises msgspec.MsgspecError."""
    return _DECODER.decode(body)


def encode_endings(endings: Sequence[Ending | None]) -> bytes:
    """How the members of an attempt ended, in member order, as JSON."""
    return msgspec.json.encode(endings)


def decode_endings(body: bytes) -> list[Ending | None]:
    """The endings of `body`. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(body, type=list[Ending | None])


def check_payload(payload: Payload) -> Payload:
    """`payload` itself; raises SpecError naming the first field that cannot be right."""
    for field, value, is_right, hint in _checks(payload):
        if not is_right:
            said = list(value) if isinstance(value, tuple) else value
            raise SpecError(f"{said!r} cannot be right", field=field, value=value, hint=hint)
    return payload


def _checks(payload: Payload) -> list[tuple[str, object, bool, str]]:
    env = [text for pair in payload.env for text in pair]
    texts = {"command": payload.command, "cwd": (payload.cwd,), "env": env}
    zeros = {field: next((text for text in said if "\0" in text), None) for field, said in texts.items()}
    out, err = payload.output.out, payload.output.err
    paths = (("cwd", payload.cwd), ("output.out", out), ("output.err", err))
    names = [name for name, _ in payload.env]
    odd = next((name for name in names if not name or "=" in name), None)
    stop, output = payload.stop, payload.output
    warn = stop.warn_signal
    return [
        ("command", payload.command, bool(payload.command and payload.command[0]), "a program to run"),
        *((field, zero, zero is None, "text without zero bytes") for field, zero in zeros.items()),
        *((field, path, path is None or path.startswith("/"), "an absolute path") for field, path in paths),
        ("env", odd, odd is None, "names without ="),
        ("umask", payload.umask, 0 <= payload.umask <= 0o777, "0 to 511, which is 0o777"),
        ("stop.warn_signal", warn, warn is None or warn in signal.valid_signals(), "a signal's number"),
        ("stop.warn_ms", stop.warn_ms, stop.warn_ms >= 0, "milliseconds, 0 or more"),
        ("stop.grace_ms", stop.grace_ms, stop.grace_ms >= 0, "milliseconds, 0 or more"),
        ("time_ms", payload.time_ms, payload.time_ms is None or payload.time_ms > 0, "milliseconds, or none"),
        ("retries", payload.retries, payload.retries >= 0, "0 or more"),
        ("output.keep_kib", output.keep_kib, output.keep_kib is None or output.keep_kib > 0, "KiB, or none"),
        ("output.keep_files", output.keep_files, output.keep_files > 0, "1 or more"),
    ]
