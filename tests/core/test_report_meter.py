"""The meter against the world: every integral is what the world's own tables add up to, interval by interval.

The world is read anew after each event, so the oracle knows nothing of the meter's bookkeeping.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.columns import CHUNK
from aliquot.core.events import (
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    NodeLost,
    Outcome,
    Started,
    StartRefused,
)
from aliquot.core.grants import Grant, Placement
from aliquot.core.ids import JobId
from aliquot.core.inventory import accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import company_milli
from aliquot.core.report.fragmentation import measure, prepare
from aliquot.core.report.meter import Meter
from aliquot.core.report.readings import Readings, WindowRule
from aliquot.core.report.scorecard import score
from aliquot.core.units import FULL
from aliquot.core.workload import Offer, Scenario
from aliquot.core.world import World
from tests.support.build import a_job, a_node, a_placement, a_scenario
from tests.support.histories import REQUESTS, History

MIX: tuple[tuple[Request, int], ...] = tuple((request, 1) for members in REQUESTS for request in members)


class Oracle:
    """Adds up the world's tables between events."""

    def __init__(self, offers: dict[JobId, Offer]) -> None:
        self.world = World()
        self.offers = offers
        self.at = 0
        self.sums: dict[str, int] = {}
        self.demand = prepare(MIX, ())
        self.kinds = 0

    def see(self, event: Event) -> None:
        for name, value in self.now().items():
            self.sums[name] = self.sums.get(name, 0) + value * max(0, event.at - self.at)
        self.at = max(event.at, self.at)
        self.world.apply(event)

    def now(self) -> dict[str, int]:
        world = self.world
        up = [record for record in world.nodes.values() if record.up]
        booked: dict[str, int] = {}
        busy = dark = memory = 0
        for job, held in world.grants.items():
            running = world.jobs[job].phase is Phase.RUNNING
            offer = self.offers.get(job)
            activity = activity_of(offer, held) if offer else None
            if offer is not None and activity is not None:
                activity = activity * company_milli(offer.job, self.workers(job)) // FULL
            for grant in held:
                if grant.seat is None:
                    continue
                cards = grant.seat.mask.bit_count()
                memory += cards * grant.seat.vector.memory
                if running and activity is None:
                    dark += cards * grant.seat.vector.compute
                elif running and activity is not None:
                    busy += cards * activity
                for card in grant.placement.cards:
                    if card in world.nodes[grant.placement.node].index_of:
                        booked[card] = booked.get(card, 0) + grant.seat.vector.compute
        if len(world.kinds) != self.kinds:
            self.kinds, self.demand = len(world.kinds), prepare(MIX, world.kinds)
        reading = measure(world.ledger.chunks, self.demand)
        return {
            "up_milli": FULL * sum(len(record.node.cards) for record in up),
            "lost_milli": FULL * sum(len(r.node.cards) for r in world.nodes.values() if not r.up),
            "booked_milli": sum(booked.values()),
            "booked_mib": memory,
            "busy_milli": busy,
            "dark_milli": dark,
            "idle_cards": sum(card.uuid not in booked for record in up for card in record.node.cards),
            "free_cards": reading.free_cards,
            "largest_cards": reading.largest_cards,
            "stranded_cards": reading.stranded_cards,
            "waiting_jobs": len(world.freeze().pending),
            **self.widest_waiting(),
        }

    def widest_waiting(self) -> dict[str, int]:
        """What the widest waiting whole-card request finds: enough on a node, enough in all, or too few."""
        world = self.world
        found: list[tuple[int, int, int, bool]] = []
        for _, _, _, job in world.freeze().pending:
            if world.jobs[job].waits_for:
                continue  # nothing free could let it start
            for request in world.jobs[job].job.members:
                if not request.whole:
                    continue
                free = [
                    int(world.ledger.readable(record.row)[0].idle[record.row % CHUNK]).bit_count()
                    for record in world.nodes.values()
                    if any(accepts(request.profile, card.model) for card in record.node.cards)
                ]
                fits = any(count >= request.cards for count in free)
                if request.cards <= self.most_cards(request):
                    found.append((request.cards, not fits, sum(free), fits))
        width, _, free_cards, fits = max(found, default=(0, False, 0, False))
        scattered = width > 0 and not fits and free_cards >= width
        return {
            "blocked_cards": free_cards if scattered else 0,
            "scattered": int(scattered),
            "crowded": int(width > 0 and not fits and free_cards < width),
            "held_back": int(width > 0 and fits),
        }

    def workers(self, job: JobId) -> list[Job]:
        """Who runs on the cards of `job`, itself included."""
        group = (self.world.jobs[other] for other in self.world.freeze().company.get(job, ()))
        return [record.job for record in group if record.phase is Phase.RUNNING]

    def most_cards(self, request: Request) -> int:
        """The most cards any kind of node seen so far has."""
        kinds = [kind.cards for kind in self.world.kinds]
        return max(
            (len(cards) for cards in kinds if any(accepts(request.profile, card) for card in cards)),
            default=0,
        )


