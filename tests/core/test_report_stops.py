"""What stops cost, what was promised, who was passed over: counts and sums worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from aliquot.core.events import (
    Ended,
    Event,
    Evicting,
    Granted,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    Outcome,
    Resized,
    Resizing,
    Started,
    StartRefused,
)
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.inventory import CardModel
from aliquot.core.jobs import After, Bound, Elastic, Job, Stop
from aliquot.core.report.meter import Meter
from aliquot.core.report.scorecard import Scorecard, score
from aliquot.core.report.toll import Attempt, Toll, toll_of
from aliquot.core.steps import Cause
from aliquot.core.workload import Offer
from tests.support.build import a_job, a_node, a_placement, a_request, a_scenario

MIN = 60_000
NODE = a_node("n1", 8)
PAIR = (a_node("m1", 2), a_node("m2", 2))


def placed(slots: Sequence[int] = range(8)) -> tuple[Placement, ...]:
    return (a_placement(NODE, slots),)


def card_of(events: Sequence[Event], offers: Sequence[Offer] = (), end: int | None = None) -> Scorecard:
    meter = Meter(a_scenario([NODE], offers), window=(0, end))
    for event in events:
        meter.see(event)
    return score(meter.readings())


def count_of(card: Scorecard, failure: str) -> int | None:
    return next(found.count for found in card.failures if found.id == failure)


@pytest.mark.parametrize(
    ("more", "lost"),
    [
        pytest.param({"elastic": Elastic((4, 8), (1000, 1900))}, 0, id="an elastic job saves its work first"),
        pytest.param({}, 8 * 10, id="a gang loses what it did since its checkpoint"),
    ],
)
def test_what_a_job_loses_that_starts_again_at_another_width(more: dict[str, Any], lost: int) -> None:
    job = a_job("j", a_request(8), stop=Stop(checkpoint_ms=20 * MIN), **more)
    events = [
        Resizing(50 * MIN, job.id, 1, placed(range(4)), None, MIN) if isinstance(event, Evicting) else event
        for event in evicted(job)
    ]
    card = card_of([NodeJoined(0, NODE), *events])
    assert (card.resized, card.evicted, card.lost_work_card_minutes) == (1, 0, lost)


FAST = CardModel("fast", 80_000, gflops=(("bf16", 1_000_000), ("fp16", 500_000)))


def test_mfu_is_what_models_did_of_what_the_cards_held_for_them_could_do() -> None:
    """Of 8 x 1,000 TFLOP/s held for 2 h it did 4,000 for an hour; who reports nothing does not count."""
    node = a_node("f1", 16, model=FAST)
    silent = a_job("s", a_request(8))
    reports = a_job("r", a_request(8), queue="lab")
    there = {
        job.id: (a_placement(node, slots),) for job, slots in ((silent, range(8)), (reports, range(8, 16)))
    }
    events: list[Event] = [NodeJoined(0, node)]
    for job in (silent, reports):
        events += [JobSubmitted(0, job), Granted(0, job.id, 1, there[job.id]), Started(60 * MIN, job.id, 1)]
        events.append(Ended(120 * MIN, job.id, 1, Outcome.SUCCEEDED))
    events.sort(key=lambda event: event.at)
    offers = [Offer(silent, 60 * MIN), Offer(reports, 60 * MIN, gflops=4_000_000)]
    meter = Meter(a_scenario([node], offers))
    for event in events:
        meter.see(event)
    card = score(meter.readings())
    assert card.mfu == 0.25
    assert {queue.name: queue.scores.mfu for queue in card.queues} == {"lab": 0.25, "*": None}
    assert count_of(card, "mfu") == 0, "it ran at its own throughput; the cards just waited for it"


@pytest.mark.parametrize("model", [FAST, CardModel("unknown peak", 80_000)])
def test_mfu_is_unknown_without_reports_or_a_peak(model: CardModel) -> None:
    node = a_node("f1", 8, model=model)
    job = a_job("j", a_request(8))
    gflops = None if model is FAST else 4_000_000
    meter = Meter(a_scenario([node], [Offer(job, 60 * MIN, gflops=gflops)]))
    for event in [
        NodeJoined(0, node), JobSubmitted(0, job), Granted(0, job.id, 1, (a_placement(node, range(8)),)),
        Started(0, job.id, 1), Ended(60 * MIN, job.id, 1, Outcome.SUCCEEDED),
    ]:  # fmt: skip  # one list, not one a line
        meter.see(event)
    card = score(meter.readings())
    assert (card.mfu, count_of(card, "mfu")) == (None, None)


def test_a_site_is_crowded_while_its_cards_are_busy_and_somebody_waits() -> None:
    """Eight cards are in use from 0 to 90 min, which counts from 10 on; from 20 on a job of lab waits."""
    first, second = a_job("f", a_request(8)), a_job("s", a_request(8), at=20 * MIN, queue="lab")
    events: list[Event] = [
        NodeJoined(0, NODE), JobSubmitted(0, first),
        Granted(0, first.id, 1, placed()), Started(0, first.id, 1),
        JobSubmitted(20 * MIN, second), Ended(90 * MIN, first.id, 1, Outcome.SUCCEEDED),
        Granted(90 * MIN, second.id, 1, placed()), Started(90 * MIN, second.id, 1),
        Ended(200 * MIN, second.id, 1, Outcome.SUCCEEDED),
    ]  # fmt: skip  # by time
    card = card_of(events)
    assert card.crowd_ms == 70 * MIN
    assert {queue.name: queue.crowd_ms for queue in card.queues} == {"lab": 70 * MIN, "*": 0}


@pytest.mark.parametrize(
    ("attempt", "at", "start", "stopped", "toll"),
    [
        pytest.param(
            Attempt(1000, 0, 0, 50, 0, 20), 50, 0, True, Toll(50_000, 0, 0, 10_000, 40),
            id="since its checkpoint",
        ),
        pytest.param(
            Attempt(1000, 0, 0, 50, 0, None), 50, 0, True, Toll(50_000, 0, 0, 50_000, 0),
            id="all, without any",
        ),
        pytest.param(
            Attempt(1000, 0, 0, 50, 0, 20), 50, 0, False, Toll(50_000, 0, 0, 0, 50),
            id="nothing at a usual end",
        ),
        pytest.param(
            Attempt(2000, 0, 10, 50, 7, 20), 65, 0, True, Toll(130_000, 30_000, 14_000, 6_000, 40),
            id="ten before it ran, seven restarting, three of work, five while it ended",
        ),
        pytest.param(
            Attempt(1000, 0, 10, 5, 7, 20), 15, 0, True, Toll(15_000, 10_000, 5_000, 0, 0),
            id="while it restarts",
        ),
        pytest.param(
            Attempt(1000, 0, None, None, 0, 20), 15, 0, True, Toll(15_000, 15_000, 0, 0, 0),
            id="it never ran",
        ),
        pytest.param(
            Attempt(1000, 0, 0, 50, 0, 20), 50, 45, True, Toll(5_000, 0, 0, 5_000, 40),
            id="inside the window",
        ),
        pytest.param(
            Attempt(1000, 0, 5, None, 0, 20), 50, 0, False, Toll(50_000, 5_000, 0, 0, 45),
            id="it runs still",
        ),
    ],
)  # fmt: skip  # a table reads by columns
def test_what_an_attempt_held_in_vain(
    attempt: Attempt, at: int, start: int, stopped: bool, toll: Toll
) -> None:
    assert toll_of(attempt, at, start, stopped=stopped) == toll


def evicted(job: Job, cause: Cause = Cause.RECLAIM, for_job: str | None = None) -> list[Event]:
    """Runs 50 min, is stopped, ends 1 min later, waits 9 min, restarts and is done 30 min after."""
    beneficiary = None if for_job is None else JobId(for_job)
    return [
        JobSubmitted(0, job),
        Granted(0, job.id, 1, placed()),
        Started(0, job.id, 1),
        Evicting(50 * MIN, job.id, 1, cause, beneficiary, MIN),
        Ended(51 * MIN, job.id, 1, Outcome.FAILED),
        Granted(60 * MIN, job.id, 2, placed()),
        Started(60 * MIN, job.id, 2),
        Ended(90 * MIN, job.id, 2, Outcome.SUCCEEDED),
    ]


def test_an_eviction_in_the_scorecard() -> None:
    job = a_job("j", a_request(8), stop=Stop(checkpoint_ms=20 * MIN, restart_ms=5 * MIN))
    card = card_of([NodeJoined(0, NODE), *evicted(job)])
    assert (card.evicted, card.evicted_by_cause, card.lost, card.failed) == (1, {"reclaim": 1}, 0, 0)
    assert card.lost_work_card_minutes == 8 * 10  # 50 min, saved at 20 and 40
    assert card.restart_card_minutes == 8 * 5
    assert card.unready_card_minutes == 8 * 1  # while it ended
    assert card.goodput == pytest.approx((51 + 30 - 10 - 5 - 1) / (51 + 30))
    assert (card.wait_mean_ms, card.wait_again_ms) == (0, 9 * MIN)
    assert card.slowdown == pytest.approx(90 / (40 + 25))  # the work that stayed
    assert (card.evicted_again, card.recovery_ms) == (0, None)


def test_who_ends_well_within_its_grace_has_lost_nothing() -> None:
    job = a_job("j", a_request(8))
    events = evicted(job)[:4]
    card = card_of([NodeJoined(0, NODE), *events, Ended(51 * MIN, job.id, 1, Outcome.SUCCEEDED)])
    assert (card.finished, card.evicted, card.goodput, card.lost_work_card_minutes) == (1, 0, 1.0, 0)


def test_a_job_of_another_queue_and_a_second_eviction_are_counted() -> None:
    victim, other = a_job("j", a_request(8), queue="a"), a_job("o", a_request(8), queue="b", seq=1)
    events: list[Event] = [
        NodeJoined(0, NODE),
        JobSubmitted(0, other),
        *evicted(victim, Cause.SPOT, "o")[:-1],
    ]
    events += [
        Evicting(70 * MIN, victim.id, 2, Cause.PRIORITY),
        Ended(70 * MIN, victim.id, 2, Outcome.FAILED),
    ]
    card = card_of(events)
    assert card.evicted_by_cause == {"priority": 1, "spot": 1}
    assert (card.evicted_again, count_of(card, "taken-by-others"), card.waiting) == (1, 1, 2)


def test_giving_up_an_evicted_job_ends_it() -> None:
    job = a_job("j", a_request(8))
    card = card_of([NodeJoined(0, NODE), *evicted(job)[:4], JobCancelled(51 * MIN, job.id),
                    Ended(51 * MIN, job.id, 1, Outcome.FAILED)])  # fmt: skip  # one story
    assert (card.evicted, card.waiting, card.cancelled) == (0, 0, 1)


def test_a_lost_node_costs_the_work_and_the_time_to_recover() -> None:
    job = a_job("j", a_request(8))
    card = card_of(
        [
            NodeJoined(0, NODE),
            JobSubmitted(0, job),
            Granted(0, job.id, 1, placed()),
            Started(0, job.id, 1),
            Ended(30 * MIN, job.id, 1, Outcome.LOST),
            Granted(31 * MIN, job.id, 2, placed()),
            StartRefused(32 * MIN, job.id, 2, "busy"),
            Granted(34 * MIN, job.id, 3, placed()),
            Started(40 * MIN, job.id, 3),
        ],
        end=60 * MIN,
    )
    assert (card.lost, card.refused, card.lost_work_card_minutes) == (1, 1, 8 * 30)
    assert card.unready_card_minutes == 8 * (1 + 6)
    assert card.goodput == pytest.approx(20 / (30 + 1 + 26))
    assert count_of(card, "lost") == 1


def test_a_change_of_width_pauses_and_loses_nothing() -> None:
    job = a_job("j", a_request(8), stop=Stop(restart_ms=5 * MIN))
    card = card_of(
        [
            NodeJoined(0, NODE),
            JobSubmitted(0, job),
            Granted(0, job.id, 1, placed(range(2))),
            Started(0, job.id, 1),
            Resized(30 * MIN, job.id, 1, placed(range(4))),
            Started(30 * MIN, job.id, 1),
            Ended(60 * MIN, job.id, 1, Outcome.SUCCEEDED),
        ]
    )
    assert (card.resized, card.attempts, card.restart_card_minutes, card.lost_work_card_minutes) == (
        1,
        1,
        20,
        0,
    )
    assert card.goodput == pytest.approx((60 + 120 - 20) / (60 + 120))
    assert card.allocated_card_hours == pytest.approx(3)


@pytest.mark.parametrize(
    ("bound", "start", "end", "kept"),
    [
        pytest.param(Bound(start_by_ms=10), 10, 20, (1.0, None), id="in time to the millisecond"),
        pytest.param(Bound(start_by_ms=9), 10, 20, (0.0, None), id="started late"),
        pytest.param(Bound(finish_by_ms=20), 10, 20, (None, 1.0), id="done in time"),
        pytest.param(Bound(10, 19), 10, 20, (1.0, 0.0), id="in time, done late"),
        pytest.param(Bound(start_by_ms=90), None, None, (None, None), id="waits, not due yet"),
        pytest.param(
            Bound(start_by_ms=50, finish_by_ms=60), None, None, (0.0, 0.0), id="waits and is overdue"
        ),
        pytest.param(Bound(finish_by_ms=60), 10, None, (None, 0.0), id="runs and is overdue"),
        pytest.param(Bound(), 10, 20, (None, None), id="nothing was promised"),
    ],
)
def test_promises(bound: Bound, start: int | None, end: int | None, kept: tuple[Any, Any]) -> None:
    job = a_job("j", a_request(8), bound=bound)
    events: list[Event] = [NodeJoined(0, NODE), JobSubmitted(0, job)]
    if start is not None:
        events += [Granted(start, job.id, 1, placed()), Started(start, job.id, 1)]
    if end is not None:
        events += [Ended(end, job.id, 1, Outcome.SUCCEEDED)]
    card = card_of(events, end=80)
    assert (card.start_by_met, card.finish_by_met) == kept
    assert count_of(card, "late") == sum(share == 0 for share in kept)


def test_a_withdrawn_job_missed_nothing() -> None:
    job = a_job("j", a_request(8), bound=Bound(5, 5))
    card = card_of([NodeJoined(0, NODE), JobSubmitted(0, job), JobCancelled(50, job.id)], end=80)
    assert (card.start_by_met, card.finish_by_met, card.withdrawn) == (None, None, 1)


@pytest.mark.parametrize(
    ("higher", "lower", "count"),
    [
        pytest.param({"priority": 5}, {}, 1, id="an equal request of higher priority waits"),
        pytest.param({"priority": 5, "queue": "x"}, {}, 0, id="in another queue"),
        pytest.param({"priority": 5, "cards": 4}, {}, 0, id="it needs more"),
        pytest.param({"priority": 5}, {"priority": 5}, 0, id="of equal priority"),
        pytest.param(
            {"priority": 5, "after": (After(JobId("nobody")),)}, {}, 0, id="it waits for another job"
        ),
    ],
)
def test_priority_inversions(higher: dict[str, Any], lower: dict[str, Any], count: int) -> None:
    jobs = (a_job("high", **higher), a_job("low", seq=1, **lower))
    events: list[Event] = [NodeJoined(0, NODE), *(JobSubmitted(0, job) for job in jobs)]
    card = card_of([*events, Granted(1, JobId("low"), 1, placed((0,)))])
    assert count_of(card, "inversions") == count


def test_a_job_is_scattered_only_if_it_waited_for_it() -> None:
    wide, narrow = a_job("wide", a_request(2)), (a_job("a", seq=1), a_job("b", seq=2))
    meter = Meter(a_scenario(PAIR, ()), window=(0, 100))
    events: list[Event] = [*(NodeJoined(0, node) for node in PAIR), *(JobSubmitted(0, job) for job in narrow)]
    events += [
        Granted(0, job.id, 1, (a_placement(node, (0,)),)) for job, node in zip(narrow, PAIR, strict=True)
    ]
    events += [JobSubmitted(10, wide), Ended(30, narrow[0].id, 1, Outcome.SUCCEEDED)]
    events += [Granted(40, wide.id, 1, (a_placement(PAIR[0], (0, 1)),))]
    for event in events:
        meter.see(event)
    card = score(meter.readings())
    assert (count_of(card, "scattered"), card.scattered_ms) == (1, 20)


def test_a_crowd_of_an_instant_is_no_queue() -> None:
    jobs = [a_job(f"j{at}", seq=at) for at in range(3)]
    events: list[Event] = [NodeJoined(0, NODE), *(JobSubmitted(0, job) for job in jobs)]
    events += [Granted(0, jobs[0].id, 1, placed((0,))), Granted(9, jobs[1].id, 1, placed((1,)))]
    assert count_of(card_of(events, end=20), "queue-peak") == 2


def test_what_cannot_be_counted_is_unknown() -> None:
    card = card_of([NodeJoined(0, NODE)], end=10)
    unknown = {found.id for found in card.failures if found.count is None}
    assert unknown == {"slowed", "mfu", "out-of-memory", "short-of-quota", "spread", "interference"}
    assert (card.mfu, card.goodput, card.jain, card.quota_satisfaction) == (None, None, None, None)


def test_finish_time_fairness_by_hand() -> None:
    """Two jobs want all cards for an hour each: the first is done before it would be with its half."""
    jobs = [a_job(f"j{at}", a_request(8), seq=at) for at in range(2)]
    hour = 60 * MIN
    events: list[Event] = [NodeJoined(0, NODE), *(JobSubmitted(0, job) for job in jobs)]
    for at, job in enumerate(jobs):
        events += [Granted(at * hour, job.id, 1, placed()), Started(at * hour, job.id, 1)]
        events += [Ended((at + 1) * hour, job.id, 1, Outcome.SUCCEEDED)]
    card = card_of(events)
    # contention 2 while both are there, then 1: the second has 1.5 on average and took 2 h of 1.5 h
    assert card.rho_mean == pytest.approx((0.5 + 2 / 1.5) / 2, abs=1e-3)
    assert card.rho_p95 == 1.333
    assert card.unfair == 0.5
