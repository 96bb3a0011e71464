"""A whole run in virtual time with the first-fit planner: cut and resumed anywhere."""

from __future__ import annotations

from random import Random
from typing import Self

from aliquot.core import commit
from aliquot.core.events import Event
from aliquot.core.forecast import Forecast
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from tests.support.build import a_job, a_scenario, an_offer
from tests.support.first_fit import first_fit
from tests.support.histories import REQUESTS, SHAPES


class Run:
    """One scenario under first fit. `events` is everything recorded, `seen_at` the time of each turn."""

    def __init__(self, scenario: Scenario, forecast: Forecast | None = None) -> None:
        self.scenario = scenario
        self.forecast = forecast or Forecast(scenario)
        self.world = World()
        self.events: list[Event] = []
        self.seen_at: list[int] = []
        self.submit_times: dict[str, set[int]] = {}

    def turn(self) -> bool:
        """See, fold, plan, check, fold, carry out; False where nothing will ever happen again."""
        self._record(self.forecast.observe())
        now = self.forecast.state.now
        verdict = commit.check(first_fit(self.world.freeze(), now), self.world.freeze(), now)
        self._record(verdict.events)
        self.forecast.carry_out(self.world.outstanding())
        self.seen_at.append(now)
        for job, record in self.world.jobs.items():
            self.submit_times.setdefault(job, set()).add(record.job.submitted_ms)
        return not self.forecast.is_over

    def to_the_end(self) -> Self:
        """Turns until nothing will ever happen again."""
        while self.turn():
            pass
        return self

    def restarted(self) -> Run:
        """A run that goes on from here with nothing but the journal and a snapshot of the cluster."""
        run = Run(self.scenario, Forecast(self.scenario, self.forecast.snapshot()))
        run._record(self.events)
        return run

    def _record(self, events: list[Event] | tuple[Event, ...]) -> None:
        self.events.extend(events)
        self.world.apply_all(events)


def random_scenario(random: Random, jobs: int = 12) -> Scenario:
    """Three machines, `jobs` jobs, some impatient, some endless, and machines that fail."""
    nodes = [random.choice(SHAPES)(f"n{number}") for number in range(3)]
    at = 0
    offers = []
    for number in range(jobs):
        at += random.randrange(400)
        job = a_job(f"j{number}", random.choice(REQUESTS), at=at, seq=number, priority=random.randrange(2))
        work = None if random.random() < 0.1 else random.randrange(3_000)
        patience = random.randrange(2_000) if random.random() < 0.3 else None
        offers.append(an_offer(job, work, patience=patience, linked=random.random() < 0.5))
    failures = tuple(
        (random.randrange(4_000), node.id.name, 4_000 + random.randrange(2_000))
        for node in nodes
        if random.random() < 0.5
    )
    return a_scenario(nodes, offers, failures=failures)
