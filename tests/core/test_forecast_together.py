"""Jobs that share cards in virtual time: as fast as predicted in company, at full speed alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.events import Ended, Event, JobSubmitted
from aliquot.core.forecast import Forecast
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Stop
from aliquot.core.running import Running, at_speed, saved_milli
from aliquot.core.steps import Kill, Start
from aliquot.core.together import Together, predict_speeds
from tests.support.build import a_job, a_node, a_placement, a_scenario, an_offer

NODE = a_node("n", 2)
CARD, OTHER = a_placement(NODE, [0]), a_placement(NODE, [1])
HALVES = Together(1, (0, 500, 500, 0))
QUARTERS = Together(1, (250, 250, 250, 250))


def a_sharer(name: str, at: int = 0, **more: object) -> Job:
    return a_job(name, at=at, **{"together": HALVES, **more})


def played(
    *jobs: tuple[Job, int], kills: tuple[tuple[int, str], ...] = ()
) -> tuple[Forecast, dict[str, int]]:
    """Every job starts on one card as it comes, and is killed when it says so; (the cluster, ends)."""
    scenario = a_scenario([NODE], [an_offer(job, work) for job, work in jobs])
    forecast = Forecast(scenario)
    for at, _ in kills:
        forecast.wake_at(at)
    ends: dict[str, int] = {}
    while not forecast.is_over:
        for event in forecast.observe():
            ends |= _heard(forecast, event)
        now = forecast.now()
        forecast.carry_out([Kill(JobId(job), 1, evicted=True) for at, job in kills if at == now])
    return forecast, ends


def _heard(forecast: Forecast, event: Event) -> dict[str, int]:
    if isinstance(event, JobSubmitted):
        forecast.carry_out([Start(event.job.id, 1, (CARD,))])
    return {event.job: event.at} if isinstance(event, Ended) else {}


def test_both_are_slower_while_they_share_and_the_last_is_fast_again() -> None:
    """751 milli each from 2 s on: 8 s of a's work take 10,653 ms, in which b does 8,000.4 of its 10 s."""
    _, ends = played((a_sharer("a"), 10_000), (a_sharer("b", 2_000), 10_000))
    assert ends == {"a": 12_653, "b": 12_653 + 2_000}


def test_who_never_ends_slows_the_other_for_good() -> None:
    scenario = a_scenario([NODE], [an_offer(a_sharer("a"), None), an_offer(a_sharer("b"), 7_510)])
    forecast = Forecast(scenario)
    forecast.observe()
    forecast.carry_out([Start(JobId(name), 1, (CARD,)) for name in "ab"])
    assert [event.at for event in forecast.observe() if isinstance(event, Ended)] == [10_000]


def test_on_other_cards_nobody_is_company() -> None:
    scenario = a_scenario([NODE], [an_offer(a_sharer("a"), 1_000), an_offer(a_sharer("b"), 1_000)])
    forecast = Forecast(scenario)
    forecast.observe()
    forecast.carry_out([Start(JobId("a"), 1, (CARD,)), Start(JobId("b"), 1, (OTHER,))])
    assert [running.ends_ms for running in forecast.state.running.values()] == [1_000, 1_000]


def test_who_is_ending_takes_no_more_of_the_card() -> None:
    slow = a_sharer("a", stop=Stop(stop_ms=5_000))
    scenario = a_scenario([NODE], [an_offer(slow, 60_000), an_offer(a_sharer("b"), 7_510)])
    forecast = Forecast(scenario)
    forecast.observe()
    forecast.carry_out([Start(JobId(name), 1, (CARD,)) for name in "ab"])
    forecast.carry_out([Kill(JobId("a"), 1, grace_ms=5_000, evicted=True)])
    assert forecast.state.running["b"].ends_ms == 7_510


@pytest.mark.parametrize(
    ("killed", "left"),
    [
        pytest.param(2_900, 8_000, id="the last checkpoint was before the other came"),
        pytest.param(4_600, 6_374, id="2.5 s alone and 1.5 s at 751 milli are saved"),
        pytest.param(5_000, 5_623, id="at the moment of a checkpoint"),
        pytest.param(900, 10_000, id="before the first one"),
    ],
)
def test_a_stop_keeps_what_the_last_checkpoint_had(killed: int, left: int) -> None:
    first = a_sharer("a", stop=Stop(checkpoint_ms=1_000))
    forecast, _ = played((first, 10_000), (a_sharer("b", 2_500), 50_000), kills=((killed, "a"),))
    assert forecast.state.left == {"a": left}


def test_a_snapshot_goes_on_as_the_original() -> None:
    scenario = a_scenario([NODE], [an_offer(a_sharer("a"), 10_000), an_offer(a_sharer("b"), 4_000)])
    forecast = Forecast(scenario)
    forecast.observe()
    forecast.carry_out([Start(JobId(name), 1, (CARD,)) for name in "ab"])
    forecast.observe()
    again = Forecast(scenario, forecast.snapshot())
    assert [again.observe() for _ in range(2)] == [forecast.observe() for _ in range(2)]
    assert again.is_over
    assert forecast.is_over


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 9_000)), min_size=1, max_size=4))
@settings(deadline=None, max_examples=60)
def test_the_speeds_of_a_jobs_life_add_up_to_its_work(jobs: list[tuple[int, int]]) -> None:
    """To the millisecond of its end, however often company came and went."""
    jobs.sort()
    names = [f"j{at}" for at in range(len(jobs))]
    offers = [
        (a_sharer(name, at, together=QUARTERS), work) for name, (at, work) in zip(names, jobs, strict=True)
    ]
    _, ends = played(*offers)
    moments = sorted({*(at for at, _ in jobs), *ends.values()})
    for name, (begun, work) in zip(names, jobs, strict=True):
        done = last = 0
        for since, until in pairwise(moments):
            if begun <= since and until <= ends[name]:
                there = sum(at <= since < ends[other] for other, (at, _) in zip(names, jobs, strict=True))
                last = (predict_speeds((QUARTERS,) * there) or (0,))[0]
                done += last * (until - since)
        assert work * 1_000 <= done < work * 1_000 + last


def test_a_pause_is_not_cut_short_by_company() -> None:
    waiting = Running(2, (CARD,), 5_000, 1_000, 1_000, 6_000)
    slowed = at_speed(waiting, 500, 2_000, None)
    assert (slowed.since_ms, slowed.ends_ms) == (5_000, 7_000)
    assert saved_milli(slowed, 6_000, 500) == 500_000
