"""Experiments on scenarios and public traces: simulate, compare, replay, explain.

What must come from outside (how documents are read, which traces there are, which engine runs) is handed in
by `bootstrap`; what an interface needs to know comes back as values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from aliquot.control.end_views import GivenUp
from aliquot.control.foresight import LEARNT, Foresight, find_places
from aliquot.control.giving_up import Withdrawals
from aliquot.control.naming import not_found
from aliquot.control.predicting import Budget
from aliquot.control.quotas import overcommits_of
from aliquot.control.replaying import HistoryAsk, KueueAsk, PhillyAsk, PublishedAsk, PublishedRun
from aliquot.control.whatif import Engine, Progress, Run, find_policy
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import explain_wait
from aliquot.core.promise import Promise
from aliquot.core.queueing.outlook import Expected
from aliquot.core.queueing.overcommit import Overcommit
from aliquot.core.report.observation import Observation
from aliquot.core.report.result import RunResult, Standing
from aliquot.core.settings import Settings
from aliquot.core.steps import Evict, Place, Reserve, Resize, Wait
from aliquot.core.workload import Scenario

LoadScenario = Callable[[Sequence[Path]], Scenario]


class ReplayAsk(msgspec.Struct, frozen=True):
    """One run of a public workload."""

    workload: str
    seed: int
    offered: float = 1.3
    folder: Path | None = None  # None: where the traces usually are
    movable: bool = False


TraceAsk = ReplayAsk | PhillyAsk | KueueAsk | HistoryAsk
LoadReplay = Callable[[Any], Scenario]
"""Takes the ask of its trace."""

RunPublished = Callable[[PublishedAsk, Progress | None], PublishedRun]


class Explanation(msgspec.Struct, frozen=True):
    """Where a job is and why, as seen at `at_ms`.

    `place` is given once it was placed, `wait` while it waits; neither before it is submitted, or where it
    was given up first: by its owner, or as `given_up` says. `over`: nothing of it is left.
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
    position: int | None = None  # among all who wait, in the order a plan looks at them, from 1
    waiting: int = 0
    nodes: int = 0
    queue: str = ""
    queue_position: int | None = None  # among those of its queue, from 1
    queue_waiting: int = 0
    expected: Expected | None = None  # while it waits
    promise: Promise | None = None  # where it has bounds
    stopped: tuple[Evict | Resize, ...] = ()  # others, for this job; or narrower
    cleared: Reserve | None = None  # what they gave up for it
    overcommits: tuple[Overcommit, ...] = ()  # of its queue, those above it and the pool, while it waits
    given_up: GivenUp | None = None  # where nobody did that, and it never started
    company: Place | None = None  # the last time that somebody came to its cards, or it to theirs


