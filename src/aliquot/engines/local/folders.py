"""The folder of one member of one attempt: what its supervisor is told, and what it has recorded.

    spec      what to run, where a supervisor is started by hand
    lock      held by the supervisor while it lives; the kernel drops it with the process
    start     the command's pid, its start time and the boot; before the command may run
    running   the command runs
    exit      how it ended; after every process is gone
    void      this attempt must never run any more
    remark    why it ended, added by the engine
    control   a fifo for commands

Nothing in here is trusted for more than one boot: `start` names the boot it is of.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import struct
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from aliquot.core.ids import GrantId, JobId
from aliquot.engines.local.payload import Ending

_FLOCK: Final = "@hhqqi4x"  # struct flock: type, whence, start, length, pid
_LONGEST: Final = 200
GONE: Final = ".gone"
"""Added to the name of a folder that is being taken away; the supervisor's nursery does the same."""


class Begun(NamedTuple):
    """What `start` says: the command by pid, start time in clock ticks since boot, and boot id."""

    pid: int
    ticks: int
    boot: str


class Folder:
    """The files of `held` under `state`. Made by `make`; asking costs nothing where it is not there."""

    __slots__ = ("at", "held")

    def __init__(self, state: Path, held: GrantId, path: Path | None = None) -> None:
        self.held = held
        self.at = str(path or f"{state}/{quoted(held.job)}.{held.attempt}.{held.member}")

    @property
    def path(self) -> Path:
        """Where it is."""
        return Path(self.at)

    def make(self) -> None:
        """The folder, empty; none of the attempt's supervisors can begin before, or once it is gone again."""
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)

    def prepare(self, spec: bytes) -> None:
        """The folder with its `spec`, whole or not at all."""
        self.make()
        beside = self.path / "spec.new"
        beside.touch(mode=0o600)  # it holds the job's environment
        beside.write_bytes(spec)
        beside.replace(self.path / "spec")

    def exists(self) -> bool:
        """Whether anything was begun here."""
        return self.path.is_dir()

    def drop(self) -> None:
        """Take it away: nothing can run here any more, since a supervisor needs the folder to begin.

        Aside first: one that is late must not find its folder in its place without the records.
        """
        with contextlib.suppress(OSError):
            self.path.rename(self.at + GONE)
        shutil.rmtree(self.at + GONE, ignore_errors=True)

    def holder(self) -> int | None:
        """The pid of the living supervisor, or None: then no supervisor of this attempt runs a command."""
        try:
            fd = os.open(f"{self.at}/lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return lock_owner(fd)
        finally:
            os.close(fd)

    def make_void(self) -> bool:
        """See to it that no supervisor, however late, starts this attempt; False where one lives."""
        self.make()
        fd = os.open(f"{self.at}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (self.path / "void").touch(mode=0o600)
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise
            return False
        finally:
            os.close(fd)
        return True

    def begun(self) -> Begun | None:
        """Where and when the command was started, or None where it was not."""
        fields = self._record("start")
        if fields is None:
            return None
        return Begun(int(fields["pid"]), int(fields["ticks"]), fields["boot"])

    def is_running(self) -> bool:
        """Whether the command was seen to run."""
        return self._record("running") is not None

    def ending(self) -> Ending | None:
        """How it ended, or None where that is not recorded."""
        text = self._read("exit")
        ending = None if text is None else self.ending_of(text)
        return ending and msgspec.structs.replace(ending, reason=ending.reason or self._remark())

    def ending_of(self, text: str) -> Ending | None:
        """The same of a record as it was told, without a remark; None where it is not whole."""
        fields = _fields(text)
        if fields is None:
            return None
        numbers = {name: int(fields.get(name, "0")) for name in _NUMBERS}
        return Ending(fields["how"], reason=fields["reason"], text=fields["text"], **numbers)

    def remark(self, reason: str) -> None:
        """Why it ended, where the engine knows what its supervisor could not see."""
        (self.path / "remark").write_text(reason, encoding="utf-8")

    def _remark(self) -> str:
        try:
            return (self.path / "remark").read_text(encoding="utf-8")
        except OSError:
            return ""

    def command(self, line: str) -> bool:
        """Tell the supervisor; False where none listens."""
        try:
            fd = os.open(f"{self.at}/control", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            os.write(fd, line.encode() + b"\n")
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _record(self, name: str) -> dict[str, str] | None:
        """The fields of a record; None where it is not there or not whole."""
        text = self._read(name)
        return None if text is None else _fields(text)

    def _read(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


_NUMBERS: Final = (
    "code", "signal", "wall_ms", "user_ms", "system_ms", "max_rss_kib", "lost_bytes", "at_ms",
)  # fmt: skip  # one line reads as the record


def folder_at(state: Path, path: Path) -> Folder | None:
    """The folder that lies at `path`, or None where that is none in `state`."""
    if path.parent != state:
        return None
    name, *numbers = path.name.split(".")
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):  # as `quoted` names it
        return None
    # of a very long id only the digest is known, which equals no id that the world may ask for
    return Folder(state, GrantId(JobId(unquote(name)), int(numbers[0]), int(numbers[1])), path)


def folders_of(state: Path, job: JobId, attempt: int) -> list[Folder]:
    """The folders there are of one attempt, in member order."""
    found = (folder_at(state, path) for path in state.glob(f"{quoted(job)}.{attempt}.*"))
    members = sorted(folder.held.member for folder in found if folder is not None)
    return [Folder(state, GrantId(job, attempt, member)) for member in members]


def quoted(job: str) -> str:
    """`job` as one path component without a dot; a very long one by its digest, which no id can look like."""
    name = quote(job, safe="").replace(".", "%2E")
    return name if len(name) <= _LONGEST else "%%" + hashlib.sha256(job.encode()).hexdigest()


def group_name(held: GrantId) -> str:
    """What the control group of a member is called."""
    return f"job-{quoted(held.job)}.{held.attempt}.{held.member}"


def all_folders(state: Path) -> list[Folder]:
    """Every folder there is, in no order that means anything."""
    found = (folder_at(state, path) for path in state.glob("*"))
    return [folder for folder in found if folder is not None]


def clear_gone(state: Path) -> None:
    """Take away what somebody began to and did not finish."""
    for path in state.glob("*" + GONE):
        shutil.rmtree(path, ignore_errors=True)


def boot_id() -> str:
    """The id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def lock_owner(fd: int) -> int | None:
    """The process that holds a lock on the open file, or None."""
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    return None if kind == fcntl.F_UNLCK else int(pid)


def _fields(text: str) -> dict[str, str] | None:
    lines = text.split("\n")
    if lines[-2:] != ["end", ""]:
        return None
    return {key: value for key, _, value in (line.partition(" ") for line in lines[:-2])}
