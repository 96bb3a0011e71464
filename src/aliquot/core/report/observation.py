"""One observer for the loop: feeds a meter and its recorder, and hands out the result of the run."""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.core.events import Event
from aliquot.core.report.meter import Meter
from aliquot.core.report.needs import Mix
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.report.scorecard import score
from aliquot.core.report.timeline import Recorder
from aliquot.core.settings import Settings
from aliquot.core.workload import Scenario
from aliquot.core.world import World


class Observation:
    """Watches one run of `scenario`. `by_load`: fragmentation by offered load (a replay), else over time.

    `mix`: what fragmentation is judged by; the whole list of the scenario where it is not given.
    `settings`: the policy of the run, for its queues and quotas; without, queues are those that jobs name.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        settings: Settings | None = None,
        mix: Mix | None = None,
        by_load: bool = False,
        window: tuple[int, int | None] = (0, None),
    ) -> None:
        self._scenario, self._by_load = scenario, by_load
        self.recorder = Recorder(scenario, mix=mix, by_load=by_load, start_ms=window[0])
        self.meter = Meter(scenario, settings=settings, window=window, watcher=self.recorder)

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` have been folded into `world`."""
        for event in events:
            self.meter.see(event)
        if self.recorder.is_due(self.meter.now):
            self.recorder.sample(world.ledger.chunks, world.kinds, self.meter.now)

    def result(
        self,
        policy: str,
        *,
        seed: int | None = None,
        never: int | None = None,
        variant: str = "",
        standing: Standing = Standing.WHAT_IF,
        assumptions: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> RunResult:
        """The run so far. The scenario's own notes come first; `never`: jobs found to fit nowhere, ever."""
        readings = self.meter.readings()
        fragmentation = self.recorder.fragmentation(readings.window.end_ms)
        load = self.recorder.load() if self._by_load else ()
        return RunResult(
            scenario=self._scenario.name,
            policy=policy,
            seed=seed,
            variant=variant,
            standing=standing,
            scorecard=score(readings, fragmentation=fragmentation, never=never, load=load),
            timeline=self.recorder.timeline(readings),
            assumptions=assumptions,
            notes=(*self._scenario.notes, *notes),
        )
