"""Compiles what a service has compiled, once for each version and before its first job.

Its plans use the plain twins of all kernels; compiled is what counts when those who wait will start. To
compile that takes about ten seconds of a core, and 120 MiB which a service would keep. So another process
does it, and the service loads what that leaves in the cache.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from aliquot.config.kernel_cache import keep_kernels, kernel_folder

DONE: Final = "counting"  # a file in the cache: all that counting needs is there
PATIENCE_S: Final = 60.0  # before a service without jobs takes some; it goes on beside it
NICE: Final = 10
_LOCK: Final = "lock"
_PROGRAM: Final = """\
import os, sys
from aliquot.bootstrap_kernels import NICE, compile_counting
os.nice(NICE)
compile_counting(sys.argv[1])
"""


class Warming:
    """Kernels below `cache`; where nothing can be written there, below `state`."""

    def __init__(self, cache: Path, state: Path) -> None:
        self.cache = next((place for place in (cache, state) if _is_writable(place)), cache)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_done(self) -> bool:
        """Whether all is compiled."""
        return (kernel_folder(self.cache) / DONE).exists()

    def begin(self) -> None:
        """Compile in another process, which has the modules that this one has."""
        modules = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, str(self.cache)],
            env=os.environ | {"PYTHONPATH": modules}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip  # options only

    def wait(self, seconds: float | None = None) -> None:
        """Until it has ended, however it has; no longer than `seconds`."""
        if self._process is not None:
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return

    def load(self) -> None:
        """Have numba look for kernels there, once they are. What is missing even so, it compiles itself."""
        self.wait()
        keep_kernels(self.cache)

    def close(self) -> None:
        """Compile no more."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def compile_counting(cache: str) -> None:
    """Compile in this process what is not compiled yet. Of several processes one does, the others wait."""
    folder = keep_kernels(Path(cache))
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / DONE).exists():
            from aliquot.control.counting import count_once

            count_once()
            (folder / DONE).touch()


def _is_writable(cache: Path) -> bool:
    folder = kernel_folder(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