def activity_of(offer: Offer, held: tuple[Grant, ...]) -> int | None:
    """An elastic job four times as wide and three times as fast keeps each card three quarters as busy."""
    elastic, busy = offer.job.elastic, offer.busy_milli
    if elastic is None or busy is None:
        return busy
    gang = len(offer.job.members) > 1
    width = len(held) if gang else sum(len(grant.placement.cards) for grant in held)
    return busy * elastic.speed(width) * elastic.widths[0] // (1000 * max(1, width))


def offers_of(events: list[Event]) -> dict[JobId, Offer]:
    """Every third job's activity is unknown, the others have theirs."""
    jobs = [event.job for event in events if isinstance(event, JobSubmitted)]
    return {
        job.id: Offer(job, busy_milli=None if at % 3 == 0 else 100 * (at % 9)) for at, job in enumerate(jobs)
    }


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_every_integral_is_the_sum_over_the_intervals_of_the_world(seed: int) -> None:
    events = History(Random(seed)).run(60).events
    offers = offers_of(events)
    requests = tuple(a_job(f"mix{at}", request) for at, (request, _) in enumerate(MIX))
    scenario = Scenario("history", (), (*offers.values(), *(Offer(job) for job in requests)), ())
    meter, oracle = Meter(scenario, window=(0, max(event.at for event in events))), Oracle(offers)
    for event in events:
        oracle.see(event)
        meter.see(event)
        assert meter.sums.booked_milli.value == oracle.now()["booked_milli"], event
    readings = meter.readings()
    assert {name: getattr(readings.totals, name) for name in oracle.sums} == oracle.sums
    assert classes_add_up(readings)
    assert times_match(readings, oracle.world)


def classes_add_up(readings: Readings) -> bool:
    totals, cells = readings.totals, readings.cells
    card = score(readings)
    booked = sum(cell.booked_milli for cell in cells)
    by_class = [getattr(card.per_class, way) for way in ("stage", "queue", "width")]
    return (
        booked == totals.booked_milli == sum(milli for _, milli in readings.card_milli_ms)
        and sum(cell.busy_milli for cell in cells) == totals.busy_milli
        and sum(cell.dark_milli for cell in cells) == totals.dark_milli
        and all(sum(part.jobs for part in parts) == card.jobs for parts in by_class)
        and all(sum(part.placed for part in parts) == card.placed for parts in by_class)
        and all(sum(part.waiting for part in parts) == card.waiting for parts in by_class)
    )


def times_match(readings: Readings, world: World) -> bool:
    """Every submitted job is somewhere, and those not over are the world's."""
    cells = readings.cells
    over = sum(cell.finished + cell.failed + cell.cancelled + cell.withdrawn for cell in cells)
    return sum(cell.submitted for cell in cells) == over + len(world.jobs)


NODE = a_node("n1", 2)


def granted(world: list[Event], job: str, at: int, attempt: int = 1, slots: tuple[int, ...] = (0,)) -> None:
    world.append(Granted(at, JobId(job), attempt, (a_placement(NODE, slots),)))


def read(events: list[Event], offers: tuple[Offer, ...] = (), end: int | None = None) -> Readings:
    meter = Meter(a_scenario([NODE], offers), window=(0, end))
    for event in events:
        meter.see(event)
    return meter.readings()


def test_a_wait_ends_with_the_first_start_and_a_lost_attempt_adds_none() -> None:
    events: list[Event] = [NodeJoined(0, NODE), JobSubmitted(1_000, a_job("j", at=1_000))]
    granted(events, "j", 4_000)
    events += [Started(5_000, JobId("j"), 1), Ended(9_000, JobId("j"), 1, Outcome.LOST)]
    granted(events, "j", 20_000, attempt=2)
    events += [Started(21_000, JobId("j"), 2), Ended(30_000, JobId("j"), 2, Outcome.SUCCEEDED)]
    (cell,) = read(events).cells
    assert (cell.waits, cell.runs, cell.turnarounds) == ((4_000,), (9_000,), (29_000,))
    assert (cell.attempts, cell.lost, cell.placed, cell.finished) == (2, 1, 1, 1)


