"""Queues in the scorecard: quotas met, borrowing and Jain's index, by hand and for any course of events."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.events import Ended, Event, Granted, JobSubmitted, NodeJoined, NodeLost, Outcome, Started
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Job
from aliquot.core.queues import CARDS, MEMORY, Measure, Queue, Quota, Resource
from aliquot.core.report.cells import BANDS, band_of
from aliquot.core.report.classes import score_class
from aliquot.core.report.divided import Division, QueueScore
from aliquot.core.report.failures import count_failures
from aliquot.core.report.meter import Meter
from aliquot.core.report.scorecard import Scorecard, score
from aliquot.core.report.stats import jain
from aliquot.core.settings import Rates, Settings
from aliquot.core.workload import Offer
from tests.support.build import T4, a_job, a_node, a_placement, a_request, a_scenario

HOUR = 3_600_000
NODE = a_node("n", 12)
OTHER = a_node("t", 4, model=T4)


def cards(name: str, nominal: int, **more: object) -> Queue:
    """A queue with a nominal of so many cards."""
    return Queue(name, quotas=(Quota(CARDS, nominal * 1000),), **more)  # type: ignore[arg-type]  # by name


class Story:
    """Jobs of whole cards that come, start and end at full hours, on one node of twelve cards."""

    def __init__(self, *queues: Queue, rates: Rates | None = None) -> None:
        self.settings = Settings(queues=queues, rates=rates or Rates())
        self.events: list[Event] = [NodeJoined(0, NODE)]
        self._slot = 0

    def job(
        self,
        queue: str,
        width: int,
        at: float,
        start: float | None = None,
        end: float | None = None,
        after: Sequence[str] = (),
    ) -> Story:
        """Comes at hour `at`, and runs from `start` to `end`, where it does."""
        edges = tuple(After(JobId(name)) for name in after)
        job = a_job(f"j{len(self.events)}", a_request(width), at=int(at * HOUR), queue=queue, after=edges)
        self.events.append(JobSubmitted(job.submitted_ms, job))
        if start is not None:
            slots = [(self._slot + more) % 12 for more in range(width)]
            self._slot += width
            when = int(start * HOUR)
            self.events += [Granted(when, job.id, 1, (a_placement(NODE, slots),)), Started(when, job.id, 1)]
        if end is not None:
            self.events.append(Ended(int(end * HOUR), job.id, 1, Outcome.SUCCEEDED))
        return self

    def card(self, hours: float = 2) -> Scorecard:
        """The scorecard of the first `hours`."""
        offers = [Offer(event.job) for event in self.events if isinstance(event, JobSubmitted)]
        meter = Meter(a_scenario([NODE], offers), settings=self.settings, window=(0, int(hours * HOUR)))
        for event in sorted(self.events, key=lambda event: event.at):
            meter.see(event)
        return score(meter.readings())


def queue_of(card: Scorecard, name: str) -> QueueScore:
    return next(queue for queue in card.queues if queue.name == name)


def test_quota_met_and_borrowed_as_in_the_docstring() -> None:
    """Nominal 4: wants 6 and uses 3 for an hour, then uses 6: met 7 of 8 due, 2 of 9 borrowed."""
    story = Story(cards("a", 4)).job("a", 3, 0, 0).job("a", 3, 0, 1)
    queue = queue_of(story.card(), "a")
    assert (queue.satisfaction, queue.borrowed, queue.got) == (0.875, 2 / 9, 1.125)
    (quota,) = queue.quotas
    assert (quota.resource, quota.nominal, quota.used_mean, quota.wanted_mean) == ("cards", 4000, 4500, 6000)


def test_how_long_a_queue_had_too_much_and_the_pool_too_little_is_told() -> None:
    """Both nodes are up for an hour; then the second is lost, and of 14 promised cards 12 are left.

    A hard queue of two uses three for the last half hour: what only a quota lowered below what runs brings.
    """
    hard = Queue("b", quotas=(Quota(CARDS, 2000, borrowing=0),))
    story = Story(cards("a", 12), hard).job("b", 3, 1.5, 1.5).job("a", 2, 0, 0, 1)
    story.events += [NodeJoined(0, OTHER), NodeLost(HOUR, OTHER.id)]
    card = story.card()
    assert (card.overdrawn_ms, card.overpromised_ms) == (HOUR // 2, HOUR)
    assert [queue_of(card, name).overdrawn_ms for name in ("a", "b")] == [0, HOUR // 2]
    without = Story().job("a", 2, 0, 0).job("b", 2, 0, 0).card()
    assert (without.overdrawn_ms, without.overpromised_ms) == (None, None), "no quota, nothing to exceed"


def test_nothing_wanted_is_all_that_was_wanted() -> None:
    card = Story(cards("a", 4), cards("b", 4)).job("a", 2, 0, 0).card()
    idle = queue_of(card, "b")
    assert (idle.satisfaction, idle.borrowed, idle.got, idle.scores.jobs) == (1.0, None, None, 0)
    assert card.quota_satisfaction == 1.0
    assert card.jain is None  # only one queue wanted anything


def test_the_whole_is_the_sum_of_the_leaves() -> None:
    card = Story(cards("a", 4), cards("b", 2)).job("a", 8, 0, 0).job("b", 2, 0, 1).card()
    assert card.quota_satisfaction == pytest.approx((8 + 2) / (8 + 4))
    assert card.borrowed == pytest.approx(8 / (16 + 2))
    assert card.jain == pytest.approx((2 + 0.5) ** 2 / (2 * (4 + 0.25)))
    short = next(found for found in card.failures if found.id == "short-of-quota")
    assert short.count == 1


def test_an_inner_queue_has_what_is_below_it() -> None:
    story = Story(cards("lab", 6), cards("lab/x", 2)).job("lab/x", 4, 0, 0).job("lab", 1, 0, 0)
    card = story.card(1)
    names = [(queue.name, queue.inner, queue.scores.jobs) for queue in card.queues]
    assert names == [("lab", True, 2), ("lab/x", False, 1), ("lab/*", False, 1)]
    assert queue_of(card, "lab").borrowed == 0
    assert queue_of(card, "lab/x").borrowed == 0.5


def test_a_job_that_waits_for_another_wants_nothing_yet() -> None:
    story = Story(cards("a", 4)).job("a", 2, 0, 0, 1).job("a", 2, 0, after=["j1"])
    (quota,) = queue_of(story.card(), "a").quotas
    assert (quota.wanted_mean, quota.satisfaction) == (2000, 0.5)  # 2 cards used, then 2 wanted


def test_memory_money_and_models_are_counted_in_their_own_units() -> None:
    h100 = Resource(Measure.CARDS, "H100")
    resources = (h100, MEMORY, Resource(Measure.MONEY), Resource(Measure.COMPUTE))
    queue = Queue("a", quotas=tuple(Quota(resource, 1000) for resource in resources))
    rates = Rates(compute_milli=(("H100", 2000),), cents_a_month=(("H100", 90),))
    card = Story(queue, rates=rates).job("a", 2, 0, 0).card(1)
    used = {quota.resource: quota.used_mean for quota in queue_of(card, "a").quotas}
    memory = NODE.cards[0].model.usable_mib
    assert used == {"cards H100": 2000, "memory": 2 * memory, "money": 180, "compute": 4000}
    assert queue_of(card, "a").satisfaction == 1.0


def test_without_quotas_cards_are_divided_by_weight_among_queues_with_jobs() -> None:
    story = Story(Queue("a", weight=2000), Queue("b"), Queue("idle", weight=9000))
    card = story.job("a", 6, 0, 0).job("a", 4, 0).job("b", 6, 0, 0).card(1)
    # of 12 cards a is entitled to 8 and wants 10, b to 4 and wants 6
    assert [(queue.name, queue.got) for queue in card.queues] == [("a", 0.75), ("b", 1.5)]
    assert card.quota_satisfaction is None
    assert card.jain == pytest.approx(2.25**2 / (2 * (0.75**2 + 1.5**2)))


def test_one_queue_without_quota_is_not_divided() -> None:
    card = Story().job("", 4, 0, 0).card()
    assert (card.queues, card.jain) == ((), None)


def test_jobs_of_no_queue_have_a_line_of_their_own() -> None:
    card = Story().job("", 6, 0, 0).job("a", 6, 0, 0).card()
    assert [(queue.name, queue.scores.jobs) for queue in card.queues] == [("a", 1), ("*", 1)]


def test_entitlements_follow_the_cards_that_are_there() -> None:
    offers = [Offer(a_job(f"j{at}", a_request(8), queue=queue)) for at, queue in enumerate("ab")]
    meter = Meter(a_scenario([NODE, OTHER], offers), window=(0, 4 * HOUR))
    events: list[Event] = [NodeJoined(0, NODE), NodeJoined(0, OTHER)]
    events += [JobSubmitted(0, offer.job) for offer in offers]
    events += [NodeLost(HOUR, OTHER.id), NodeLost(2 * HOUR, NODE.id), NodeJoined(3 * HOUR, NODE)]
    for event in events:
        meter.see(event)
    dues = [queue.claims[0].due for queue in meter.readings().queues]
    assert dues == [(8 + 6 + 0 + 6) * 1000 * HOUR] * 2  # half of 16, of 12, of nothing, of 12


@pytest.mark.parametrize(
    ("width", "band"),
    [("cpu", "cpu"), ("shared", "shared"), ("1", "1"), ("2", "2-4"), ("4", "2-4"), ("5", "5-7"), ("7", "5-7"),
     ("8", "8"), ("9", "9+"), ("512", "9+")],
)  # fmt: skip  # one line a few
def test_bands_of_width(width: str, band: str) -> None:
    assert band_of(width) == band
    assert band in BANDS


def test_the_published_figures_of_a_queueing_trace() -> None:
    """Mean, 95th percentile and longest wait, the mean of jobs of 8 cards or more, bounded slowdown."""
    story = Story()
    for width, wait in ((1, 0), (2, 1), (8, 3), (12, 5)):
        story.job("", width, 0, wait, wait + 1)
    card = story.card(8)
    hours = [card.wait_mean_ms, card.wait_p95_ms, card.wait_max_ms, card.wait_wide_ms]
    assert [None if ms is None else ms / HOUR for ms in hours] == [2.25, 5, 5, 4]
    assert card.slowdown == (1 + 2 + 4 + 6) / 4
    bands = {part.name: part.wait_mean_ms for part in card.per_class.band}
    assert bands == {"1": 0, "2-4": HOUR, "8": 3 * HOUR, "9+": 5 * HOUR}
    assert [part.name for part in card.per_class.band] == ["1", "2-4", "8", "9+"]


@given(st.lists(st.floats(0, 1e12, allow_nan=False), min_size=1, max_size=20))
def test_jain_is_a_share_and_knows_no_scale(values: list[float]) -> None:
    index = jain(values)
    if not any(values):
        assert index is None
        return
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1
    assert jain([7 * value for value in values]) == pytest.approx(index)
    assert jain([max(values)] * 5) == pytest.approx(1)


def random_course(random: Random, names: Sequence[str]) -> list[Event]:
    """Jobs of random width and time in random queues, on twelve cards that are never fully booked twice."""
    events: list[Event] = [NodeJoined(0, NODE)]
    running: list[tuple[int, Job, int]] = []
    free, at = set(range(12)), 0
    waiting: list[Job] = []
    for number in range(30):
        at += random.randrange(5)
        for end, job, _ in [entry for entry in running if entry[0] <= at]:
            events.append(Ended(max(end, events[-1].at), job.id, 1, Outcome.SUCCEEDED))
        for entry in [entry for entry in running if entry[0] <= at]:
            running.remove(entry)
            free.add(entry[2])
        waiting.append(a_job(f"j{number}", at=at, seq=number, queue=random.choice(names)))
        events.append(JobSubmitted(at, waiting[-1]))
        while waiting and free and random.random() < 0.7:
            job, slot = waiting.pop(random.randrange(len(waiting))), free.pop()
            events += [Granted(at, job.id, 1, (a_placement(NODE, (slot,)),)), Started(at, job.id, 1)]
            running.append((at + random.randrange(1, 20), job, slot))
    return events


def read(events: Sequence[Event], queues: tuple[Queue, ...], peeks: Sequence[int] = ()) -> Scorecard:
    jobs = [Offer(event.job) for event in events if isinstance(event, JobSubmitted)]
    meter = Meter(a_scenario([NODE], jobs), settings=Settings(queues=queues), window=(0, 200))
    for at, event in enumerate(events):
        meter.see(event)
        if at in peeks:
            meter.readings()
    return score(meter.readings())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 6), st.integers(0, 6))
def test_shares_are_shares_and_looking_changes_nothing(seed: int, one: int, two: int) -> None:
    random = Random(seed)
    queues = (cards("a", one), cards("b", two))
    events = random_course(random, ("a", "b", "", "gone/x"))
    card = read(events, queues)
    assert read(events, queues, peeks=random.sample(range(len(events)), 5)) == card
    for queue in card.queues:
        assert queue.satisfaction is not None
        assert 0 <= queue.satisfaction <= 1
        assert queue.borrowed is None or 0 <= queue.borrowed <= 1
    assert sum(queue.scores.jobs for queue in card.queues) == card.jobs
    assert card.jain is None or 0 < card.jain <= 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_splitting_a_queue_leaves_sums_as_they_were(seed: int) -> None:
    """Two halves together use and want what the whole did, and the parent is entitled to the same."""
    events = random_course(Random(seed), ("lab/x", "lab/y"))
    whole = [joined(event) for event in events]
    split = read(events, (cards("lab", 6), cards("lab/x", 3), cards("lab/y", 3)))
    plain = read(whole, (cards("lab", 6),))
    (above,), (quota,) = queue_of(split, "lab").quotas, queue_of(plain, "lab").quotas
    assert above == quota
    halves = [queue_of(split, name) for name in ("lab/x", "lab/y")]
    for name in ("used_mean", "wanted_mean"):
        assert sum(getattr(half.quotas[0], name) for half in halves) == pytest.approx(getattr(quota, name))
    assert sum(half.scores.jobs for half in halves) == plain.jobs
    assert split.goodput == plain.goodput
    assert split.rho_mean == plain.rho_mean


def joined(event: Event) -> Event:
    """The same event with its job in the queue above."""
    from msgspec.structs import replace

    return replace(event, job=replace(event.job, queue="lab")) if isinstance(event, JobSubmitted) else event


# --- what no machine could ever hold -----------------------------------------------------------------------


def test_a_job_that_no_machine_could_ever_hold_is_no_demand() -> None:
    """Twelve cards: `a` gets all it can, though 13 are asked for as well; `b` waits for its turn."""
    story = Story(cards("a", 4), cards("b", 4)).job("a", 13, 0).job("a", 4, 0, 0).job("b", 12, 0)
    card = story.card()
    mine, other = queue_of(card, "a"), queue_of(card, "b")
    assert (mine.satisfaction, mine.quotas[0].wanted_mean, mine.crowd_ms) == (1.0, 4000, 0)
    assert other.satisfaction == 0
    assert failure_of(card, "short-of-quota") == 1


def test_from_when_a_machine_comes_that_could_hold_it_it_is() -> None:
    """16 cards on one node join after an hour, and nobody has them for the other."""
    story = Story(cards("a", 16), cards("b", 4)).job("a", 16, 0)
    story.events.append(NodeJoined(HOUR, a_node("wide", 16)))
    assert queue_of(story.card(), "a").quotas[0].wanted_mean == 8000


def test_a_gang_that_all_machines_together_could_not_hold_is_no_demand_and_one_they_could_is() -> None:
    for members, wanted in ((6, 12_000), (7, 0)):
        story = Story(cards("a", 4), cards("b", 4)).job("b", 4, 0, 0)
        job = replace(a_job("gang", queue="a"), members=(a_request(2),) * members)
        story.events.append(JobSubmitted(0, job))
        assert queue_of(story.card(), "a").quotas[0].wanted_mean == wanted


@pytest.mark.parametrize(("met", "short"), [(0.99973, 0), (0.9996, 0), (0.999, 1), (0.5, 1)])
def test_what_rounding_leaves_of_a_quota_is_no_shortfall(met: float, short: int) -> None:
    division = Division((QueueScore("m", False, score_class("m", []), met, None, None),), satisfaction=met)
    story = Story(cards("m", 4))
    meter = Meter(a_scenario([NODE], []), settings=story.settings, window=(0, HOUR))
    counted = count_failures(replace(meter.readings(), stated=True), division)
    assert next(found.count for found in counted if found.id == "short-of-quota") == short


def failure_of(card: Scorecard, name: str) -> int | None:
    return next(found.count for found in card.failures if found.id == name)
