"""Experiments on scenarios and public traces: simulate, compare, replay, explain.

What must come from outside (how documents are read, which traces there are, which engine runs) is handed in
by `bootstrap`; what an interface needs to know comes back as values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from aliquot.control.naming import not_found
from aliquot.control.whatif import Engine, Progress, Run, find_policy
from aliquot.core.ids import JobId
from aliquot.core.planner import explain_wait
from aliquot.core.report.observation import Observation
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.settings import Settings
from aliquot.core.steps import Place, Wait
from aliquot.core.workload import Scenario

LoadScenario = Callable[[Sequence[Path]], Scenario]


class ReplayAsk(msgspec.Struct, frozen=True):
    """One run of a public workload."""

    workload: str
    seed: int
    offered: float = 1.3
    folder: Path | None = None  # None: where the traces usually are
    movable: bool = False


LoadReplay = Callable[[ReplayAsk], Scenario]


class Explanation(msgspec.Struct, frozen=True):
    """Where a job is and why, as seen at `at_ms`.

    `place` is given once it was placed, `wait` while it waits; neither before it is submitted, or where its
    owner gave it up. `over`: nothing of it is left.
    """

    job: str
    policy: str
    placement: tuple[str, ...]  # names of what scores: one, or several that are weighed together
    at_ms: int
    submitted_ms: int
    placed_ms: int | None = None
    over: bool = False
    place: Place | None = None
    wait: Wait | None = None
    position: int | None = None  # in the queue, from 1
    waiting: int = 0
    nodes: int = 0


class Experiments:
    """The experiments one can make without a cluster."""

    def __init__(self, engine: Engine, load: LoadScenario, replays: dict[str, LoadReplay]) -> None:
        self._engine, self._load, self._replays = engine, load, replays

    def load(self, paths: Sequence[Path]) -> Scenario:
        """The scenario that documents describe; raises DocumentError."""
        return self._load(paths)

    def simulate(
        self, paths: Sequence[Path], policy: str | None, seed: int | None, progress: Progress | None = None
    ) -> RunResult:
        """One scenario under one policy (the first of the documents where none is named)."""
        scenario = self._load(paths)
        name, settings = find_policy(scenario, policy, seed)
        return self._observe(scenario, name, settings, progress)

    def compare(
        self,
        paths: Sequence[Path],
        policies: Sequence[str],
        seed: int | None,
        progress: Progress | None = None,
    ) -> list[RunResult]:
        """The same offers under several policies."""
        scenario = self._load(paths)
        chosen = [find_policy(scenario, name, seed) for name in policies or _own_policies(scenario)]
        return [self._observe(scenario, name, settings, progress) for name, settings in chosen]

    def replay(
        self,
        trace: str,
        ask: ReplayAsk,
        policy: str,
        changes: Mapping[str, object] = MappingProxyType({}),
        progress: Progress | None = None,
    ) -> RunResult:
        """One run of a public workload under a policy by name; `changes` replace fields of its settings."""
        loader = self._replays.get(trace)
        if loader is None:
            raise not_found("trace", trace, sorted(self._replays))
        scenario = loader(ask)
        name, settings = find_policy(scenario, policy)
        settings = msgspec.structs.replace(settings, **changes)
        observation = Observation(scenario, by_load=True)
        Run(scenario, settings, self._engine, (observation,), progress).finish()
        return observation.result(name, seed=ask.seed, standing=Standing.REPLAY)

    def explain(
        self, paths: Sequence[Path], job: str, policy: str | None, at_ms: int | None, seed: int | None
    ) -> Explanation:
        """Why `job` is where it is at `at_ms` (or was when placed), or why it still waits at the end."""
        scenario = self._load(paths)
        offer = next((offer for offer in scenario.offers if offer.job.id == job), None)
        if offer is None:
            names = (offer.job.id for offer in scenario.offers)
            raise not_found("job", job, names, where=", ".join(str(path) for path in paths))
        name, settings = find_policy(scenario, policy, seed)
        run = Run(scenario, settings, self._engine)
        run.loop.explained = offer.job.id
        place, placed_ms = _follow(run, offer.job.id, at_ms)
        frozen = run.world.freeze()
        keys = [key[3] for key in frozen.pending]
        waits, now = offer.job.id in keys, run.loop.clock.now()
        return Explanation(
            job=job,
            policy=name,
            placement=tuple(part for part, weight in settings.policy if weight > 0),
            at_ms=now if at_ms is None else at_ms,
            submitted_ms=offer.job.submitted_ms,
            placed_ms=None if waits else placed_ms,
            over=offer.job.submitted_ms <= now and offer.job.id not in frozen.jobs,
            place=None if waits else place,
            wait=explain_wait(frozen, settings, offer.job.id, run.loop.memo, now) if waits else None,
            position=keys.index(offer.job.id) + 1 if waits else None,
            waiting=len(keys),
            nodes=frozen.rows,
        )

    def _observe(
        self, scenario: Scenario, name: str, settings: Settings, progress: Progress | None
    ) -> RunResult:
        observation = Observation(scenario)
        run = Run(scenario, settings, self._engine, (observation,), progress)
        run.finish()
        return observation.result(name, seed=settings.seed, never=run.never(), standing=scenario.standing)


def _follow(run: Run, job: JobId, at_ms: int | None) -> tuple[Place | None, int | None]:
    """Turn until `job` is placed (or, with a time, until then); its last placement and when that was."""
    place: Place | None = None
    placed_ms: int | None = None
    for now in run.turns(at_ms):
        for step in run.loop.last_plan.steps if run.loop.last_plan else ():
            if isinstance(step, Place) and step.job == job:
                place, placed_ms = step, now
        if place is not None and at_ms is None:
            break
    return place, placed_ms


def _own_policies(scenario: Scenario) -> list[str]:
    """What to compare where nobody says: the default against whole cards."""
    return [scenario.policies[0][0], "whole-card-fifo"]
