"""The told case under two more regimes: priority alone, and quotas that are never exceeded."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.catalog import load_catalog
from aliquot.config import load_scenario
from aliquot.control.whatif import Run, find_policy
from aliquot.core.events import Ended, Event, Evicting, Granted, JobSubmitted
from aliquot.core.queues import Queue, quotas_of
from aliquot.core.settings import Settings
from aliquot.core.workload import Scenario
from aliquot.core.world import World

CASE = Path(__file__).parents[2] / "examples" / "case"
HOUR = 3_600_000


class Lives:
    """When each job was submitted, granted first, ended, and how often it was stopped."""

    def __init__(self) -> None:
        self.submitted: dict[str, int] = {}
        self.granted: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.stopped: list[str] = []

    def see(self, events: tuple[Event, ...], world: World) -> None:
        """Note them."""
        for event in events:
            match event:
                case JobSubmitted():
                    self.submitted[event.job.id] = event.at
                case Granted():
                    self.granted.setdefault(event.job, event.at)
                case Evicting():
                    self.stopped.append(event.job)
                case Ended():
                    self.ended[event.job] = event.at

    def hours(self, stage: str) -> list[float]:
        """Submission to completion of the jobs of a stage."""
        return [
            (end - self.submitted[job]) / HOUR for job, end in self.ended.items() if job.startswith(stage)
        ]

    def waits(self, stage: str) -> list[float]:
        """Minutes until the first start, in order."""
        return sorted(
            (at - self.submitted[job]) / 60_000 for job, at in self.granted.items() if job.startswith(stage)
        )


def lived(settings: Settings, scenario: Scenario) -> Lives:
    """The case under a policy, to its end."""
    lives = Lives()
    run = Run(scenario, settings, make_sim, [lives])
    run.finish()
    assert not run.world.jobs
    return lives


@pytest.fixture(name="case")
def load_case() -> Scenario:
    """The documents of the demo."""
    names = ("cluster", "inference", "training", "policies")
    return load_scenario([CASE / f"{name}.yaml" for name in names], load_catalog())


def test_priority_alone_moves_the_wait_to_inference(case: Scenario) -> None:
    """Told: makespan 5.70 h, training 0 min and 3.00 h, inference 4.99 h, 16 pushed back to wait.

    Here 20 are stopped and four of them begin anew at once on the four cards that are left.
    """
    lives = lived(find_policy(case, "whole-card-preemption")[1], case)
    training, inference = lives.hours("training"), lives.hours("inference")
    assert lives.waits("training") == [0, 0, 0]
    assert sum(training) / 3 == pytest.approx(3.0, rel=0.01)
    assert sum(inference) / 20 == pytest.approx(4.99, rel=0.01)
    assert max(lives.ended.values()) / HOUR == pytest.approx(5.70, rel=0.01)
    assert len(set(lives.stopped)) == len(lives.stopped) == 20
    assert sum(hours > 3 for hours in inference) == 16


def test_quotas_as_hard_caps_make_training_queue_behind_itself(case: Scenario) -> None:
    """Told: makespan 9.08 h, training waits 0, 180 and 360 min, inference 3.14 h."""
    settings = find_policy(case, "binpack-slices")[1]
    capped = tuple(_capped(queue) for queue in settings.queues)
    lives = lived(replace(settings, queues=capped), case)
    assert lives.waits("training") == pytest.approx([0, 180, 360], abs=1)
    assert sum(lives.hours("inference")) / 20 == pytest.approx(3.14, rel=0.01)
    assert max(lives.ended.values()) / HOUR == pytest.approx(9.08, rel=0.01)


def _capped(queue: Queue) -> Queue:
    """What it is promised, and not a MiB more."""
    return replace(
        queue, nominal_mib=None, quotas=tuple(replace(quota, borrowing=0) for quota in quotas_of(queue))
    )
