"""Virtual time: when things happen, that steps may come again, snapshots go on as the original."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.events import (
    Ended,
    Event,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    NodeLost,
    Outcome,
    Started,
)
from aliquot.core.forecast import Forecast
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.jobs import Elastic, Request
from aliquot.core.slices import Vector
from aliquot.core.speed import SpeedTable
from aliquot.core.steps import Kill, Move, Start
from aliquot.core.topology.wiring import pcie
from aliquot.core.workload import Scenario
from tests.support.build import a_job, a_node, a_placement, a_request, a_scenario, an_offer
from tests.support.runs import Run, random_scenario

HOUR = 3_600_000
NODE = a_node("n", 8, wiring=pcie(8, per_switch=2, per_socket=4))
OTHER = a_node("m", 8, wiring=pcie(8, per_switch=2, per_socket=4))
HALF = Vector(500, 40_000, 500)


def one_job(work: int | None = 1_000, *, linked: bool = False, **scenario: object) -> Forecast:
    """A forecast of one job on two nodes, with its arrival observed."""
    found = a_scenario([NODE, OTHER], [an_offer(a_job("j"), work, linked=linked)], **scenario)  # type: ignore[arg-type]  # passed on
    forecast = Forecast(found)
    forecast.observe()
    return forecast


def start(*placements: Placement, job: str = "j", attempt: int = 1) -> Start:
    return Start(JobId(job), attempt, placements or (a_placement(NODE, [0]),))


def rest(forecast: Forecast) -> list[Event]:
    """Everything that still happens when nobody decides anything."""
    events: list[Event] = []
    while not forecast.is_over:
        events += forecast.observe()
    return events


def end_of(events: Sequence[Event], job: str = "j") -> int:
    (end,) = (event.at for event in events if isinstance(event, Ended) and event.job == job)
    return end


def test_first_come_the_nodes_then_the_jobs_in_order_of_submission() -> None:
    jobs = [a_job("a", at=0), a_job("b", at=0), a_job("c", at=70)]
    forecast = Forecast(a_scenario([NODE, OTHER], [an_offer(job) for job in jobs]))
    assert forecast.observe() == [
        NodeJoined(0, NODE),
        NodeJoined(0, OTHER),
        *(JobSubmitted(0, job) for job in jobs[:2]),
    ]
    assert forecast.observe() == [JobSubmitted(70, jobs[2])]
    assert forecast.state.now == 70
    assert forecast.is_over
    assert forecast.observe() == []


def test_a_job_is_confirmed_at_once_and_ends_after_its_work() -> None:
    forecast = one_job(1_000)
    forecast.carry_out([start()])
    assert forecast.observe() == [Started(0, JobId("j"), 1), Ended(1_000, JobId("j"), 1, Outcome.SUCCEEDED)]
    assert forecast.is_over


@pytest.mark.parametrize(
    ("members", "elastic", "left"),
    [
        pytest.param([a_request(1)], Elastic((1, 2), (1000, 2000)), 2 * HOUR, id="elastic: all is saved"),
        pytest.param([a_request(1)] * 2, None, 3 * HOUR, id="a gang without a checkpoint: all is lost"),
    ],
)
def test_what_is_left_to_do_after_a_restart_at_another_width(
    members: list[Request], elastic: Elastic | None, left: int
) -> None:
    job = a_job("j", members, elastic=elastic, minimum=1 if elastic is None else None)
    forecast = Forecast(a_scenario([NODE, OTHER], [an_offer(job, 3 * HOUR), an_offer(a_job("k", at=HOUR))]))
    forecast.observe()
    there = tuple(a_placement(NODE, [at]) for at in range(len(members)))
    forecast.carry_out([start(*there)])
    forecast.observe()
    assert forecast.state.now == HOUR
    forecast.carry_out([Kill(JobId("j"), 1, resized=True)])
    assert forecast.state.left["j"] == left


def test_a_job_without_an_end_runs_for_ever() -> None:
    forecast = one_job(None)
    forecast.carry_out([start()])
    assert rest(forecast) == [Started(0, JobId("j"), 1)]
    assert "j" in forecast.state.running


@pytest.mark.parametrize(
    ("placements", "linked", "takes"),
    [
        pytest.param([a_placement(NODE, [0])], True, 3 * HOUR, id="one card"),
        pytest.param([a_placement(NODE, [0, 1])], True, 3 * HOUR * 1000 // 850 + 1, id="one PCIe switch"),
        pytest.param([a_placement(NODE, [0, 2])], True, 4 * HOUR, id="one socket"),
        pytest.param([a_placement(NODE, [0, 4])], True, 5 * HOUR, id="two sockets"),
        pytest.param([a_placement(NODE, [0, 4])], False, 3 * HOUR, id="it does not care for links"),
        pytest.param(
            [a_placement(NODE, [0]), a_placement(OTHER, [0])],
            True,
            6 * HOUR,
            id="two nodes: 3 h take 6 h",
        ),
        pytest.param([a_placement(NODE, [0]), a_placement(NODE, [4])], True, 5 * HOUR, id="two members"),
    ],
)
def test_three_hours_of_work_take(placements: list[Placement], linked: bool, takes: int) -> None:
    forecast = one_job(3 * HOUR, linked=linked)
    forecast.carry_out([start(*placements)])
    assert end_of(rest(forecast)) == takes


def test_sharing_a_card_costs_what_the_mechanism_costs() -> None:
    forecast = one_job(900, speeds=SpeedTable(sharing_milli=900))
    forecast.carry_out([start(a_placement(NODE, [0], HALF))])
    assert end_of(rest(forecast)) == 1_000


# --- steps that come again ---------------------------------------------------------------------------


def test_a_start_that_comes_again_changes_nothing() -> None:
    forecast = one_job(1_000)
    forecast.carry_out([start(), start()])
    forecast.wake_at(600)
    assert forecast.observe() == [Started(0, JobId("j"), 1)]
    forecast.carry_out([start()])
    assert end_of(rest(forecast)) == 1_000


def test_a_start_that_comes_again_after_the_end_does_not_run_the_job_twice() -> None:
    forecast = one_job(1_000)
    forecast.carry_out([start()])
    rest(forecast)
    forecast.carry_out([start()])
    assert rest(forecast) == []
    forecast.carry_out([start(attempt=2)])
    assert len(rest(forecast)) == 2, "a new attempt is another matter"


def test_a_kill_ends_the_attempt_now_and_time_waits_for_it_to_be_heard() -> None:
    forecast = Forecast(a_scenario([NODE], [an_offer(a_job("j"), 1_000), an_offer(a_job("k", at=500))]))
    forecast.observe()
    forecast.carry_out([start()])
    forecast.wake_at(100)
    forecast.observe()
    forecast.carry_out([Kill(JobId("j"), 1), Kill(JobId("j"), 1)])
    assert forecast.observe() == [Ended(100, JobId("j"), 1, Outcome.FAILED)]
    assert forecast.state.now == 100, "what it held can be given to another before 500"
    assert [type(event) for event in rest(forecast)] == [JobSubmitted]


def test_a_kill_of_what_never_began_is_answered_and_it_begins_no_more() -> None:
    """Else a job given up between its grant and its start would hold its cards for ever."""
    forecast = one_job()
    forecast.carry_out([Kill(JobId("j"), 1), Kill(JobId("j"), 1), start()])
    assert rest(forecast) == [Ended(0, JobId("j"), 1, Outcome.FAILED)]
    assert forecast.state.running == {}


def test_a_kill_of_an_earlier_attempt_leaves_the_present_one_alone() -> None:
    forecast = one_job()
    forecast.carry_out([start(attempt=2), Kill(JobId("j"), 1)])
    assert end_of(rest(forecast)) == 1_000


# --- moves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moves", [1, 2, 5])
def test_a_move_keeps_the_work_done(moves: int) -> None:
    """Half of 4 h at 1000 milli, the rest at 600: 2 h + 2 h / 0.6."""
    forecast = one_job(4 * HOUR, linked=True)
    near, far = a_placement(NODE, [0]), a_placement(NODE, [3, 4])
    forecast.carry_out([start(near)])
    forecast.wake_at(2 * HOUR)
    forecast.observe()
    forecast.carry_out([Move(JobId("j"), 1, 0, far)] * moves)
    assert end_of(rest(forecast)) == 2 * HOUR + 12_000_000


def test_a_move_to_an_equal_place_changes_no_time() -> None:
    forecast = one_job(1_000)
    forecast.carry_out([start()])
    for at in (100, 250, 999):
        forecast.wake_at(at)
        forecast.observe()
        forecast.carry_out([Move(JobId("j"), 1, 0, a_placement(NODE, [at % 8]))])
    assert end_of(rest(forecast)) == 1_000


def test_a_move_is_confirmed_each_time_it_comes() -> None:
    forecast = one_job(None)
    forecast.carry_out([start()])
    forecast.observe()
    for _ in range(2):
        forecast.carry_out([Move(JobId("j"), 1, 0, a_placement(NODE, [1]))])
        assert forecast.observe() == [Started(0, JobId("j"), 1)]


def test_the_end_a_move_put_off_is_no_instant_of_its_own() -> None:
    """Nobody is called to plan, and nobody takes an empty answer for the end of all, when nothing happens."""
    forecast = Forecast(
        a_scenario([NODE], [an_offer(a_job("j"), 1_000, linked=True), an_offer(a_job("k", at=9_000))])
    )
    forecast.observe()
    forecast.carry_out([start(a_placement(NODE, [0]))])
    forecast.wake_at(500)
    forecast.observe()
    forecast.carry_out([Move(JobId("j"), 1, 0, a_placement(NODE, [0, 4]))])
    answers = [forecast.observe() for _ in range(2)]
    assert [type(event) for event in answers[0]] == [Started, Ended]
    assert [type(event) for event in answers[1]] == [JobSubmitted]


@settings(max_examples=50, deadline=None)
@given(
    work=st.integers(1, 10_000),
    stops=st.lists(st.tuples(st.integers(1, 3_000), st.sampled_from([1, 2, 4])), max_size=5),
)
def test_however_often_it_moves_a_job_does_all_of_its_work(work: int, stops: list[tuple[int, int]]) -> None:
    """Rounding at a move may cost it a millisecond, never spare it one."""
    forecast = one_job(work, linked=True)
    speeds = {1: 850, 2: 750, 4: 600}
    legs = [(0, 1_000)]
    forecast.carry_out([start(a_placement(NODE, [0]))])
    for wait, other in stops:
        at = forecast.state.now + wait
        forecast.wake_at(at)
        while forecast.state.now < at and not forecast.is_over:
            forecast.observe()
        if "j" not in forecast.state.running:
            break
        forecast.carry_out([Move(JobId("j"), 1, 0, a_placement(NODE, [0, other]))])
        legs.append((at, speeds[other]))
    rest(forecast)
    end = forecast.state.now if "j" not in forecast.state.running else None
    assert end is not None
    ends = [*(since for since, _ in legs[1:]), max(end, legs[-1][0])]
    done = sum((until - since) * speed for (since, speed), until in zip(legs, ends, strict=True))
    assert done >= work * 1_000


# --- nodes, owners, waking ---------------------------------------------------------------------------


def test_a_lost_node_takes_its_jobs_with_it_and_comes_back() -> None:
    offers = [an_offer(a_job(name), 1_000) for name in ("here", "there", "both")]
    forecast = Forecast(a_scenario([NODE, OTHER], offers, failures=((300, "n", 700),)))
    forecast.observe()
    forecast.carry_out(
        [
            start(job="here"),
            start(a_placement(OTHER, [0]), job="there"),
            start(a_placement(OTHER, [1]), a_placement(NODE, [1]), job="both"),
        ]
    )
    assert forecast.observe()[3:] == [
        NodeLost(300, NODE.id),
        Ended(300, JobId("here"), 1, Outcome.LOST),
        Ended(300, JobId("both"), 1, Outcome.LOST),
    ]
    assert forecast.observe() == [NodeJoined(700, NODE)]
    assert forecast.observe() == [Ended(1_000, JobId("there"), 1, Outcome.SUCCEEDED)]
    assert forecast.is_over


def test_a_node_that_never_returns_stays_away() -> None:
    forecast = one_job(failures=((300, "m", None),))
    assert rest(forecast) == [NodeLost(300, OTHER.id)]


def test_after_a_loss_the_job_is_begun_anew_with_its_first_submit_time() -> None:
    scenario = a_scenario([NODE], [an_offer(a_job("j", at=5), 1_000)], failures=((600, "n", 900),))
    run = Run(scenario).to_the_end()
    assert end_of([event for event in run.events if not is_lost(event)]) == 1_900
    ended = [event for event in run.events if isinstance(event, Ended)]
    assert [(event.attempt, event.outcome) for event in ended] == [(1, Outcome.LOST), (2, Outcome.SUCCEEDED)]
    assert run.submit_times["j"] == {5}


def is_lost(event: Event) -> bool:
    return isinstance(event, Ended) and event.outcome is Outcome.LOST


@pytest.mark.parametrize(
    ("begins", "gone"),
    [pytest.param(None, True, id="never placed"), pytest.param(0, False, id="running by then")],
)
def test_an_owner_waits_so_long(begins: int | None, gone: bool) -> None:
    forecast = Forecast(a_scenario([NODE], [an_offer(a_job("j"), 9_000, patience=500)]))
    forecast.observe()
    if begins is not None:
        forecast.carry_out([start()])
    withdrawn = [event for event in rest(forecast) if isinstance(event, JobCancelled)]
    assert withdrawn == ([JobCancelled(500, JobId("j"))] if gone else [])


@pytest.mark.parametrize("placed", [True, False])
def test_a_job_of_no_patience_is_planned_for_once(placed: bool) -> None:
    forecast = Forecast(a_scenario([NODE], [an_offer(a_job("j"), 100, patience=0)]))
    assert [type(event) for event in forecast.observe()] == [NodeJoined, JobSubmitted]
    forecast.carry_out([start()] if placed else [])
    kinds = [type(event) for event in rest(forecast)]
    assert kinds == ([Started, Ended] if placed else [JobCancelled])


def test_a_job_that_is_over_is_not_withdrawn() -> None:
    forecast = Forecast(a_scenario([NODE], [an_offer(a_job("j"), 100, patience=500)]))
    forecast.observe()
    forecast.carry_out([start()])
    assert [type(event) for event in rest(forecast)] == [Started, Ended]


def test_what_happens_at_one_instant_comes_as_nodes_ends_withdrawals_arrivals() -> None:
    offers = [
        an_offer(a_job("ends"), 500),
        an_offer(a_job("withdrawn"), patience=500),
        an_offer(a_job("arrives", at=500)),
    ]
    forecast = Forecast(a_scenario([NODE, OTHER], offers, failures=((500, "m", None),)))
    forecast.observe()
    forecast.carry_out([start(job="ends")])
    kinds = [type(event) for event in forecast.observe()]
    assert kinds == [Started, NodeLost, Ended, JobCancelled, JobSubmitted]


@pytest.mark.parametrize(
    ("at", "wakes"),
    [
        pytest.param(50, 50, id="later"),
        pytest.param(0, 0, id="now"),
        pytest.param(-5, 0, id="in the past is now"),
    ],
)
def test_someone_who_wants_to_be_woken_is(at: int, wakes: int) -> None:
    forecast = one_job()
    forecast.wake_at(at)
    forecast.wake_at(at)
    assert forecast.observe() == []
    assert forecast.state.now == wakes
    assert forecast.is_over


def test_waking_does_not_hold_up_what_comes_after() -> None:
    scenario = a_scenario([NODE], [an_offer(a_job("j", at=100))])
    forecast = Forecast(scenario)
    forecast.wake_at(20)
    forecast.wake_at(10)
    seen = [(forecast.observe(), forecast.state.now) for _ in range(3)]
    assert [now for _, now in seen] == [10, 20, 100]
    assert [type(event) for event in seen[2][0]] == [JobSubmitted]


# --- the same again ----------------------------------------------------------------------------------


def test_a_snapshot_is_not_changed_by_going_on_from_it() -> None:
    forecast = one_job()
    forecast.carry_out([start()])
    snapshot = forecast.snapshot()
    scenario = a_scenario([NODE, OTHER], [an_offer(a_job("j"), 1_000)])
    futures = [rest(Forecast(scenario, snapshot)) for _ in range(2)]
    assert futures[0] == futures[1] == rest(forecast)
    assert futures[0] != []


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 25))
def test_going_on_from_a_snapshot_gives_the_same_events(random: Random, cut: int) -> None:
    run = Run(random_scenario(random))
    for _ in range(cut):
        run.turn()
    copy = run.restarted()
    assert copy.to_the_end().events == run.to_the_end().events


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_equal_scenarios_give_equal_events_and_time_never_goes_back(random: Random) -> None:
    scenario = random_scenario(random)
    first, second = (Run(scenario).to_the_end() for _ in range(2))
    assert first.events == second.events
    assert first.seen_at == sorted(first.seen_at)


def test_the_order_nodes_fail_in_does_not_depend_on_the_order_they_are_listed() -> None:
    failures = ((300, "m", 400), (100, "n", 200))
    first, second = (
        rest(Forecast(replace(scenario_of_two(), failures=order))) for order in (failures, failures[::-1])
    )
    assert first == second


def scenario_of_two() -> Scenario:
    return a_scenario([NODE, OTHER], [an_offer(a_job("j", a_request(1)))])
