"""One member of one attempt: started, or found again, and followed until nothing of it is left.

What is true stands in its folder and in the kernel; this only remembers how far it has looked. So a service
that comes back looks again and knows as much.
"""

from __future__ import annotations

import os
from enum import Enum
from typing import Final

from aliquot.engines.local.cgroups import Group
from aliquot.engines.local.folders import Folder
from aliquot.engines.local.leftovers import find_leftovers, kill_leftovers
from aliquot.engines.local.orders import mark_of
from aliquot.engines.local.payload import Ending

EMPTY_LOOKS: Final = 2
"""Looks in a row that must find no process: one may fork and end while the list is being read."""


class Life(Enum):
    """How far a member is."""

    NEW = "new"  # nothing was started
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"  # the command is over, others of its processes are not
    ORPHANED = "orphaned"  # its supervisor is gone without a record; what is left is being ended
    OVER = "over"  # nothing of it is left


class Member:
    """A member and what is known of it. `ending` is set when it is over, None where nothing recorded one."""

    def __init__(self, folder: Folder, group: Group | None) -> None:
        self.folder, self.group = folder, group
        self.life = Life.NEW
        self.ending: Ending | None = None
        self.was_started = False  # its command may have run
        self.stop_line = ""  # a command its supervisor has not taken yet
        self.serial: int | None = None  # under which its supervisor tells news, if it does
        self.pidfd = -1  # of a supervisor that tells us nothing
        self.was_seen_to_end = False  # while it was followed, not by who came after a service, or the boot
        self._empty_looks = 0

    def find(self) -> None:
        """Look for what an earlier service may have started; stays NEW where that is nothing."""
        if not self.folder.exists():
            return
        self.ending = self.folder.ending()
        if self.ending is not None:
            self._be_over()
        elif not self._follow_holder() and self.folder.begun() is not None:
            self.bury()

    def begin(self, serial: int) -> None:
        """A supervisor was ordered, which tells its news as `serial`."""
        self.serial, self.life = serial, Life.STARTING

    def hear(self, what: str, record: str) -> None:
        """Take one piece of news."""
        if self.life is Life.OVER:
            return
        if what == "started":
            self.life, self.was_started = Life.RUNNING, True
        elif what == "stopping":
            self.life = Life.STOPPING
        elif what == "over":
            self.was_seen_to_end = True
            self.ending = self.folder.ending_of(record) or self.folder.ending()
            if self.ending is not None:
                self._be_over(is_clean=True)
        elif what == "gone":
            self.see_supervisor_gone()

    def see_supervisor_gone(self) -> None:
        """It has recorded an end, another one has this attempt, it was killed, or it tells us no more."""
        self.drop_descriptors()
        if self.life is Life.OVER or self._end_by_record() or self._follow_holder():
            return
        self.was_seen_to_end = True
        self.bury()

    def bury(self) -> None:
        """Nobody runs it: see that nobody will, and that nothing of it is left."""
        # a supervisor that is yet to come must find that this attempt is no more
        if not self.folder.make_void():
            if not self._follow_holder():
                self.life = Life.STARTING  # held a moment ago: `tick` looks again
            return
        if self._end_by_record():  # it was recorded since somebody looked
            return
        if self.folder.begun() is None:
            self._be_over()
            return
        self.was_started = True
        self.life = Life.ORPHANED
        self._sweep()

    def order(self, line: str) -> None:
        """Send a command; kept and sent again where the supervisor does not listen yet."""
        if self.life in {Life.STARTING, Life.RUNNING, Life.STOPPING}:
            self.stop_line = "" if self.folder.command(line) else line

    def end_supervisor(self) -> None:
        """KILL a supervisor that does not do what it was told; asked again, take it for gone once it is."""
        if self.life not in {Life.STARTING, Life.RUNNING, Life.STOPPING}:
            return
        pid = self.folder.holder()
        if pid is None:
            self.see_supervisor_gone()
        else:
            kill_leftovers([pid])

    def tick(self) -> None:
        """What has to be tried again: commands nobody took, processes that are still there."""
        if self.stop_line:
            self.order(self.stop_line)
        if self.life is Life.STARTING and self.is_unheard and self.pidfd < 0:
            self.bury()
        elif self.life is Life.STARTING and self.is_unheard and self.folder.is_running():
            self.life, self.was_started = Life.RUNNING, True  # adopted in the moment it began
        if self.life is Life.ORPHANED:
            self._sweep()

    @property
    def needs_ticks(self) -> bool:
        """Whether `tick` has something to do soon."""
        is_adopted_early = self.life is Life.STARTING and self.is_unheard
        return bool(self.stop_line) or is_adopted_early or self.life is Life.ORPHANED

    @property
    def is_ordered(self) -> bool:
        """Whether the nursery was told to begin it, and has told nothing yet."""
        return self.life is Life.STARTING and self.serial is not None

    @property
    def is_unheard(self) -> bool:
        """Whether nobody tells us how it goes: it was taken up, and is found out about by looking."""
        return self.serial is None

    def drop_descriptors(self) -> None:
        """Stop listening; the member goes on."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pidfd, self.serial = -1, None

    def _follow_holder(self) -> bool:
        """Follow the supervisor that holds the lock, if one does."""
        pid = self.folder.holder()
        if pid is None:
            return False
        try:
            self.pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        if self.folder.holder() != pid:  # gone in between; the pid may be someone else's by now
            self.drop_descriptors()
            return False
        self.was_started = self.folder.is_running()
        self.life = Life.RUNNING if self.was_started else Life.STARTING
        return True

    def _end_by_record(self) -> bool:
        self.ending = self.folder.ending()
        if self.ending is not None:
            self._be_over()
        return self.ending is not None

    def _sweep(self) -> None:
        left = find_leftovers(mark_of(self.folder), self.folder.begun(), self.group)
        if left:
            self._empty_looks = 0
            if self.group is not None:
                self.group.kill()
            kill_leftovers(left)
            return
        self._empty_looks += 1
        if self._empty_looks >= EMPTY_LOOKS:
            self._be_over()

    def _be_over(self, *, is_clean: bool = False) -> None:
        """`is_clean`: its supervisor has said so itself, after it put everything in order."""
        self.life, self.stop_line = Life.OVER, ""
        ending = self.ending
        if ending is not None and ending.did_run:
            self.was_started = True
        if self.group is None or (is_clean and self.group.is_bare):
            return
        if ending is not None and not ending.is_success and not ending.reason and self.group.oom_kills():
            self.folder.remark("memory-limit")
            self.ending = self.folder.ending()
        self.group.remove()
