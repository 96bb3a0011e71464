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

    def turn(self, crash: int | None = None) -> bool:
        """See, fold, plan, check, fold, carry out; False where nothing will ever happen again.

        `crash`: lose the world before this line (0 to 3) and go on with what the journal gives back, as a
        restart does: what is owed is carried out first, again or for the first time.
        """
        lines = (self._see, self._decide, self._carry_out, self._note)
        for number, line in enumerate(lines):
            if number == crash:
                self.world = World()
                self.world.apply_all(self.events)
                self._carry_out()
            line()
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

    def _see(self) -> None:
        self._record(self.forecast.observe())

    def _decide(self) -> None:
        now, world = self.forecast.state.now, self.world.freeze()
        self._record(commit.check(first_fit(world, now), world, now).events)

    def _carry_out(self) -> None:
        self.forecast.carry_out(self.world.outstanding())

    def _note(self) -> None:
        self.seen_at.append(self.forecast.state.now)
        for job, record in self.world.jobs.items():
            self.submit_times.setdefault(job, set()).add(record.job.submitted_ms)

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
