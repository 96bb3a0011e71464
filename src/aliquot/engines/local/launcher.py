"""Starts, follows and ends the attempts of jobs on this machine, and tells in events what became of them.

An attempt is all members of a job, one supervisor each. Of one job at most one attempt lives: another begins
only when nothing of the one before is left, by whichever service it was started. Used by one thread; `wake`
may be called from any.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from aliquot.core.events import Ended, Event, Outcome, Started, StartRefused, Stopping
from aliquot.core.grants import Placement
from aliquot.core.ids import GrantId, JobId
from aliquot.core.lifecycle import HOLDING
from aliquot.core.records import JobRecord
from aliquot.core.world import World
from aliquot.engines.local.cgroups import Cgroups, Group
from aliquot.engines.local.folders import Folder, folders_of, quoted
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.members import Life, Member, end_stray
from aliquot.engines.local.orders import environment, spec_of
from aliquot.engines.local.payload import Ending, Payload

TICK_MS: Final = 20
GANG: Final = "gang"
CANCELLED: Final = "cancelled"
AGAIN: Final = frozenset({"moved", "preempted", "supervisor-stopped", "superseded"})
"""Reasons that are not the job's doing: it goes back to its queue."""


class Places(NamedTuple):
    """Where things are: the supervisor's program, the attempts' folders, and output not named by the job."""

    program: Path
    state: Path
    output: Path


class Attempt:
    """One attempt that lives, or is being looked for."""

    def __init__(self, job: JobId, number: int, members: list[Member], retries: int) -> None:
        self.job, self.number, self.members, self.retries = job, number, members, retries
        self.has_told_start = self.has_told_stop = False
        self.reason = ""  # why the engine ends it