class Experiments:
    """The experiments one can make without a cluster."""

    def __init__(
        self,
        engine: Engine,
        load: LoadScenario,
        replays: Mapping[str, LoadReplay],
        published: Mapping[str, RunPublished] = MappingProxyType({}),
    ) -> None:
        self._engine, self._load, self._replays, self._published = engine, load, replays, published

    def load(self, paths: Sequence[Path]) -> Scenario:
        """The scenario that documents describe; raises DocumentError."""
        return self._load(paths)

    def simulate(
        self,
        paths: Sequence[Path],
        policy: str | None,
        seed: int | None,
        progress: Progress | None = None,
        *,
        predict: bool = False,
    ) -> RunResult:
        """One scenario under one policy (the first of the documents where none is named).

        With `predict` starts are predicted as jobs come, and the result says how right that was.
        """
        scenario = self._load(paths)
        name, settings = find_policy(scenario, policy, seed)
        return self._observe(scenario, name, settings, progress, predict=predict)

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
        scenario = self.open_trace(trace, ask)
        name, settings = find_policy(scenario, policy)
        settings = replace(settings, **changes)
        observation = Observation(scenario, settings=settings, by_load=True)
        Run(scenario, settings, self._engine, (observation,), progress).finish()
        return observation.result(name, seed=ask.seed, standing=Standing.REPLAY)

    def open_trace(self, trace: str, ask: TraceAsk) -> Scenario:
        """The scenario of a trace, to be run any number of times. Raises NotFoundError for another name."""
        loader = self._replays.get(trace)
        if loader is None:
            raise not_found("trace", trace, sorted(self._replays))
        return loader(ask)

    def run_trace(
        self,
        scenario: Scenario,
        policy: str | None,
        seed: int | None,
        progress: Progress | None = None,
        *,
        predict: bool = False,
    ) -> RunResult:
        """One run of a trace whose jobs come and go, under a policy by name (or its first)."""
        name, settings = find_policy(scenario, policy, seed)
        return self._observe(scenario, name, settings, progress, predict=predict)

    def run_published(self, trace: str, ask: PublishedAsk, progress: Progress | None = None) -> PublishedRun:
        """One run in the published simulator of `trace`, beside what its authors printed."""
        run = self._published.get(trace)
        if run is None:
            raise not_found("published simulator", trace, sorted(self._published))
        return run(ask, progress)

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
        foresight = Foresight(settings, asked=Budget, allowance=LEARNT)
        withdrawals = Withdrawals()
        run = Run(scenario, settings, self._engine, (withdrawals,), foresight=foresight)
        run.loop.explained = offer.job.id
        told = _follow(run, offer.job.id, at_ms)
        frozen, now = run.world.freeze(), run.loop.clock.now()
        waits = any(key[3] == offer.job.id for key in frozen.pending)
        explained = Explanation(
            job=job,
            policy=name,
            placement=tuple(part for part, weight in settings.policy if weight > 0),
            at_ms=now if at_ms is None else at_ms,
            submitted_ms=offer.job.submitted_ms,
            over=offer.job.submitted_ms <= now and offer.job.id not in frozen.jobs,
            nodes=frozen.rows,
            queue=offer.job.queue,
            stopped=told.stopped,
            cleared=told.cleared,
            company=told.company,
        )
        if not waits:
            placed = replace(explained, place=told.place, placed_ms=told.placed_ms)
            if told.placed_ms is None:
                return replace(placed, given_up=withdrawals.of(offer.job.id))
            return replace(placed, promise=foresight.kept(offer.job, told.placed_ms))
        line = find_places(frozen, settings, now, run.loop.memo)
        expected = foresight.expect(run.world, now, [offer.job.id])[offer.job.id]
        return replace(
            explained,
            wait=explain_wait(frozen, settings, offer.job.id, run.loop.memo, now),
            **line[offer.job.id]._asdict(),
            expected=expected,
            promise=foresight.promise(offer.job, now, expected),
            overcommits=overcommits_of(frozen, settings, offer.job.queue),
        )

    def _observe(
        self,
        scenario: Scenario,
        name: str,
        settings: Settings,
        progress: Progress | None,
        *,
        predict: bool = False,
    ) -> RunResult:
        observation = Observation(scenario, settings=settings)
        foresight = Foresight(settings) if predict else None
        run = Run(scenario, settings, self._engine, (observation,), progress, foresight)
        run.finish()
        result = observation.result(name, seed=settings.seed, never=run.never(), standing=scenario.standing)
        if foresight is None:
            return result
        return replace(result, predicted_start=foresight.report())


class _Told(msgspec.Struct):
    """What the plans of a run said of one job, the last word of each kind."""

    place: Place | None = None
    placed_ms: int | None = None
    stopped: tuple[Evict | Resize, ...] = ()
    cleared: Reserve | None = None
    company: Place | None = None
    holds: bool = False  # whether it was placed at the last turn


def _follow(run: Run, job: JobId, at_ms: int | None) -> _Told:
    """Turn until `job` is placed (or, with a time, until then)."""
    told = _Told()
    for now in run.turns(at_ms):
        record = run.world.jobs.get(job)
        waits = record is not None and record.phase is Phase.PENDING
        if waits and told.holds:  # again: what was done for its earlier start is over
            told.stopped, told.cleared, told.company = (), None, None
        told.holds = record is not None and not waits
        steps = run.loop.last_plan.steps if run.loop.last_plan else ()
        stopped = tuple(step for step in steps if isinstance(step, Evict | Resize) and step.for_job == job)
        told.stopped = stopped or told.stopped
        for step in steps:
            if isinstance(step, Place) and step.company is not None and job in step.company.jobs:
                told.company = step
            if isinstance(step, Place) and step.job == job:
                told.place, told.placed_ms = step, now
            elif isinstance(step, Reserve) and step.job == job and step.firm:
                told.cleared = step
        if told.place is not None and at_ms is None:
            break
    return told


def _own_policies(scenario: Scenario) -> list[str]:
    """What to compare where nobody says: the default against whole cards."""
    return [scenario.policies[0][0], "whole-card-fifo"]
