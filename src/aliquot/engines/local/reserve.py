"""Room on the disk that is kept for the record: a file beside it that is taken away when the disk is full.

What happened can then be recorded still: cancellations, starts, ends. New work may not use it, nor may plans.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aliquot.core.events import (
    CardsCrowded,
    CardsFaulty,
    Ended,
    Event,
    Idle,
    JobCancelled,
    NodeDrained,
    NodeJoined,
    NodeLost,
    Started,
    StartRefused,
    Stopping,
)

MOST: Final = 16 << 20  # bytes
PART: Final = 16  # of a small disk, at most one part in so many
PAGE: Final = 4096
FACTS: Final = (
    *(NodeJoined, NodeLost, NodeDrained, CardsFaulty, CardsCrowded),
    *(JobCancelled, Started, StartRefused, Stopping, Idle, Ended),
)


def may_spend(events: Sequence[Event]) -> bool:
    """Whether they all happened, and so will not wait. What is planned will: it is planned anew."""
    return all(isinstance(event, FACTS) for event in events)


class Reserve:
    """The reserve beside the file `of`, held or not. Used by one thread at a time."""

    def __init__(self, of: Path) -> None:
        self.path = of.with_name(of.name + ".reserve")
        self.is_held = self.path.exists()

    def keep(self) -> bool:
        """Hold it, where as much again stays free beside it; whether it is held and that much is free."""
        try:
            disk = shutil.disk_usage(self.path.parent)
            size = max(PAGE, min(MOST, disk.total // PART) // PAGE * PAGE)
            if self.is_held and self.path.stat().st_size >= size:
                return disk.free >= size
            if disk.free < 2 * size:
                return False
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(handle, 0, size)
            self.is_held = True
        except OSError:
            self.release()
        finally:
            os.close(handle)
        return self.is_held

    def release(self) -> bool:
        """Give the room back to the disk; False where there was none to give."""
        try:
            self.path.unlink()
        except OSError:
            self.is_held = False
            return False
        self.is_held = False
        return True
