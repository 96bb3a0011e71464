"""What has to be on the disk before anybody relies on it."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Onto the disk: what a file holds, or which names a folder has. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
