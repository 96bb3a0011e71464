"""This machine and those who submit to it: port `Cluster` of the local engine.

What comes from other threads (submissions, cancellations, what drivers report) waits in a queue until the
loop looks. Nothing is acknowledged here: it is on record when the loop has recorded what it observed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from aliquot.core.events import Event
from aliquot.core.steps import Kill, Move, Resize, Start, Work
from aliquot.core.world import World
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.launcher import Launcher


class LocalCluster:
    """Events of `launcher` and of whoever calls `tell`; steps go to `launcher`. Never over."""

    is_over = False
    resizes_in_place = False  # what cards a process sees is settled when it starts

    def __init__(self, launcher: Launcher, clock: LocalClock) -> None:
        self.launcher, self.clock = launcher, clock
        self._inbox: deque[Event] = deque()

    def tell(self, *events: Event) -> None:
        """Something happened, from any thread: JobSubmitted, JobCancelled, NodeJoined, CardsFaulty, ...

        Its time becomes that of the next look.
        """
        self._inbox.extend(events)
        self.launcher.wake()

    def resume(self, world: World) -> None:
        """After a restart, before the first turn: take up what `world` says should live."""
        self.launcher.adopt(world)

    def observe(self) -> Sequence[Event]:
        """What happened since the last call, what was told first."""
        if said := self.clock.news():
            self.launcher.say(said)
        news = self.launcher.take_news()
        now = self.clock.now()
        told = [self._inbox.popleft() for _ in range(len(self._inbox))]
        return [replace(event, at=now) for event in [*told, *news]]

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Begin each step; one that is under way or done is left alone.

        A process cannot be moved or resized: the attempt is ended, and its job goes back to its queue. Who is
        to go on at another width has been told to end, and starts anew on what is kept for it.
        """
        for step in steps:
            match step:
                case Start():
                    self.launcher.start(step)
                case Kill(at_once=True):
                    self.launcher.stop(step.job, step.attempt, before="kill cancelled\n")
                case Kill(evicted=True):
                    self.launcher.evict(step.job, step.attempt, step.grace_ms)
                case Kill(resized=True):
                    self.launcher.evict(step.job, step.attempt, step.grace_ms, "resized")
                case Kill():
                    self.launcher.stop(step.job, step.attempt)
                case Move() | Resize():
                    self.launcher.restart(step.job, step.attempt)
        self.launcher.flush()

    def wait(self, until: int | None = None) -> None:
        """Sleep until something may have happened, or the clock's or the given time (ms) has come."""
        wakes = [at for at in (until, self.clock.next_wake()) if at is not None]
        if not self._inbox:
            self.launcher.wait(min(wakes) - self.clock.now() if wakes else None)
