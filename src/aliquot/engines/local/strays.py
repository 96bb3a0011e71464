"""What runs here and is no attempt on record: found by the folders of attempts, and ended.

At the start of a service at once; later now and then, and only what two looks in a row have found, since a
folder is taken away by another process and a moment later than its attempt is over. A look is a list of one
folder's names. Each service has a folder of its own, so another's attempts are never seen here.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable, Container
from pathlib import Path
from typing import Final

from aliquot.core.ids import GrantId, JobId
from aliquot.engines.local.cgroups import Group
from aliquot.engines.local.folders import Folder, all_folders, clear_gone
from aliquot.engines.local.leftovers import find_leftovers, kill_leftovers
from aliquot.engines.local.orders import mark_of

EVERY_MS: Final = 60_000
LOOKS: Final = 2
"""In a row that must find it, before it is ended."""

DEAF: Final = 4
"""Looks in a row after which a supervisor that does not end is killed."""

GroupOf = Callable[[GrantId], Group | None]


class Strays:
    """Those below `state`. `group_of`: the control group of a member. Looks return what is to be said."""

    def __init__(self, state: Path, group_of: GroupOf) -> None:
        self._state, self._group_of = state, group_of
        self.every_ms = EVERY_MS
        self._found: Counter[str] = Counter()  # by folder, looks in a row
        self._looked: int | None = None

    def wait(self, most_ms: int | None, now: int) -> int | None:
        """How long to sleep until the next look: `most_ms` at most, None for any time."""
        if self._looked is None:
            return most_ms
        due = max(0, self._looked + self.every_ms - now)
        return due if most_ms is None else min(most_ms, due)

    def is_due(self, now: int) -> bool:
        """Whether to look again, `now` (ms); never before the first look."""
        return self._looked is not None and now >= self._looked + self.every_ms

    def look(self, known: Container[str], starting: Container[JobId], now: int) -> list[str]:
        """End what is none of the folders `known`, and of no job that is `starting`, which may have begun to.

        The first look ends all it finds, and takes away what somebody began to; others what two have found.
        """
        looks = LOOKS
        if self._looked is None:
            looks = 1
            clear_gone(self._state)
        self._looked = now
        others = [
            folder
            for folder in all_folders(self._state)
            if folder.at not in known and folder.held.job not in starting
        ]
        self._found = Counter({folder.at: self._found[folder.at] + 1 for folder in others})
        said = []
        for folder in others:
            if self._found[folder.at] < looks:
                continue
            with contextlib.suppress(OSError):  # it goes meanwhile, or the disk is full: the next look
                if self._end(folder, is_deaf=self._found[folder.at] >= DEAF):
                    job, number, _ = folder.held
                    said.append(f"{job} attempt {number}: runs, but is not on record; it is ended")
        return said

    def _end(self, folder: Folder, *, is_deaf: bool) -> bool:
        """By its supervisor, which takes all of it along; else what that has left. False: nothing ran."""
        pid = folder.holder()
        left = self._left_behind(folder) if pid is None else []
        if pid is not None and not is_deaf:
            if not folder.command("kill unknown"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        elif pid is not None or left:
            kill_leftovers(left if pid is None else [pid])
        elif folder.make_void():
            if (group := self._group_of(folder.held)) is not None:
                group.remove()
            folder.drop()
        return bool(pid or left)

    def _left_behind(self, folder: Folder) -> list[int]:
        """Processes of a supervisor that was killed: one that has recorded an end has left none."""
        begun = folder.begun()
        if begun is None or folder.ending() is not None:
            return []
        return find_leftovers(mark_of(folder), begun, self._group_of(folder.held))
