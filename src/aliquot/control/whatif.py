"""One scenario under one policy, from the first event to the last, in virtual time.

The same loop, planner and commit as a live engine; the engine is handed in by `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from aliquot.control.foresight import Foresight
from aliquot.control.loop import Loop, Observer
from aliquot.control.naming import not_found
from aliquot.core.events import EpochBegan
from aliquot.core.months import DAY_MS
from aliquot.core.planner import explain_wait
from aliquot.core.settings import MixSource, Settings
from aliquot.core.steps import Gate, Wait
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.ports import Clock, Cluster, Journal

_YEAR_MS: Final = 366 * DAY_MS
Engine = Callable[[Scenario], tuple[Cluster, Clock, Journal]]
Progress = Callable[[int, int], None]
"""Called with (jobs submitted so far, jobs in all)."""


class Run:
    """A run that can be stopped at any time of its own and gone on with.

    `foresight` watches and predicts starts; the run is the same without it.
    """

    def __init__(
        self,
        scenario: Scenario,
        settings: Settings,
        engine: Engine,
        observers: Sequence[Observer] = (),
        progress: Progress | None = None,
        foresight: Foresight | None = None,
    ) -> None:
        self.scenario, self.settings = scenario, settings
        cluster, clock, journal = engine(scenario)
        self._progress, self._foresight = progress, foresight
        watchers = observers if foresight is None else (*observers, foresight)
        self.loop = Loop(cluster, clock, journal, settings, watchers)
        self._has_budgets = any(queue.budget_cents is not None for queue in settings.queues)
        self._endless = {
            offer.job.id for offer in scenario.offers if offer.work_ms is None and offer.job.limit_ms is None
        }
        self._count, self._stirred_ms = (0, 0), 0

    @property
    def world(self) -> World:
        """The world as it is now."""
        return self.loop.world

    def finish(self) -> World:
        """Turn until nothing happens any more."""
        self._begin()
        total, last = len(self.scenario.offers), 0
        while self._go_on():
            done = self.world.tally.submitted
            if self._progress is not None and done != last:
                self._progress(done, total)
                last = done
        return self.world

    def turns(self, at_ms: int | None = None) -> Iterator[int]:
        """Turn by turn, giving the time of each; until nothing happens, or past `at_ms`."""
        self._begin()
        if at_ms is not None:
            self.loop.clock.wake_at(at_ms + 1)
        while (at_ms is None or self.loop.clock.now() <= at_ms) and self._go_on():
            yield self.loop.clock.now()

    def waits(self) -> list[Wait]:
        """Every waiting job with the gate that holds it and the reasons, as the world is now."""
        frozen = self.world.freeze()
        return [explain_wait(frozen, self.settings, key[3], self.loop.memo) for key in frozen.pending]

    def never(self) -> int:
        """Waiting jobs that no node of the site could ever hold."""
        return sum(wait.gate is Gate.NEVER for wait in self.waits())

    def _go_on(self) -> bool:
        """One turn; False where it did nothing and nothing is to come."""
        happened = self.loop.turn()
        if self._foresight is not None:
            self._foresight.look(self.world, self.loop.clock.now())
        return (happened or not self.loop.cluster.is_over) and not self._only_repeats()

    def _only_repeats(self) -> bool:
        """Whether only months turn: for more than a year nobody came or ended, and nobody ran who ever ends.

        Jobs without an end that budgets stop and let start again would go on so for ever.
        """
        if not self._has_budgets:
            return False
        world, now = self.world, self.loop.clock.now()
        count = (world.tally.submitted, len(world.jobs))
        if count != self._count or not self._endless.issuperset(world.grants):
            self._count, self._stirred_ms = count, now
        return now - self._stirred_ms > _YEAR_MS

    def _begin(self) -> None:
        """With the mix of the whole list, the first epoch is known before anything else happens."""
        if self.settings.mix_source is MixSource.LIST and self.world.epoch.number == 0:
            mix = self.scenario.demand()
            if mix:
                self.loop.record((EpochBegan(0, 1, self.settings.seed, mix),))


def find_policy(scenario: Scenario, name: str | None, seed: int | None = None) -> tuple[str, Settings]:
    """The policy called `name` (or the scenario's first), with `seed` in place of its own where given."""
    label = name if name is not None else scenario.policies[0][0]
    settings = scenario.settings(label)
    if settings is None:
        raise not_found("policy", label, (known for known, _ in scenario.policies))
    return label, settings if seed is None else replace(settings, seed=seed)
