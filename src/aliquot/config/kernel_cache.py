"""Where compiled kernels are kept between runs: a folder named after what they were compiled from.

Numba looks only at the file a kernel stands in, so a kernel that calls one of another file would go on with
the old code after that file changed. A digest of all kernel sources in the folder's name rules that out, and
the user's cache folder is writable where the installed package is not.
"""

from __future__ import annotations

import hashlib
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Final

PACKAGES: Final = ("aliquot.core.placement.kernels", "aliquot.core.room", "aliquot.core.room.kernels")


def keep_kernels(cache: Path) -> Path:
    """Make numba keep compiled kernels below `cache`, or in a temporary folder where that can't be written.

    To be called before the first kernel is loaded.
    """
    import numba  # not above: help must not wait for it

    folder = kernel_folder(cache)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="aliquot-kernels-"))
    numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]  # numba makes its settings at run time
    return folder


def kernel_folder(cache: Path) -> Path:
    """Where kernels of these sources are kept below `cache`."""
    return cache / "aliquot" / f"kernels-{digest_sources()}"


def digest_sources() -> str:
    """A digest of every source file that kernels are made of."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for source in sorted(files(package).iterdir(), key=lambda entry: entry.name):
            if source.name.endswith(".py"):
                digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]
