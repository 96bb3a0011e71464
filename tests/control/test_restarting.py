"""Widths that change by stop and start, through the loop in virtual time: nothing sticks, all is counted."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from aliquot.control.loop import Loop
from aliquot.core.events import Ended, Event, Granted, JobSubmitted, Outcome, Resized, Resizing, Started
from aliquot.core.forecast import Forecast
from aliquot.core.grants import Placement
from aliquot.core.jobs import Elastic, Stop
from aliquot.core.report.meter import Meter
from aliquot.core.settings import ElasticRules, Preemption, Settings
from aliquot.core.workload import Offer
from aliquot.engines.sim.journal import MemoryJournal
from tests.support.build import a_job, a_node, a_request, a_scenario, an_offer
from tests.support.invariants import broken_rules
from tests.support.planning import settings

NODE = a_node("n", 8)
LINEAR = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
GANG = Elastic((1, 2, 4), (1000, 1900, 3500))
RULES = ElasticRules(dwell_ms=1_000, change_milli=20)
SECOND = 1_000


class Told(NamedTuple):
    """All that was recorded, and what the meter made of it."""

    events: list[Event]
    meter: Meter


def run(offers: list[Offer], how: Settings) -> Told:
    """To the end; the rules of every world hold after each turn."""
    scenario = a_scenario([NODE], offers)
    ahead, journal = Forecast(scenario), MemoryJournal()
    meter = Meter(scenario, window=(0, 10_000_000))
    loop = Loop(ahead, ahead, journal, how)
    for _ in range(3_000):
        happened = loop.turn()
        assert broken_rules(loop.world.freeze()) == []
        if not happened and ahead.is_over:
            break
    events = list(journal.replay())
    for event in events:
        meter.see(event)
    return Told(events, meter)


def ends(told: Told) -> dict[str, int]:
    """When each job was done."""
    done = (event for event in told.events if isinstance(event, Ended))
    return {event.job: event.at for event in done if event.outcome is Outcome.SUCCEEDED}


def growing(in_place: bool) -> Told:
    """`e` has 100 s of work, and one card beside a job of seven that ends after 20 s; then it has eight."""
    stop = Stop(restart_ms=10 * SECOND, stop_ms=4 * SECOND)
    offers = [
        an_offer(a_job("r", cards=7), 20 * SECOND),
        an_offer(a_job("e", cards=8, seq=1, elastic=LINEAR, stop=stop), 100 * SECOND),
    ]
    return run(offers, settings(elastic=RULES, resizes_in_place=in_place))


def test_grace_and_restart_are_counted_and_no_work_is_lost() -> None:
    # 20 s at one card, 10 s of restart, the other 80 s of work at eight times the speed
    assert ends(growing(in_place=True))["e"] == (20 + 10 + 10) * SECOND
    assert ends(growing(in_place=False))["e"] == (20 + 4 + 10 + 10) * SECOND


def test_the_meter_counts_a_change_of_width_and_neither_loss_nor_eviction() -> None:
    for in_place in (True, False):
        cell = sum_of(growing(in_place).meter)
        assert (cell["resized"], cell["lost"], cell["evicted"], cell["lost_work"]) == (1, 0, 0, 0)


def sum_of(meter: Meter) -> dict[str, int]:
    """Counts over all classes of jobs."""
    cells = list(meter.lives.cells.values())
    return {
        "resized": sum(cell.resized for cell in cells),
        "lost": sum(cell.lost for cell in cells),
        "lost_work": sum(cell.lost_work for cell in cells),
        "evicted": sum(sum(cell.evicted.values()) for cell in cells),
    }


@tries(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(3, 12))
def test_whatever_comes_all_jobs_are_done_and_each_goes_on_with_what_was_kept(
    random: Random, jobs: int
) -> None:
    offers = [some_offer(random, number) for number in range(jobs)]
    offers.sort(key=lambda offer: offer.job.submitted_ms)
    rules = random.choice((None, Preemption(grace_ms=random.randrange(3_000))))
    how = settings(elastic=random.choice((RULES, None)), preemption=rules, resizes_in_place=False)
    told = run(offers, how)
    assert not [event for event in told.events if isinstance(event, Resized)]
    assert sorted(ends(told)) == sorted(offer.job.id for offer in offers)
    assert sum(isinstance(event, JobSubmitted) for event in told.events) == jobs
    holding: dict[str, tuple[Placement, ...]] = {}
    due: dict[str, tuple[Placement, ...]] = {}
    for event in told.events:
        if isinstance(event, Resizing):
            due[event.job] = event.placements
        elif isinstance(event, Granted):
            assert due.pop(event.job, event.placements) == event.placements
            others = [place for other in (*holding.values(), *due.values()) for place in other]
            taken = {card for place in others for card in place.cards}
            assert taken.isdisjoint(card for place in event.placements for card in place.cards)
            holding[event.job] = event.placements
        elif isinstance(event, Ended):
            holding.pop(event.job, None)
            if event.outcome is Outcome.SUCCEEDED:
                due.pop(event.job, None)
        elif isinstance(event, Started):
            assert event.job in holding
    assert due == {}


def some_offer(random: Random, number: int) -> Offer:
    """A rigid job, an elastic one or a gang, some of them with rights over others."""
    stop = Stop(restart_ms=random.randrange(2_000), stop_ms=random.randrange(500))
    how = {"at": random.randrange(20_000), "seq": number, "priority": random.randrange(3), "stop": stop}
    kind = random.randrange(4)
    if kind == 0:
        job = a_job(f"j{number}", cards=random.choice((1, 2, 4, 8)), elastic=LINEAR, **how)
    elif kind == 1:
        job = a_job(f"j{number}", [a_request(random.choice((1, 2)))] * 4, elastic=GANG, minimum=1, **how)
    elif kind == 2:
        job = a_job(f"j{number}", [a_request()] * random.randrange(2, 6), minimum=1, **how)
    else:
        job = a_job(f"j{number}", cards=random.randrange(1, 9), **how)
    return an_offer(job, random.randrange(1, 60_000))
