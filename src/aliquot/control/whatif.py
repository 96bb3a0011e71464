"""What-if: run a scenario in virtual time under one policy or several, and say what came of it.

The same loop, planner and commit as a live engine. What it needs from outside (documents, traces, an engine)
is handed in by `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from aliquot.control.loop import Loop, Observer
from aliquot.core.errors import BrokenInvariantError, NotFoundError
from aliquot.core.events import EpochBegan, Event
from aliquot.core.settings import MixSource, Settings
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.ports import Clock, Cluster, Journal

Engine = Callable[[Scenario], tuple[Cluster, Clock, Journal]]
Progress = Callable[[int, int], None]
"""Called with (jobs submitted so far, jobs in all)."""

IDLE_TURNS = 1000


class Load(Protocol):
    """Reads documents into a scenario."""

    def __call__(self, paths: Sequence[Path]) -> Scenario:
        """Raises DocumentError naming file, field, value and what would be right."""
        ...


class Run:
    """One scenario under one policy, from the first event to the last."""

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        engine: Engine,
        observers: Sequence[Observer] = (),
        progress: Progress | None = None,
    ) -> None:
        self.scenario, self.settings = scenario, settings
        cluster, clock, journal = engine(scenario)
        self._progress = progress
        self.loop = Loop(cluster, clock, journal, settings, observers)

    @property
    def world(self) -> World:
        """The world as it is now."""
        return self.loop.world

    def finish(self) -> World:
        """Turn until nothing happens any more."""
        self._begin()
        total, last = len(self.scenario.offers), -1
        while self.loop.turn():
            done = self.world.tally.submitted
            if self._progress is not None and done != last:
                self._progress(done, total)
                last = done
        return self.world

    def until(self, at_ms: int) -> World:
        """Turn until everything that happens by `at_ms` has happened."""
        self._begin()
        while self.loop.clock.now() <= at_ms and self.loop.turn():
            pass
        return self.world

    def _begin(self) -> None:
        """With the mix of the whole list, the first epoch is known before anything else happens."""
        if self.settings.mix_source is MixSource.LIST and self.world.epoch.number == 0:
            mix = self.scenario.demand()
            if mix:
                self.loop.record((EpochBegan(0, 1, self.settings.seed, mix),))


def find_policy(scenario: Scenario, name: str | None, seed: int | None) -> tuple[str, Settings]:
    """The policy called `name` (or the scenario's first), with `seed` in place of its own where given."""
    known = [label for label, _ in scenario.policies]
    if not known:
        raise BrokenInvariantError("a scenario without policies")
    label = name if name is not None else known[0]
    settings = scenario.settings(label)
    if settings is None:
        raise NotFoundError(f"no policy {label!r}; there are {', '.join(known)}")
    return label, settings if seed is None else msgspec.structs.replace(settings, seed=seed)


class EventLog:
    """An observer that keeps what it saw, for tests and small runs."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def see(self, events: Sequence[Event], world: World) -> None:
        """Keep `events`."""
        self.events.extend(events)


Traces = Mapping[str, Callable[..., Scenario]]
