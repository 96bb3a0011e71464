"""Where a service keeps what does not outlive the boot, and a name for it that no other service here has."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from aliquot.engines.local.nursery import LOCK, await_end

MEMORY: Final = (Path("/run"), Path("/dev/shm"))  # a folder there is taken only if it is ours


def site_name(state: Path) -> str:
    """A name that no other service of this machine has: their jobs have the same ids."""
    return f"aliquot-{hashlib.sha256(bytes(state)).hexdigest()[:12]}"


def find_runtime(state: Path, usual: Path | None = None) -> Path:
    """Where the service of `state` keeps what does not outlive the boot: in memory where root may.

    Of a user's own service it stays with the state: what is in memory may be cleared when he logs out.
    """
    if os.geteuid() != 0:
        return state
    if usual is not None and _is_memory(usual.parent):
        return usual
    for parent in MEMORY:
        folder = parent / site_name(state)
        if _is_memory(parent) and _make_own(folder):
            return folder
    return usual or state


def leave_runtime(runtime: Path, state: Path, attempts: Path) -> None:
    """Take away what was made for the service of `state` alone, where no job is left in it.

    Its nursery is told to end before.
    """
    if runtime.name != site_name(state):
        return
    await_end(attempts)
    if any(path.is_dir() for path in attempts.iterdir()):
        return
    with contextlib.suppress(OSError):
        (attempts / LOCK).unlink(missing_ok=True)
        attempts.rmdir()
        runtime.rmdir()


def _is_memory(path: Path) -> bool:
    """Whether `path` lies on a file system in memory."""
    kinds = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kinds[before.split()[4]] = after.split()[0]
    return path.is_dir() and next(
        (kinds[str(at)] == "tmpfs" for at in (path, *path.parents) if str(at) in kinds), False
    )


def _make_own(folder: Path) -> bool:
    """The folder, if it is ours alone to write in: anyone may have made one of its name before."""
    try:
        folder.mkdir(mode=0o711, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
