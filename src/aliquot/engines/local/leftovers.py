"""Processes of an attempt whose supervisor is gone: found by cgroup, by pid and start time, by their mark.

An attempt is over only when none of the three finds anything. A process that left its cgroup, is not the
command itself and has wiped its environment cannot be found; it takes root, or a job without cgroups.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from aliquot.core.ids import GrantId
from aliquot.engines.local.cgroups import Group
from aliquot.engines.local.compiled import NAME
from aliquot.engines.local.folders import Begun, Folder, boot_id, folder_at
from aliquot.engines.local.orders import MARK

COMM: Final = NAME[:15].encode()  # as much of a program's name as the kernel keeps
_PROC: Final = Path("/proc")
_DEEPEST: Final = 256  # generations; nobody has so many, and the list may change while it is read


def find_leftovers(mark: str, begun: Begun | None, group: Group | None) -> list[int]:
    """Pids of living processes of the attempt, sorted."""
    found = set(_marked(mark))
    if group is not None:
        found.update(group.pids())
    if begun is not None and begun.boot == boot_id() and start_ticks(begun.pid) == begun.ticks:
        found.add(begun.pid)
    return sorted(pid for pid in found if is_alive(pid))


def find_supervisors(state: Path) -> list[Folder]:
    """The folders below `state` in which a supervisor lives."""
    found = []
    for process in _processes():
        try:
            if (process / "comm").read_bytes().strip() != COMM:
                continue
            folder = folder_at(state, (process / "cwd").readlink())
        except OSError:
            continue
        if folder is not None and folder.holder() == int(process.name):
            found.append(folder)
    return sorted(found, key=lambda folder: folder.held)


def attempt_of(state: Path, pid: int) -> GrantId | None:
    """Whose process `pid` is: that of the supervisor below `state` among its forebears, or of no one.

    A supervisor adopts whatever its job leaves behind, so a process cannot leave it by detaching.
    """
    at = pid
    for _ in range(_DEEPEST):
        fields = _stat(at)
        if not fields:
            return None
        at = int(fields[1])
        if at <= 1:
            return None
        process = _PROC / str(at)
        try:
            if (process / "comm").read_bytes().strip() == COMM:
                folder = folder_at(state, (process / "cwd").readlink())
                if folder is not None:
                    return folder.held
        except OSError:
            return None
    return None


def kill_leftovers(pids: list[int]) -> None:
    """KILL each; ask again whether they are gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def start_ticks(pid: int) -> int | None:
    """When `pid` was started, in clock ticks since boot; None where there is no such process."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def is_alive(pid: int) -> bool:
    """Whether `pid` is a process that still holds anything: a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in {"Z", "X"}


def _stat(pid: int) -> list[str]:
    """The fields after the name, state first; empty where there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def _marked(mark: str) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    for folder in _processes():
        try:
            environ = (folder / "environ").read_bytes()
        except OSError:
            continue  # gone, or not ours to read
        if wanted in environ.split(b"\0"):
            yield int(folder.name)


def _processes() -> Iterator[Path]:
    return (folder for folder in _PROC.iterdir() if folder.name.isdigit())
