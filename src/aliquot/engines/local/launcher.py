"""Starts, follows and ends the attempts of jobs on this machine, and tells in events what became of them.

An attempt is all members of a job, one supervisor each. Of one job at most one attempt lives: another begins
only when nothing of the one before is left, by whichever service it was started. Used by one thread; `wake`
may be called from any.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from aliquot.core.events import Ended, Event, Outcome, StartRefused
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, GrantId, JobId
from aliquot.core.lifecycle import HOLDING, Phase
from aliquot.core.steps import Start
from aliquot.core.world import World
from aliquot.engines.local.attempts import GANG, Attempt
from aliquot.engines.local.cgroups import Cgroups, Group
from aliquot.engines.local.confining import Grounds, confine, lapses_of
from aliquot.engines.local.folders import Folder, all_folders, folders_of, group_name, quoted
from aliquot.engines.local.lateness import Lateness, since_boot
from aliquot.engines.local.members import Life, Member
from aliquot.engines.local.nursery import News, Nursery, await_end
from aliquot.engines.local.orders import environment, spec_of
from aliquot.engines.local.payload import Ending, Payload
from aliquot.engines.local.places import Places
from aliquot.engines.local.ports import free_port
from aliquot.engines.local.refusals import Refusals
from aliquot.engines.local.strays import Strays

TICK_MS: Final = 20
Keep = Callable[[JobId, int, Sequence[Ending | None]], None]
Refusal = Callable[[Collection[CardId], Collection[CardId]], str]
Exports = Callable[[GrantId, Placement, Payload], Sequence[tuple[str, str]]]


class Launcher:
    """The attempts on this machine. `exports` adds to a member's environment, such as a driver's variables;
    `keep` is given how an attempt went before that it is over is told. `refusal`: why nobody may start on
    these cards as they are now, of which those are another job's too; "" where he may.

    `grounds`: what of the host a job is confined to; to be set before the first one.
    `say`: is told what a person should know.
    """

    def __init__(
        self,
        places: Places,
        now: Callable[[], int],
        payload_of: Callable[[JobId], Payload | None],
        *,
        cgroups: Cgroups | None = None,
        exports: Exports = lambda held, placement, payload: (),
        keep: Keep = lambda job, number, endings: None,
        refusal: Refusal = lambda cards, taken: "",
    ) -> None:
        self.places, self.cgroups = places, cgroups
        self.say: Callable[[str], object] = lambda note: None
        self._now, self._payload_of, self._exports, self._keep = now, payload_of, exports, keep
        self._refusal = refusal
        self.grounds = Grounds()
        self._live: dict[JobId, Attempt] = {}
        self._done: dict[JobId, int] = {}
        self._ticking: dict[JobId, None] = {}
        self._lateness, self._refusals = Lateness(), Refusals()
        self.strays = Strays(places.state, self._group)
        self._owed: set[JobId] = set()  # jobs whose Start comes again
        self._told: list[Event] = []
        self._over: list[Folder] = []  # told to be over
        self._droppable: list[Folder] = []  # and recorded
        self._owner: dict[int, tuple[Attempt, Member]] = {}  # by descriptor
        self._teller: dict[int, tuple[Attempt, Member]] = {}  # by serial
        self._serial = 0
        self._left: set[str] | None = None  # folders of earlier services; None: not known
        self._nursery: Nursery | None = None
        self._epoll = select.epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, select.EPOLLIN)
        places.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        places.output.mkdir(mode=0o711, parents=True, exist_ok=True)

    def close(self) -> None:
        """Let go of everything; what runs goes on."""
        for attempt in self._live.values():
            for member in attempt.members:
                member.drop_descriptors()
        self._live.clear()
        if self._nursery is not None:
            self._nursery.close()
        self._epoll.close()
        os.close(self._bell)

    def wake(self) -> None:
        """End a `wait` under way, or the next one."""
        os.eventfd_write(self._bell, 1)

    # --- steps -----------------------------------------------------------------------------------------

    def start(self, step: Start) -> None:
        """See to it that the attempt runs; once it does, or has, this changes nothing.

        While an earlier attempt of the job is not over, it is ended, and this one has to be asked for again.
        """
        job, number, placements = step.job, step.attempt, step.placements
        self._owed.discard(job)
        live = self._live.get(job)
        if live is not None and live.number != number:
            live.stop("superseded")
        if live is not None or number <= self._done.get(job, 0):
            return
        payload = self._payload_of(job)
        if payload is None:
            why = "nothing that can be read says what it runs"
            self.say(f"{job}: {why}; it has failed")
            self._keep(job, number, [Ending("unrunnable", text=why)])
            self._done[job] = number
            self._told.append(Ended(self._now(), job, number, Outcome.FAILED))
            return
        cards = frozenset(card for placement in placements for card in placement.cards)
        taken = cards & {card for other in self._live.values() for card in other.cards}
        if cards and (why := self._refusal(cards, taken)):
            self._done[job] = number
            self._told.append(StartRefused(self._now(), job, number, why))
            return
        attempt = self._follow(job, number, len(placements), spared=step.spared)
        attempt.cards, attempt.losses, attempt.node = cards, step.losses, placements[0].node
        attempt.is_last_refusal = self._refusals.is_last(job)
        if max(len(placements), payload.members) > 1:
            attempt.port = free_port({other.port for other in self._live.values()}, f"{job} {number}")
        try:
            for member in attempt.members:
                if member.life is Life.NEW:
                    self._launch(member, attempt, payload, placements)
        except OSError as error:
            self._give_up(attempt, f"{error.filename or 'start'}: {error.strerror}")
        self._settle(attempt)

    def stop(
        self, job: JobId, number: int, reason: str = "cancelled", before: str = "", grace_ms: int = 0
    ) -> None:
        """End the attempt: warning, TERM, KILL. One that never ran is seen to never run, and is over.

        `before`: what the supervisor is told first, which may give it a grace of `grace_ms`. May be repeated;
        an attempt long over is left alone.
        """
        if number <= self._done.get(job, 0):
            return
        attempt = self._live.get(job)
        if attempt is not None and attempt.number > number:
            return
        if attempt is None:
            attempt = self._follow(job, number, len(folders_of(self.places.state, job, number)))
        # of an earlier attempt that lives: it has to be over first, and this has to be asked for again
        attempt.stop(reason, before=before, grace_ms=grace_ms)
        self._settle(attempt)

    def evict(self, job: JobId, number: int, grace_ms: int, reason: str = "preempted") -> None:
        """End it and not its job: warning, or TERM, at once, more after `grace_ms`; 0: its own grace."""
        self.stop(job, number, reason, f"grace {grace_ms}\n" if grace_ms else "", grace_ms)

    def flush(self) -> None:
        """Begin what was asked to start, all at once."""
        nursery = self._nursery
        if nursery is not None:
            try:
                nursery.flush()
            except OSError:
                self._lose_nursery(nursery)

    def restart(self, job: JobId, number: int, reason: str = "moved") -> None:
        """End the attempt if it lives, so that its job goes back to its queue."""
        if self.living().get(job) == number:
            self.stop(job, number, reason)

    def signal(self, job: JobId, number: int) -> bool:
        """Send a signal to the process groups of the job's commands; False where none lives."""
        attempt = self._live.get(job)
        members = attempt.members if attempt is not None else []
        reached = [member.folder.command(f"signal {number}") for member in members]
        return any(reached)

    def adopt(self, world: World) -> None:
        """After a restart: find every attempt that should live, and end those nobody knows of."""
        await_end(self.places.state)
        self._left = {folder.at for folder in all_folders(self.places.state)}
        for job, record in sorted(world.jobs.items()):
            if record.phase not in HOLDING:
                continue
            grants = world.grants.get(job, ())
            attempt = self._follow(job, record.attempt, len(grants), record.phase, record.spared)
            attempt.cards = frozenset(card for grant in grants for card in grant.placement.cards)
            attempt.losses, attempt.reason = record.losses, "cancelled" if record.cancelled else ""
            if record.phase is Phase.STARTING and all(member.life is Life.NEW for member in attempt.members):
                del self._live[job]  # its Start is still owed and comes again
                self._owed.add(job)
                continue
            for member in attempt.members:
                if member.life is Life.NEW:
                    member.bury()  # it never will begin: of a gang, the others have been told where to meet
            self._settle(attempt)
        self._look_for_strays()

    # --- news ------------------------------------------------------------------------------------------

    def take_news(self) -> list[Event]:
        """What became of attempts since the last call, in order.

        To call is to say that what the last call told is on record: folders it was told from are taken away.
        """
        for folder in self._droppable:
            self._drop(folder)
        self.flush()
        self._poll(0)
        if self.strays.is_due(since_boot()):
            self._look_for_strays()
        told, self._told, self._droppable, self._over = self._told, [], self._over, []
        return told

    def wait(self, timeout_ms: int | None) -> None:
        """Sleep until there may be news, somebody calls `wake`, or the time is up (None: no time)."""
        self.flush()
        if not self._told:
            self._poll(timeout_ms)

    def living(self) -> dict[JobId, int]:
        """Attempts that are not over, by job."""
        return {job: attempt.number for job, attempt in self._live.items()}

    def lapses(self, job: JobId, placements: Sequence[Placement]) -> tuple[str, ...]:
        """What this host does not enforce of what the job is limited to or granted; each once.

        Before it is placed, what is known by then. From any thread.
        """
        if (payload := self._payload_of(job)) is None:
            return ()
        missing = None if self.cgroups is None else self.cgroups.missing
        own = [] if (attempt := self._live.get(job)) is None else attempt.lapses
        return tuple(dict.fromkeys(own + lapses_of(payload, placements, self.grounds, missing)))

    def output_of(self, held: GrantId) -> Path:
        """Where the member's output goes unless its payload says so."""
        return self.places.output / quoted(held.job) / f"{held.attempt}.{held.member}.log"

    # --- attempts --------------------------------------------------------------------------------------

    def _follow(
        self, job: JobId, number: int, members: int, phase: Phase = Phase.STARTING, spared: int = 0
    ) -> Attempt:
        """The attempt with whatever an earlier service left of it."""
        payload = self._payload_of(job)
        found = [self._member(GrantId(job, number, at)) for at in range(members)]
        retries = spared + (payload.retries if payload is not None else 0)
        attempt = self._live[job] = Attempt(job, number, found, retries, phase)
        if payload is not None:
            attempt.time_ms, attempt.stop_ms = payload.time_ms, payload.stop.warn_ms + payload.stop.grace_ms
        for member in found:
            # what no earlier service has left is not looked for
            if self._left is None or member.folder.at in self._left:
                member.find()
        return attempt

    def _member(self, held: GrantId) -> Member:
        return Member(Folder(self.places.state, held), self._group(held))

    def _group(self, held: GrantId) -> Group | None:
        return None if self.cgroups is None else self.cgroups.find(group_name(held))

    def _look_for_strays(self) -> None:
        """Known are attempts that are not over, or were until a moment ago."""
        living = {member.folder.at for attempt in self._live.values() for member in attempt.members}
        known = living | {folder.at for folder in (*self._over, *self._droppable)}
        for said in self.strays.look(known, self._owed, since_boot()):
            self.say(said)

    def _launch(self, member: Member, attempt: Attempt, payload: Payload, held: Sequence[Placement]) -> None:
        """Raises OSError with nothing started."""
        name = member.folder.held
        if self.cgroups is not None:
            asked, there = payload.limits_of(name.member, held[name.member]), held[name.member]
            limits = confine(asked, there, self.grounds, self.cgroups.missing.keys())
            member.group = self.cgroups.make(group_name(name), limits)
            attempt.lapses += member.group.unenforced
        extra = self._exports(name, held[name.member], payload)
        env = environment(payload, held, member.folder, extra, attempt.port)
        spec = spec_of(payload, env, self.output_of(name), member.group)
        if self._nursery is None:
            self._nursery = Nursery(self.places.program, self.places.state)
            for fd in (self._nursery.news.fileno(), self._nursery.pidfd):
                self._epoll.register(fd, select.EPOLLIN)
        self._serial += 1
        self._nursery.start(self._serial, member.folder.at, spec)
        self._teller[self._serial] = (attempt, member)
        member.begin(self._serial)

    def _drop(self, folder: Folder) -> None:
        """Soon where the nursery does it, which costs us next to nothing."""
        if self._nursery is not None:
            self._nursery.drop(folder.at)
        else:
            folder.drop()

    def _give_up(self, attempt: Attempt, why: str) -> None:
        """A member could not be launched: what was started of the others is ended."""
        for member in attempt.members:
            if member.life is Life.NEW:
                member.life, member.ending = Life.OVER, Ending("refused", text=why)
        attempt.stop(GANG, verb="kill")

    def _settle(self, attempt: Attempt) -> None:
        """Tell what has become true of the attempt, and listen to what still lives."""
        if self._live.get(attempt.job) is not attempt:
            return
        told = attempt.judge(self._now(), since_boot())
        if attempt.is_over:
            self._keep(attempt.job, attempt.number, attempt.endings)
            self._over += [member.folder for member in attempt.members]
            self._done[attempt.job] = attempt.number
            del self._live[attempt.job]
        self._lateness.note(attempt)
        self._told += [*told, *self._refusals.hear(told, attempt.node, self.say)]
        for member in attempt.members:
            self._listen(attempt, member)
        if attempt.needs_ticks:
            self._ticking[attempt.job] = None
        else:
            self._ticking.pop(attempt.job, None)

    # --- descriptors -----------------------------------------------------------------------------------

    def _poll(self, timeout_ms: int | None) -> None:
        wait = timeout_ms
        if self._ticking:
            wait = TICK_MS if wait is None else min(wait, TICK_MS)
        wait = self.strays.wait(self._lateness.wait(wait), since_boot())
        for fd, _ in self._epoll.poll(None if wait is None else max(0, wait) / 1000):
            nursery = self._nursery
            if fd == self._bell:
                os.eventfd_read(self._bell)
            elif nursery is not None and fd == nursery.news.fileno():
                self._hear_all(nursery.hear())
            elif nursery is not None and fd == nursery.pidfd:
                self._lose_nursery(nursery)
            elif fd in self._owner:
                self._see_gone(*self._owner[fd])
        for job in list(self._ticking):
            attempt = self._live[job]
            for member in attempt.members:
                member.tick()
            self._settle(attempt)
        for attempt, said in self._lateness.late():
            if said:
                self.say(said)
                is_stuck = attempt.is_begun_late and any(member.is_ordered for member in attempt.members)
                if is_stuck and self._nursery is not None:
                    self.say("the process that starts supervisors hangs, and is replaced")
                    self._lose_nursery(self._nursery)
            self._settle(attempt)

    def _hear_all(self, heard: Sequence[News]) -> None:
        for news in heard:
            if (found := self._teller.get(news.serial)) is None:
                continue
            attempt, member = found
            member.hear(news.what, news.record)
            if member.serial != news.serial or member.life is Life.OVER:
                del self._teller[news.serial]
            self._settle(attempt)

    def _lose_nursery(self, nursery: Nursery) -> None:
        """It was killed. Its supervisors live; how they go is found out by looking from now on."""
        self._hear_all(nursery.hear())
        for fd in (nursery.news.fileno(), nursery.pidfd):
            self._epoll.unregister(fd)
        nursery.bury()
        nursery.close()
        self._nursery = None
        told, self._teller = self._teller, {}
        for attempt, member in told.values():
            member.see_supervisor_gone()
            self._settle(attempt)

    def _see_gone(self, attempt: Attempt, member: Member) -> None:
        self._ignore(member)
        member.see_supervisor_gone()
        self._settle(attempt)

    def _listen(self, attempt: Attempt, member: Member) -> None:
        if member.pidfd >= 0 and member.pidfd not in self._owner:
            self._epoll.register(member.pidfd, select.EPOLLIN)
            self._owner[member.pidfd] = (attempt, member)

    def _ignore(self, member: Member) -> None:
        if self._owner.pop(member.pidfd, None) is not None:
            self._epoll.unregister(member.pidfd)
