"""Windows in virtual time: capacity goes and comes back by itself, predictions know it, and it is said."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.control.experiments import Experiments, Explanation
from aliquot.control.predicting import Budget, predict
from aliquot.control.whatif import Run
from aliquot.core.events import Ended, Event, Evicting, Granted, Outcome
from aliquot.core.jobs import Job, Stop
from aliquot.core.planner import explain_wait
from aliquot.core.windows import Window
from aliquot.core.workload import Announced, Scenario
from aliquot.core.world import World
from aliquot.interfaces.cli.sentences import explain_lines
from tests.support.build import a_job, a_node, a_scenario, an_offer, node_id
from tests.support.planning import settings

HOUR = 3_600_000
HOW = settings()
W = Window("driver", 2 * HOUR, 4 * HOUR, nodes=(node_id("n0"),))


def site(*jobs: tuple[Job, int], windows: tuple[Announced, ...] = (Announced(0, W),)) -> Scenario:
    """One node of two cards under a window, and jobs with the hours they run."""
    offers = [an_offer(job, hours * HOUR) for job, hours in jobs]
    made = a_scenario([a_node("n0", 2)], offers)
    return replace(made, windows=windows, policies=(("plain", HOW),))


class Log:
    """Everything that happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def see(self, events: Sequence[Event], world: World) -> None:
        """Note it."""
        self.events += events

    def starts(self) -> dict[str, list[int]]:
        """Job -> hours at which it was granted."""
        found: dict[str, list[int]] = {}
        for event in self.events:
            if isinstance(event, Granted):
                found.setdefault(event.job, []).append(event.at // HOUR)
        return found


def ran(scenario: Scenario) -> Log:
    """What happened in a whole run."""
    log = Log()
    Run(scenario, HOW, make_sim, [log]).finish()
    return log


def test_capacity_comes_back_by_itself_though_nothing_happens() -> None:
    assert ran(site((a_job("j", estimate_ms=3 * HOUR), 3))).starts() == {"j": [4]}


def test_a_window_that_is_taken_back_is_open_from_then_on() -> None:
    back = (Announced(0, W, cancelled_ms=HOUR),)
    assert ran(site((a_job("j", estimate_ms=3 * HOUR), 3), windows=back)).starts() == {"j": [1]}


def test_one_that_is_made_later_meets_what_runs_and_stops_it() -> None:
    """It saves its progress each hour, and loses nothing but the time of the window."""
    late = (Announced(HOUR, replace(W, grace_ms=0)),)
    job = a_job("j", estimate_ms=9 * HOUR, stop=Stop(checkpoint_ms=HOUR))
    log = ran(site((job, 5), windows=late))
    assert log.starts() == {"j": [0, 4]}
    assert [event.at for event in log.events if isinstance(event, Evicting)] == [2 * HOUR]
    assert max(event.at for event in log.events if isinstance(event, Ended)) == 7 * HOUR


def test_who_runs_past_its_limit_is_ended() -> None:
    log = ran(site((a_job("j", limit_ms=HOUR), 9), windows=()))
    assert [(event.at, event.outcome) for event in log.events if isinstance(event, Ended)] == [
        (HOUR, Outcome.FAILED)
    ]


def test_a_job_that_lies_about_its_end_is_still_there_and_goes_on() -> None:
    log = ran(site((a_job("j", estimate_ms=HOUR), 3)))
    assert [event.at for event in log.events if isinstance(event, Ended)] == [3 * HOUR]


def test_predicted_starts_know_windows() -> None:
    run = Run(site((a_job("j", cards=2, estimate_ms=3 * HOUR), 3)), HOW, make_sim)
    for _ in run.turns(HOUR):
        pass
    found = predict(run.world, HOW, HOUR, [a_job("j").id], Budget())
    assert found.starts[a_job("j").id].at_ms == 4 * HOUR


def test_explain_names_node_times_and_end() -> None:
    made = site((a_job("j", estimate_ms=3 * HOUR), 3))
    told = Experiments(make_sim, lambda paths: made, {}).explain([], "j", None, HOUR, None)
    assert isinstance(told, Explanation)
    assert (
        "  node n0 is reserved for maintenance from 2 h to 4 h; the job would end at 4 h."
        in explain_lines(told)
    )


def test_the_run_goes_on_the_same_from_a_rebuilt_world() -> None:
    made = site((a_job("j", estimate_ms=3 * HOUR), 3), (a_job("k", estimate_ms=HOUR), 1))
    run, log = Run(made, HOW, make_sim, [first := Log()]), Log()
    for _ in run.turns(HOUR):
        pass
    world = World(window=HOW.mix_window)
    world.apply_all(first.events)
    assert world.freeze().closures == run.world.freeze().closures
    log.see(first.events, world)
    job = a_job("j").id
    there, here = (explain_wait(seen.freeze(), HOW, job, run.loop.memo, HOUR) for seen in (world, run.world))
    assert there == here