def test_a_job_still_waiting_has_no_wait_and_is_counted_apart() -> None:
    readings = read([NodeJoined(0, NODE), JobSubmitted(1_000, a_job("j", at=1_000)), NodeJoined(7_000, NODE)])
    card = score(readings)
    assert (card.waiting, card.waiting_oldest_ms, card.wait_mean_ms, card.makespan_ms) == (
        1,
        6_000,
        None,
        None,
    )


def test_giving_up_before_and_after_placement_are_told_apart() -> None:
    events: list[Event] = [NodeJoined(0, NODE)]
    events += [JobSubmitted(0, a_job(name, seq=at)) for at, name in enumerate(("early", "late"))]
    granted(events, "late", 0)
    events += [JobCancelled(5, JobId("early")), JobCancelled(6, JobId("late"))]
    events += [Ended(7, JobId("late"), 1, Outcome.FAILED)]
    card = score(read(events))
    assert (card.withdrawn, card.cancelled, card.failed) == (1, 1, 0)


def test_a_refused_start_holds_its_card_only_until_it_is_refused() -> None:
    events: list[Event] = [NodeJoined(0, NODE), JobSubmitted(0, a_job("j"))]
    granted(events, "j", 1_000)
    events += [StartRefused(4_000, JobId("j"), 1, "busy")]
    readings = read(events, end=10_000)
    assert readings.totals.booked_milli == 3_000 * FULL
    assert score(readings).refused == 1


def test_cards_of_a_lost_node_are_neither_capacity_nor_idle() -> None:
    readings = read([NodeJoined(0, NODE), NodeLost(4_000, NODE.id), NodeJoined(6_000, NODE)], end=10_000)
    totals = readings.totals
    assert (totals.up_milli, totals.lost_milli, totals.idle_cards) == (16_000_000, 4_000_000, 16_000)


def test_unknown_activity_is_unknown_and_not_idle() -> None:
    jobs = (a_job("known"), a_job("dark", seq=1))
    events: list[Event] = [NodeJoined(0, NODE), *(JobSubmitted(0, job) for job in jobs)]
    granted(events, "known", 0, slots=(0,))
    granted(events, "dark", 0, slots=(1,))
    events += [Started(0, job.id, 1) for job in jobs]
    offers = (Offer(jobs[0], busy_milli=800), Offer(jobs[1]))
    card = score(read(events, offers, end=1_000))
    assert (card.utilisation, card.utilisation_allocated, card.activity_unknown) == (None, 0.8, 0.5)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        pytest.param((0, None), 9_000, id="up to the last completion"),
        pytest.param((0, 6_000), 4_000, id="a given end cuts what runs beyond it"),
        pytest.param((5_000, None), 6_000, id="a given start leaves out what was before"),
        pytest.param((5_000, 8_000), 3_000, id="both"),
    ],
)
def test_windows_cut_the_sums(window: tuple[int, int | None], expected: int) -> None:
    events: list[Event] = [NodeJoined(0, NODE), JobSubmitted(0, a_job("j"))]
    granted(events, "j", 2_000)
    events += [Started(2_000, JobId("j"), 1), Ended(11_000, JobId("j"), 1, Outcome.SUCCEEDED)]
    events += [NodeJoined(50_000, NODE)]
    meter = Meter(a_scenario([NODE], ()), window=window)
    for event in events:
        meter.see(event)
    readings = meter.readings()
    assert readings.totals.booked_milli == expected * FULL
    assert readings.window.rule is (WindowRule.GIVEN if window[1] else WindowRule.LAST_COMPLETION)
    assert readings.window.end_ms == (window[1] or 11_000)


def test_half_the_speed_is_half_the_activity() -> None:
    nodes = (a_node("a", 1), a_node("b", 1))
    job = a_job("wide", (a_job("x").members[0],) * 2)
    places: tuple[Placement, ...] = tuple(a_placement(node, (0,)) for node in nodes)
    scenario = a_scenario(nodes, [Offer(job, busy_milli=900, linked=True)])
    meter = Meter(scenario, window=(0, 1_000))
    for event in (
        *(NodeJoined(0, node) for node in nodes),
        JobSubmitted(0, job),
        Granted(0, job.id, 1, places),
        Started(0, job.id, 1),
    ):
        meter.see(event)
    assert (
        score(meter.readings()).utilisation == 0.45
    )  # 900 at 500 milli of full speed: the network joins them
