"""A machine of its own on this one: a User-Mode Linux kernel that sees our files and has a disk of its own.

    disk = make_disk(tmp_path / "disk.img")
    with Machine(tmp_path, ["python", "-m", "tests.support.guest", ...], disk) as machine:
        machine.until("READY")
        machine.cut()  # its power: what its kernel had not written to the disk is gone

Its root is ours through hostfs, `/run`, `/proc`, `/sys` and cgroups of version 2 are its own, and the disk is
mounted at `DISK`. What the program prints to its console is read here line by line.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import pytest

from tests.support.command import ROOT

KERNEL: Final = "linux.uml"
DISK: Final = "/run/disk"
MEMORY: Final = "448M"
PATIENCE_S: Final = 120
DISK_MIB: Final = 256

_BOOT: Final = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs shm /dev/shm 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir {disk}
[ -e /dev/ubda ] && mount -t ext4 /dev/ubda {disk}
cd {root}
export HOME=/root PATH={path} PYTHONPATH=src:. PYTHONDONTWRITEBYTECODE=1 {variables}
{command}
echo "EXIT $?"
sync
echo o > /proc/sysrq-trigger
sleep 60
"""


def find_missing() -> str:
    """What to install before a machine can be booted, or ""."""
    programs = {KERNEL: "user-mode-linux", "mkfs.ext4": "e2fsprogs"}
    packages = [package for program, package in programs.items() if _find(program) is None]
    return f"no User-Mode Linux here; Debian: apt-get install {' '.join(packages)}" if packages else ""


def need_kernel() -> None:
    """Skips where there is none."""
    if missing := find_missing():
        pytest.skip(missing)


def make_disk(path: Path, mib: int = DISK_MIB) -> Path:
    """An image with an empty ext4 file system, which takes room as it is written."""
    with path.open("wb") as image:
        image.truncate(mib << 20)
    subprocess.run([_find("mkfs.ext4") or "mkfs.ext4", "-q", str(path)], check=True)
    return path


class Machine:
    """Boots at once and runs `command` from the checkout; `folder` is for what this boot needs.

    `lines`: what came over the console. `heard`, if given, is called with each line as it comes, from another
    thread. As a context, its power is cut at the end if it still runs.
    """

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        disk: Path | None = None,
        heard: Callable[[str], None] = lambda line: None,
        **variables: str,
    ) -> None:
        self.lines: list[str] = []
        self._heard = heard
        self._news = threading.Condition()
        folder.mkdir(parents=True, exist_ok=True)
        boot = folder / "boot"
        said = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        boot.write_text(
            _BOOT.format(
                disk=DISK, root=ROOT, path=os.environ["PATH"], variables=said, command=shlex.join(command)
            )
        )
        boot.chmod(0o755)
        self.process = subprocess.Popen(
            [*_words(boot, disk), f"uml_dir={folder}/"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def cut(self) -> Self:
        """Its power: every thread of the kernel and every process in it dies at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self

    def until(self, start: str, *, patience_s: float = PATIENCE_S) -> str:
        """The first line that begins with `start`, once it is there; fails where the machine ends before."""
        end = time.monotonic() + patience_s
        at = 0
        with self._news:
            while True:
                for line in self.lines[at:]:
                    if line.startswith(start):
                        return line
                at = len(self.lines)
                left = end - time.monotonic()
                assert left > 0, f"no {start!r} within {patience_s} s: {self.lines[-20:]}"
                assert self._reader.is_alive(), f"ended without {start!r}: {self.lines[-20:]}"
                self._news.wait(min(left, 1))

    def said(self, start: str) -> list[str]:
        """What followed `start` in each line that begins with it."""
        with self._news:
            return [line.removeprefix(start).strip() for line in self.lines if line.startswith(start)]

    def exit_status(self, *, patience_s: float = PATIENCE_S) -> int:
        """Of the command, once it is over."""
        return int(self.until("EXIT ", patience_s=patience_s).split()[1])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode(errors="replace").rstrip("\r\n")
            self._heard(line)
            with self._news:
                self.lines.append(line)
                self._news.notify_all()


def _words(boot: Path, disk: Path | None) -> list[str]:
    return [
        _find(KERNEL) or KERNEL,
        f"mem={MEMORY}",
        "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw",
        f"init={boot}",
        "con=null", "con0=null,fd:1", "ssl=null",
        "quiet", "loglevel=0",
        *([] if disk is None else [f"ubd0={disk}"]),
    ]  # fmt: skip  # words of one kind in a line


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
