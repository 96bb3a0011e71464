"""What the charts are drawn from: exact, bounded, and still true after columns were joined."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.events import (
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    Outcome,
    Started,
)
from aliquot.core.ids import JobId
from aliquot.core.report.charts import WAIT_EDGES_MS, RowUnit, Timeline
from aliquot.core.report.observation import Observation
from aliquot.core.report.raster import Raster
from aliquot.core.report.result import RunResult
from aliquot.core.report.timeline import HEAT_ROWS, MOST_BARS
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World
from tests.support.build import a_job, a_node, a_placement, a_request, a_scenario
from tests.support.histories import History


def watched(scenario: Scenario, events: list[Event], *, by_load: bool = False) -> RunResult:
    seen, world = Observation(scenario, by_load=by_load), World()
    for event in events:
        world.apply(event)
        seen.see((event,), world)
    return seen.result("test")


def timeline_of(result: RunResult) -> Timeline:
    assert result.timeline is not None
    return result.timeline


@settings(max_examples=80, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5), st.integers(0, 40_000)), max_size=30),
    rest=st.integers(0, 90_000),
)
def test_a_raster_keeps_every_integral_however_often_it_joins(
    changes: list[tuple[int, int, int]], rest: int
) -> None:
    raster = Raster(4, columns=8, width_ms=10)
    at, values, sums = 0, [0] * 4, [0] * 4
    for row, delta, wait in changes:
        sums = [total + value * wait for total, value in zip(sums, values, strict=True)]
        at += wait
        raster.add(row, delta, at)
        values[row] += delta
    cells = raster.read(at + rest)
    assert cells.sum(axis=0).tolist() == [s + v * rest for s, v in zip(sums, values, strict=True)]
    assert len(cells) <= 9
    assert len(cells) == -(-(at + rest) // raster.width_ms)


def test_an_odd_number_of_columns_cannot_be_joined_in_pairs() -> None:
    with pytest.raises(ValueError, match="7"):
        Raster(1, columns=7)


def a_run(seconds: int = 600) -> list[Event]:
    """Two cards; one is held from 60 s to the end."""
    node = a_node("n", 2)
    job = a_job("long", at=30_000)
    return [
        NodeJoined(0, node),
        JobSubmitted(30_000, job),
        Granted(60_000, job.id, 1, (a_placement(node, (1,)),)),
        Started(60_000, job.id, 1),
        Ended(seconds * 1000, job.id, 1, Outcome.SUCCEEDED),
    ]


def test_the_heat_map_has_a_row_a_card_and_says_when_it_was_booked() -> None:
    heat = timeline_of(watched(a_scenario([a_node("n", 2)], ()), a_run())).heat
    assert (heat.unit, heat.rows) == (RowUnit.CARD, ("n / 0", "n / 1"))
    assert set(heat.cells[0]) == {0}
    booked = sum(cell * heat.width_ms for cell in heat.cells[1] if cell is not None)
    assert booked == pytest.approx(1000 * 540_000, rel=1e-3)  # cells are rounded to thousandths
    assert heat.cells[1][0] == 0
    assert heat.cells[1][-1] == 1000


def test_the_course_shows_allocation_and_waiting() -> None:
    course = timeline_of(watched(a_scenario([a_node("n", 2)], ()), a_run())).course
    assert (course.allocation[0], course.allocation[-1]) == (0, 500)
    assert max(course.waiting) == 1
    assert sum(course.waiting) * course.width_ms == 30_000


def test_large_sites_share_rows() -> None:
    nodes = tuple(a_node(f"n{at}", 2) for at in range(300))
    heat = timeline_of(watched(a_scenario(nodes, ()), [NodeJoined(0, node) for node in nodes])).heat
    assert heat.unit is RowUnit.NODES
    assert len(heat.rows) <= HEAT_ROWS
    assert heat.rows[0] == "n0 +1"


def test_the_gantt_keeps_the_first_jobs_and_counts_the_rest() -> None:
    events: list[Event] = [NodeJoined(0, a_node("n", 1))]
    events += [JobSubmitted(0, a_job(f"j{at}", seq=at)) for at in range(MOST_BARS + 5)]
    gantt = timeline_of(watched(a_scenario([a_node("n", 1)], ()), events)).gantt
    assert (len(gantt.bars), gantt.left_out) == (MOST_BARS, 5)


def test_a_bar_has_a_segment_for_each_attempt() -> None:
    node = a_node("n", 1)
    events: list[Event] = [NodeJoined(0, node), JobSubmitted(0, a_job("j"))]
    for attempt, outcome in ((1, Outcome.LOST), (2, Outcome.SUCCEEDED)):
        start = attempt * 10_000
        events += [
            Granted(start, JobId("j"), attempt, (a_placement(node, (0,)),)),
            Started(start, JobId("j"), attempt),
            Ended(start + 5_000, JobId("j"), attempt, outcome),
        ]
    (bar,) = timeline_of(watched(a_scenario([node], ()), events)).gantt.bars
    assert [(part.start_ms, part.end_ms) for part in bar.segments] == [(10_000, 15_000), (20_000, 25_000)]
    assert (bar.started_ms, bar.end_ms, bar.outcome) == (10_000, 25_000, "succeeded")


def test_waits_are_binned_below_their_edges() -> None:
    node = a_node("n", 4)
    events: list[Event] = [NodeJoined(0, node)]
    waits = (0, 999, 1_000, 10_000_000_000)
    events += [JobSubmitted(0, a_job(f"j{at}", seq=at)) for at in range(4)]
    for at, wait in enumerate(waits):
        events += [
            Granted(wait, JobId(f"j{at}"), 1, (a_placement(node, (at,)),)),
            Started(wait, JobId(f"j{at}"), 1),
        ]
    bins = timeline_of(watched(a_scenario([node], ()), events)).waits
    assert (bins.counts[0], bins.counts[1], bins.counts[-1], sum(bins.counts)) == (2, 1, 1, 4)
    assert len(bins.counts) == len(WAIT_EDGES_MS) + 1


def test_allocation_by_offered_load_is_the_mean_over_the_arrivals_of_a_percent() -> None:
    """Ten cards, arrivals of one card: 10 %, 20 %, ...; the third is turned away."""
    node = a_node("n", 10)
    offers = [Offer(a_job(f"j{at}", a_request(1), at=at, seq=at)) for at in range(4)]
    events: list[Event] = [NodeJoined(0, node)]
    for at, offer in enumerate(offers):
        events.append(JobSubmitted(at, offer.job))
        if at == 2:
            events.append(JobCancelled(at, offer.job.id))
        else:
            events.append(Granted(at, offer.job.id, 1, (a_placement(node, (at,)),)))
    load = timeline_of(watched(a_scenario([node], offers), events, by_load=True)).load
    assert [(point.percent, point.allocation) for point in load] == [
        (10, 0.1),
        (20, 0.2),
        (30, 0.2),
        (40, 0.3),
    ]
    assert all(point.fragmentation is not None for point in load)


def test_arrivals_of_one_instant_count_as_if_one_after_the_other() -> None:
    node = a_node("n", 10)
    offers = [Offer(a_job(f"j{at}", a_request(1), seq=at)) for at in range(3)]
    events: list[Event] = [NodeJoined(0, node), *(JobSubmitted(0, offer.job) for offer in offers)]
    events += [Granted(0, JobId(f"j{at}"), 1, (a_placement(node, (at,)),)) for at in (0, 2)]
    result = watched(a_scenario([node], offers), events, by_load=True)
    shown = [(point.percent, point.allocation) for point in timeline_of(result).load]
    assert shown == [(10, 0.1), (20, 0.1), (30, 0.2)]
    assert (result.scorecard.allocation_full, result.scorecard.allocation_last) == (None, 0.2)


def test_a_result_goes_through_json_and_back() -> None:
    events = History(Random(3)).run(60).events
    result = watched(Scenario("history", (), (), ()), events)
    assert msgspec.json.decode(msgspec.json.encode(result), type=RunResult) == result
