"""Where a service keeps what does not outlive the boot, and a name for it that no other service here has."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from aliquot.engines.local.folders import boot_id
from aliquot.engines.local.nursery import LOCK, await_end

NOTE: Final = "runtime"  # in the state: of which boot, and where
MEMORY: Final = (Path("/run"), Path("/dev/shm"))  # a folder there is taken only if it is ours


class Places(NamedTuple):
    """Where things are: the supervisor's program, the attempts' folders, and output not named by the job.

    `state` holds nothing that outlives the boot: on a memory file system starting a job costs a fraction.
    """

    program: Path
    state: Path
    output: Path


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
    found = (parent / site_name(state) for parent in MEMORY if _is_memory(parent))
    return next(found, usual or state)


def make_runtime(runtime: Path, state: Path) -> Path:
    """The folder, if it is ours alone to write in, else `state`: anyone may have made one of its name.

    Of one boot it is always the same, however things have changed: jobs that run are looked for there.
    """
    note, boot = state / NOTE, boot_id()
    with contextlib.suppress(OSError, ValueError):
        noted, path = note.read_text(encoding="utf-8").split("\n", 1)
        if noted == boot and (Path(path) == state or _make_own(Path(path))):
            return Path(path)
    chosen = runtime if runtime == state or _make_own(runtime) else state
    beside = note.with_suffix(".new")
    beside.write_text(f"{boot}\n{chosen}", encoding="utf-8")
    beside.replace(note)
    return chosen


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
    """Whether the folder is there now, and nobody else may write in it."""
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