class Launcher:
    """The attempts on this machine. `exports` adds to a member's environment, such as a driver's variables."""

    def __init__(
        self,
        places: Places,
        now: Callable[[], int],
        payload_of: Callable[[JobId], Payload | None],
        *,
        cgroups: Cgroups | None = None,
        exports: Callable[[GrantId, Placement], Sequence[tuple[str, str]]] = lambda held, placement: (),
    ) -> None:
        self.places, self.cgroups = places, cgroups
        self.notes: list[str] = []
        self._now, self._payload_of, self._exports = now, payload_of, exports
        self._live: dict[JobId, Attempt] = {}
        self._done: dict[JobId, int] = {}
        self._owner: dict[int, tuple[Attempt, Member]] = {}
        self._ticking: dict[JobId, None] = {}
        self._told: list[Event] = []
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, select.EPOLLIN)
        places.state.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self) -> None:
        """Let go of everything; what runs goes on."""
        for attempt in self._live.values():
            for member in attempt.members:
                member.drop_descriptors()
        self._live.clear()
        self._epoll.close()
        os.close(self._bell)

    def wake(self) -> None:
        """End a `wait` under way, or the next one."""
        os.eventfd_write(self._bell, 1)

    # --- steps -----------------------------------------------------------------------------------------

    def start(self, job: JobId, number: int, placements: Sequence[Placement]) -> None:
        """See to it that the attempt runs; once it does, or has, this changes nothing."""
        if number <= self._done.get(job, 0):
            return
        if (live := self._live.get(job)) is not None:
            if live.number != number:
                self.stop(job, live.number, "superseded")
            return
        payload = self._payload_of(job)
        if payload is None:
            self._told.append(Ended(self._now(), job, number, Outcome.FAILED))
            self._done[job] = number
            self.notes.append(f"{job}: nothing recorded says what it runs; it has failed")
            return
        attempt = self._follow(job, number, len(placements), payload)
        new = [member for member in attempt.members if member.life is Life.NEW]
        try:
            for member in new:
                self._launch(member, payload, placements)
                self._listen(attempt, member)
        except OSError as error:
            self._give_up(attempt, f"{error.filename or 'start'}: {error.strerror}")
        self._judge(attempt)

    def stop(self, job: JobId, number: int, reason: str = CANCELLED) -> None:
        """End the attempt: warning, TERM, KILL. One that never ran is seen to never run, and is over."""
        if number <= self._done.get(job, 0):
            return
        attempt = self._live.get(job)
        if attempt is None or attempt.number != number:
            attempt = self._follow(job, number, len(folders_of(self.places.state, job, number)), None)
        attempt.reason = attempt.reason or reason
        for member in attempt.members:
            if member.life is Life.NEW:
                member.see_supervisor_gone()
            else:
                member.order(f"stop {reason}")
        self._judge(attempt)

    def signal(self, job: JobId, number: int) -> None:
        """Send a signal to the commands of the attempt that lives, if one does."""
        if (attempt := self._live.get(job)) is not None:
            for member in attempt.members:
                member.folder.command(f"signal {number}")

    def adopt(self, world: World) -> None:
        """After a restart: find every attempt that should live, and end those nobody knows of."""
        for job, record in sorted(world.jobs.items()):
            if record.phase in HOLDING:
                self._adopt(job, record, len(world.grants.get(job, ())))
        for folder in find_supervisors(self.places.state):
            held = folder.held
            live = self._live.get(held.job)
            if live is None or live.number != held.attempt:
                self.notes.append(f"{held.job} attempt {held.attempt}: runs, but is not on record; ended")
                end_stray(folder)

    # --- news ------------------------------------------------------------------------------------------

    def take_news(self) -> list[Event]:
        """What became of attempts since the last call, in order."""
        self._poll(0)
        told, self._told = self._told, []
        return told

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until there is news, somebody calls `wake`, or the time is up (None: no time)."""
        if not self._told:
            self._poll(timeout_ms)

    def endings(self, job: JobId, number: int) -> list[Ending | None]:
        """How each member of an attempt ended, as far as recorded."""
        return [folder.ending() for folder in folders_of(self.places.state, job, number)]

    def output_of(self, held: GrantId) -> Path:
        """Where the member's output goes unless its payload says so."""
        return self.places.output / quoted(held.job) / f"{held.attempt}.{held.member}.log"

    def living(self) -> dict[JobId, int]:
        """Attempts that are not over, by job."""
        return {job: attempt.number for job, attempt in self._live.items()}

    def _poll(self, timeout_ms: int | None) -> None:
        wait = timeout_ms
        if self._ticking:
            wait = TICK_MS if wait is None else min(wait, TICK_MS)
        ready = self._epoll.poll(None if wait is None else wait / 1000)
        for fd, _ in ready:
            if fd == self._bell:
                os.eventfd_read(self._bell)
            elif fd in self._owner:
                self._hear(fd, *self._owner[fd])
        for job in list(self._ticking):
            if (attempt := self._live.get(job)) is not None:
                for member in attempt.members:
                    before = member.pidfd
                    member.tick()
                    self._listen(attempt, member, before)
                self._judge(attempt)
            else:
                del self._ticking[job]

    def _hear(self, fd: int, attempt: Attempt, member: Member) -> None:
        if fd == member.news:
            member.hear()
            if not self._is_open(fd):
                self._ignore(fd)
        else:
            self._ignore(member.news)
            self._ignore(fd)
            member.see_supervisor_gone()
            self._listen(attempt, member)
        self._judge(attempt)

    # --- attempts --------------------------------------------------------------------------------------

    def _follow(self, job: JobId, number: int, members: int, payload: Payload | None) -> Attempt:
        """The attempt with whatever an earlier service left of it."""
        helds = [GrantId(job, number, member) for member in range(members)]
        found = [Member(Folder(self.places.state, held), self._group(held)) for held in helds]
        payload = payload or self._payload_of(job)
        attempt = Attempt(job, number, found, payload.retries if payload else 0)
        self._live[job] = attempt
        for member in found:
            member.find()
            self._listen(attempt, member)
        return attempt

    def _adopt(self, job: JobId, record: JobRecord, members: int) -> None:
        attempt = self._follow(job, record.attempt, members, None)
        lives = {member.life for member in attempt.members}
        if lives == {Life.NEW} and record.phase.value == "starting":
            del self._live[job]  # its Start is still owed and comes again
            return
        for member in attempt.members:
            if member.life is Life.NEW and record.phase.value != "starting":
                member.see_supervisor_gone()
        self._judge(attempt)

    def _launch(self, member: Member, payload: Payload, placements: Sequence[Placement]) -> None:
        held = member.folder.held
        if self.cgroups is not None:
            member.group = self.cgroups.make(_group_name(held), payload.limits)
            for what in member.group.unenforced:
                self.notes.append(f"{held.job}: not enforced: {what}")
        out = self.output_of(held)
        _own_folder(out.parent, payload)
        env = environment(payload, placements, held, self._exports(held, placements[held.member]))
        member.spawn(self.places.program, spec_of(payload, env, out, member.group))

    def _give_up(self, attempt: Attempt, why: str) -> None:
        """A member could not be launched: what was started of the others is ended."""
        attempt.reason = attempt.reason or GANG
        for member in attempt.members:
            if member.life is Life.NEW:
                member.life, member.ending = Life.OVER, Ending("refused", text=why)
            else:
                member.order(f"kill {GANG}")

    def _judge(self, attempt: Attempt) -> None:
        """Tell what has become true of the attempt as a whole."""
        if self._live.get(attempt.job) is not attempt:
            return
        lives = [member.life for member in attempt.members]
        has_run = all(member.was_started or member.life is Life.OVER for member in attempt.members)
        if not attempt.has_told_start and has_run and any(member.was_started for member in attempt.members):
            attempt.has_told_start = True
            self._told.append(Started(self._now(), attempt.job, attempt.number))
        if all(life is Life.OVER for life in lives):
            self._finish(attempt)
            return
        if any(member.life is Life.OVER and not _is_success(member) for member in attempt.members):
            for member in attempt.members:
                if not attempt.reason:
                    member.order(f"stop {GANG}")
            attempt.reason = attempt.reason or GANG
        is_stopping = all(life in {Life.STOPPING, Life.OVER, Life.ORPHANED} for life in lives)
        if is_stopping and not attempt.has_told_stop:
            attempt.has_told_stop = True
            self._told.append(Stopping(self._now(), attempt.job, attempt.number))
        if any(member.needs_ticks for member in attempt.members):
            self._ticking[attempt.job] = None
        else:
            self._ticking.pop(attempt.job, None)

    def _finish(self, attempt: Attempt) -> None:
        job, number, at = attempt.job, attempt.number, self._now()
        refused = next((m.ending.text for m in attempt.members if m.ending and m.ending.how == "refused"), None)
        never_ran = not any(member.was_started for member in attempt.members)
        if never_ran and attempt.reason in {"", GANG} and (refused or not any(m.ending for m in attempt.members)):
            self._told.append(StartRefused(at, job, number, refused or "its supervisor could not start"))
        else:
            self._told.append(Ended(at, job, number, _outcome(attempt)))
        self._done[job] = number
        del self._live[job]
        self._ticking.pop(job, None)

    def _group(self, held: GrantId) -> Group | None:
        return None if self.cgroups is None else self.cgroups.find(_group_name(held))

    # --- descriptors -----------------------------------------------------------------------------------

    def _listen(self, attempt: Attempt, member: Member, known: int = -1) -> None:
        for fd in (member.pidfd, member.news):
            if fd >= 0 and fd != known and fd not in self._owner:
                self._epoll.register(fd, select.EPOLLIN)
                self._owner[fd] = (attempt, member)

    def _ignore(self, fd: int) -> None:
        if self._owner.pop(fd, None) is not None:
            self._epoll.unregister(fd)
