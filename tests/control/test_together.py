"""What sharing cards does to a whole run: shorter where it pays, nothing where it does not, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.control.experiments import Experiments
from aliquot.control.whatif import Run
from aliquot.core.events import Ended
from aliquot.core.inventory import CardModel
from aliquot.core.jobs import Job
from aliquot.core.report.observation import Observation
from aliquot.core.report.scorecard import Scorecard
from aliquot.core.settings import Colocation, Settings
from aliquot.core.steps import Place
from aliquot.core.together import SEATS, Together
from aliquot.core.units import FULL
from aliquot.core.workload import Scenario
from aliquot.interfaces.cli.sentences import explain_lines
from tests.support.build import a_job, a_node, a_scenario, an_offer
from tests.support.planning import settings

HOUR = 3_600_000
APART = settings()
TOGETHER = settings(colocation=Colocation())
HALVES = Together(20_000, (0, 500, 500, 0))
GPU = Together(20_000, (0, 0, 1000, 0))


def jobs(*profiles: Together, cards: int = 1, **more: Any) -> list[Job]:
    return [a_job(f"j{at}", cards=cards, seq=at, together=one, **more) for at, one in enumerate(profiles)]


def scored(scenario: Scenario, how: Settings) -> tuple[Scorecard, list[Place], int]:
    """The scorecard, what was placed beside others, and when the last was over."""
    observation = Observation(scenario, settings=how)
    run = Run(scenario, how, make_sim, (observation,))
    beside, last = [], 0
    for now in run.turns():
        steps = run.loop.last_plan.steps if run.loop.last_plan else ()
        beside += [step for step in steps if isinstance(step, Place) and step.company is not None]
        last = now
    events = run.loop.journal.replay()
    ends = [event.at for event in events if isinstance(event, Ended)]
    return observation.result("test").scorecard, beside, max(ends, default=last)


def test_two_that_take_turns_are_over_sooner_on_average_than_one_after_the_other() -> None:
    """An hour each on one card: after 60 and 120 min apart, both after 79.9 min together."""
    scenario = a_scenario([a_node("n", 1)], [an_offer(job, HOUR) for job in jobs(HALVES, HALVES)])
    apart, _, _ = scored(scenario, APART)
    together, beside, _ = scored(scenario, TOGETHER)
    assert apart.completion_mean_ms == 1.5 * HOUR
    assert together.completion_mean_ms == -(-HOUR * FULL // 751)
    assert [step.company.speeds_milli for step in beside if step.company] == [(751, 751)]
    assert (apart.together, together.together) == (0, 2)


def test_two_that_would_only_slow_each_other_go_one_after_the_other() -> None:
    scenario = a_scenario([a_node("n", 1)], [an_offer(job, HOUR) for job in jobs(GPU, GPU)])
    apart, _, _ = scored(scenario, APART)
    together, beside, _ = scored(scenario, TOGETHER)
    assert (beside, together.completion_mean_ms) == ([], apart.completion_mean_ms)


def test_a_card_that_is_shared_counts_once() -> None:
    scenario = a_scenario(
        [a_node("n", 2)],
        [replace(an_offer(job, HOUR), busy_milli=600) for job in jobs(HALVES, HALVES, cards=2)],
    )
    card, _, _ = scored(scenario, TOGETHER)
    assert card.allocation == 1.0
    assert card.memory_booked == 1.0
    assert round(card.utilisation or 0, 3) == 0.9  # 450 milli each: 600 at three quarters of the speed
    assert card.goodput == 1.0


def test_what_neighbours_cost_is_counted_and_flagged_as_crowding() -> None:
    """Each runs for 79.9 min at 0.751 of its speed alone; apart one waits for an hour and none is slowed."""
    offers = [an_offer(job, HOUR) for job in jobs(HALVES, HALVES, queue="lab")]
    scenario = a_scenario([a_node("n", 1)], offers)
    apart, _, _ = scored(scenario, APART)
    together, _, end = scored(scenario, TOGETHER)
    assert (apart.neighbour_card_hours, slowed_by_neighbours(apart)) == (0, 0)
    assert (together.neighbour_card_hours, slowed_by_neighbours(together)) == (
        pytest.approx(2 * 0.249 * end / HOUR),
        2,
    )
    assert apart.per_class.queue[0].neighbour_card_hours == 0
    assert together.per_class.queue[0].neighbour_card_hours == together.neighbour_card_hours
    ten_minutes = HOUR // 6
    assert (apart.crowd_ms, together.crowd_ms) == (HOUR - ten_minutes, end - ten_minutes)


def test_throughput_that_neighbours_take_shows_in_mfu() -> None:
    fast = CardModel("fast", 81_559, gflops=(("bf16", 1_000_000),))
    offers = [replace(an_offer(job, HOUR), gflops=400_000) for job in jobs(HALVES, HALVES)]
    scenario = a_scenario([a_node("n", 1, model=fast)], offers)
    apart, _, _ = scored(scenario, APART)
    together, _, _ = scored(scenario, TOGETHER)
    assert apart.mfu == pytest.approx(0.4)
    assert together.mfu == pytest.approx(2 * 0.4 * 0.751, rel=1e-3), "of one card, held by both"


def slowed_by_neighbours(card: Scorecard) -> int | None:
    return next(found.count for found in card.failures if found.id == "interference")


@st.composite
def profiles(draw: st.DrawFn) -> Together:
    cuts = sorted(draw(st.integers(0, FULL)) for _ in range(SEATS - 1))
    parts = tuple(high - low for low, high in zip([0, *cuts], [*cuts, FULL], strict=True))
    return Together(
        draw(st.sampled_from((5_000, 30_000))), parts, overhead_milli=draw(st.sampled_from((None, 0)))
    )


@given(
    st.lists(st.tuples(profiles(), st.integers(1, 60), st.integers(0, 30)), min_size=1, max_size=6),
    st.integers(2, 4),
    st.integers(0, 400),
)
@examples(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_put_together_never_gets_through_less_than_one_after_the_other(
    offered: list[tuple[Together, int, int]], most: int, least_gain: int
) -> None:
    """Each time the predicted sum gains what was asked; and one card is done no later than in sequence."""
    how = settings(colocation=Colocation(least_gain, most))
    offers = [
        an_offer(a_job(f"j{at}", at=minute * 60_000, seq=at, together=one), work * 60_000)
        for at, (one, work, minute) in enumerate(sorted(offered, key=lambda each: each[2]))
    ]
    scenario = a_scenario([a_node("n", 1)], offers)
    _, beside, end = scored(scenario, how)
    _, _, in_sequence = scored(scenario, APART)
    for step in beside:
        assert step.company is not None
        assert step.company.total_milli - step.company.before_milli > least_gain
        assert step.company.total_milli > FULL
    assert end <= in_sequence + len(offers)  # each end is rounded up to a millisecond


def test_what_explain_says_of_both() -> None:
    scenario = a_scenario([a_node("n", 1)], [an_offer(job, HOUR) for job in jobs(HALVES, HALVES)])
    policies = (("together", TOGETHER),)
    told = Experiments(make_sim, lambda paths: replace(scenario, policies=policies), {})
    said = "It shares card n-g0 of node n with job {}: predicted together 1.50 of one's speed alone, "
    said += "j0 0.75, j1 0.75."
    guest = explain_lines(told.explain([Path("x.yaml")], "j1", None, None, None))
    host = explain_lines(told.explain([Path("x.yaml")], "j0", None, 60_000, None))
    assert said.format("j0") in guest
    assert said.format("j1") in host
    assert "Nothing that was free fitted." in guest


def test_predicted_starts_know_that_company_is_slow() -> None:
    """Both share the card until 79.9 min, not until 60."""
    offers = [an_offer(job, HOUR) for job in jobs(HALVES, HALVES, estimate_ms=HOUR)]
    offers.append(an_offer(a_job("alone", at=1, seq=2, estimate_ms=HOUR), HOUR))
    scenario = a_scenario([a_node("n", 1)], offers)
    told = Experiments(make_sim, lambda paths: replace(scenario, policies=(("p", TOGETHER),)), {})
    waiting = told.explain([Path("x.yaml")], "alone", None, 10, None)
    assert waiting.expected is not None
    assert waiting.expected.at_ms is not None
    assert abs(waiting.expected.at_ms - HOUR * FULL / 751) < 1_000
