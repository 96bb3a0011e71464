"""The loop of every engine: see, record, fold, plan, check, record, fold, carry out.

It decides nothing. Deciding is `planner`, accepting is `commit`; what is carried out is derived from recorded
intents, so a crash between any two lines loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from aliquot.core import commit, demand
from aliquot.core.commit import Verdict
from aliquot.core.events import Event
from aliquot.core.ids import JobId
from aliquot.core.planner import Memo, plan
from aliquot.core.settings import Settings
from aliquot.core.steps import Plan
from aliquot.core.world import World
from aliquot.ports import Clock, Cluster, Journal


class Observer(Protocol):
    """Someone who watches the loop, such as the meter of a report."""

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` have been folded into `world`."""
        ...


class Loop:
    """One world, one writer."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        journal: Journal,
        settings: Settings,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.cluster, self.clock, self.journal, self.settings = cluster, clock, journal, settings
        self.observers = observers
        self.world = World(**settings.folding)
        self.memo = Memo()
        self.explained: JobId | None = None  # a job whose placement should name its runner-up
        self.last_plan: Plan | None = None
        self.last_verdict: Verdict | None = None

    def turn(self) -> bool:
        """One cycle; False where nothing happened and nothing was decided."""
        # 1. engines and drivers speak only in events; 2. they are recorded; 3. and folded
        seen = self.cluster.observe()
        self.record(seen)
        now = self.clock.now()
        epoch = demand.next_epoch(self.world, self.settings, now)
        if epoch is not None:
            self.record((epoch,))
        # 4. a pure plan on a snapshot
        frozen = self.world.freeze()
        decided = plan(frozen, self.settings, now, self.memo, explained=self.explained)
        # 5. checked against the newest world; 6. intents are recorded before anything is done
        verdict = commit.check(decided, self.world.freeze(), now)
        self.record(verdict.events)
        # 7. steps come from the record
        outstanding = self.world.outstanding()
        if outstanding:
            self.cluster.carry_out(outstanding)
        if decided.wake_ms is not None:
            self.clock.wake_at(decided.wake_ms)
        self.last_plan, self.last_verdict = decided, verdict
        return bool(seen or verdict.events or outstanding or decided.wake_ms is not None)

    def record(self, events: Sequence[Event]) -> None:
        """Journal, fold and show `events`, in this order."""
        if not events:
            return
        self.journal.append(events)
        self.world.apply_all(events)
        for observer in self.observers:
            observer.see(events, self.world)
