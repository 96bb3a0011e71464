"""The supervisor's program, compiled once per content of its sources.

It is C because one lives beside every running job: a Python one takes 8 MiB of its own, this takes about 0.2.
There is no second version in Python: the most delicate part of the engine would exist twice and be tested
half as well. Where no compiler is, a program compiled elsewhere does as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from aliquot.engines.local.disk import sync
from aliquot.engines.local.errors import NoSupervisorError

SOURCES: Final = Path(__file__).parent / "supervisor"
NAME: Final = "aliquot-supervisor"
FLAGS: Final = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-fstack-protector-strong", "-s")


def find_supervisor(cache: Path, *, compiler: str = "cc", ready_made: Path | None = None) -> Path:
    """The program: `ready_made` if given, else the one in `cache`, compiled now if it is not there yet.

    Raises NoSupervisorError.
    """
    if ready_made is not None:
        if os.access(ready_made, os.X_OK):
            return ready_made
        raise NoSupervisorError(f"{ready_made} is no program that can be run")
    files = sorted(SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for file in files:
        digest.update(file.read_bytes())
    program = cache / f"{NAME}-{digest.hexdigest()[:16]}"
    if not program.exists():
        _compile(compiler, [file for file in files if file.suffix == ".c"], program)
    return program


def _compile(compiler: str, sources: list[Path], program: Path) -> None:
    found = shutil.which(compiler)
    if found is None:
        raise NoSupervisorError(
            f"no C compiler ({compiler}) to make {NAME}; install one (Debian: apt-get install gcc libc6-dev)"
            " or name a program compiled on a machine of this kind"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        made = Path(folder) / NAME
        command = [found, *FLAGS, "-o", str(made), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoSupervisorError(f"{NAME} does not compile with {found}:\n{done.stderr}")
        put(made, program)


def put(made: Path, at: Path) -> None:
    """Move `made` to `at`, so that after a power cut it is there whole or not at all.

    A torn one would be refused by the kernel, job after job, for as long as its name is believed.
    """
    sync(made)
    made.replace(at)
    sync(at.parent)
