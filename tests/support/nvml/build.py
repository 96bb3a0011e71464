"""Compiles the simulated `libnvidia-ml.so.1` against the vendor's own header, once per content.

The header comes from the installed package nvidia-nvml-dev; only its declarations are used. The library is
kept under `build/` of the checkout, named by a digest of everything that went into it, so that parallel test
runs make it at most once each and never see half of one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent
ROOT: Final = SOURCES.parents[2]
SONAME: Final = "libnvidia-ml.so.1"
FLAGS: Final = (
    "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden",
    "-pthread",
)  # fmt: skip  # one line reads as the command


class CannotBuildError(Exception):
    """No compiler or no header on this machine; says which and what to install."""


def build_library() -> Path:
    """The path of the compiled library, in a folder fit for LD_LIBRARY_PATH. Raises CannotBuildError."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise CannotBuildError("no C compiler; Debian: apt-get install gcc libc6-dev")
    header = find_header()
    files = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    digest = hashlib.sha256()
    for file in (*files, header):
        digest.update(file.read_bytes())
    digest.update(" ".join(FLAGS).encode())
    library = ROOT / "build" / "nvml" / digest.hexdigest()[:16] / SONAME
    if not library.exists():
        compile_library(compiler, header.parent, [file for file in files if file.suffix == ".c"], library)
    return library


def find_header() -> Path:
    """`nvml.h` of the installed package. Raises CannotBuildError."""
    try:
        files = metadata.files("nvidia-nvml-dev") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "nvml.h":
            return Path(str(file.locate())).resolve()
    raise CannotBuildError("no nvml.h; pip install nvidia-nvml-dev")


def compile_library(compiler: str, include: Path, sources: list[Path], library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / SONAME
        command = [compiler, *FLAGS, f"-Wl,-soname,{SONAME}", "-isystem", str(include), "-o", str(made)]
        done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBuildError(f"the simulated library does not compile:\n{done.stderr}")
        made.replace(library)
