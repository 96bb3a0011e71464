"""Victims that may go on narrower: gangs with a minimum and elastic jobs, against every other way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.clearing import Cleared
from aliquot.core.grants import Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Elastic, Stop
from aliquot.core.memo import Memo
from aliquot.core.room.plot import ALIKE_MS
from aliquot.core.room.tenants import victim_cost
from aliquot.core.seating import seat_all
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk
from aliquot.core.steps import Cause, Evict, Resize
from tests.support.build import a_request
from tests.support.full_sites import a_quota, carry_out, cleared
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

RULES = Preemption(most_evictions=10**6, again_milli=0)
NAMES = ("a", "b", "c")
GONE = 0

restarts = st.sampled_from([0, 20_000, 90_000, 400_000])
ages = st.sampled_from([120_000, 45_000, 700_000, 0])


class Way(NamedTuple):
    """What one job could give up: it keeps `width` (0: nothing), at `cost`, and frees `seats`."""

    job: str
    width: int
    cost: int
    seats: tuple[Seat, ...]


@st.composite
def sites(
    draw: st.DrawFn, *, nodes: int = 2, queues: tuple[str, ...] = ("",), members: int = 1
) -> WorldBuilder:
    """Nodes filled with gangs, elastic and plain jobs, and a job `new` that waits."""
    site = WorldBuilder()
    for at in range(draw(st.integers(1, nodes))):
        site.node(f"n{at}", draw(st.integers(3, 4)))
    for at in range(draw(st.integers(2, 5))):
        kind, size = draw(st.sampled_from(["gang", "elastic", "gang", "plain"])), draw(st.integers(2, 4))
        more: dict[str, Any] = {}
        request: Any = a_request(draw(st.sampled_from([1, 1, 2])))
        if kind == "gang":
            request, more["minimum"] = [request] * size, draw(st.integers(1, size - 1))
        elif kind == "elastic":
            request = a_request(size)
            more["elastic"] = (
                Elastic((1, size), (1000, 1500)) if size < 4 else Elastic((1, 2, 4), (1000,) * 3)
            )
        stop = Stop(restart_ms=draw(restarts))
        queue, priority = draw(st.sampled_from(queues)), draw(st.sampled_from([0, 0, 1, 2]))
        site.submit(f"j{at}", request, priority=priority, stop=stop, queue=queue, **more)
        site.placed()
    for job in site.holding:
        site.started(job).later(draw(ages))
    for job in site.waiting:
        site.cancel(job)
    wanted = [a_request(draw(st.sampled_from([1, 2, 1, 3])))] * draw(st.integers(1, members))
    site.submit("new", wanted, priority=draw(st.sampled_from([3, 2, 1])), queue=draw(st.sampled_from(queues)))
    return site


@given(sites())
@settings(max_examples=120, deadline=None)
def test_one_member_gets_the_best_of_all_ways(site: WorldBuilder) -> None:
    found = cleared(site, "new", RULES)
    best = best_key(site)
    if best is None:
        assert found is None
        return
    assert found is not None
    assert not found.is_bounded
    assert key_of(site, ways_of(site, found)) == best


@given(sites(nodes=3, members=3))
@settings(max_examples=120, deadline=None)
def test_nobody_gives_up_more_than_is_needed(site: WorldBuilder) -> None:
    found = cleared(site, "new", RULES)
    if found is None:
        return
    chosen = ways_of(site, found)
    assert lets_in(site, chosen)
    assert found.cost_ms == sum(way.cost for way in chosen)
    for way in chosen:
        others = [other for other in chosen if other is not way]
        wider = [less for less in ways(site, way.job) if less.width > way.width and less.width]
        if way.width == GONE:
            wider = [less for less in ways(site, way.job) if less.width]
        assert not lets_in(site, others)
        assert not any(lets_in(site, [*others, less]) for less in wider)


@given(sites(nodes=2, members=2))
@settings(max_examples=60, deadline=None)
def test_who_shrinks_runs_on_and_keeps_its_minimum(site: WorldBuilder) -> None:
    found = cleared(site, "new", RULES)
    if found is None:
        return
    carry_out(site, "new", found)
    for step in found.victims:
        if isinstance(step, Resize):
            record = site.job(step.job)
            job = record.job
            assert step.was > step.width
            least = job.elastic.widths[0] if job.elastic is not None else job.least
            assert step.width >= least
            assert record.evictions == 0
            assert step.job in site.holding


@given(sites(members=2, queues=NAMES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_a_queue_within_its_own_gives_up_nothing_to_others(site: WorldBuilder, nominal: list[int]) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, nominal, strict=True))
    found = cleared(site, "new", RULES, queues)
    if found is None:
        return
    used = usage(site)
    new = site.job("new").job
    for step in found.victims:
        job = site.job(step.job).job
        if job.queue != new.queue:
            assert used[job.queue] > nominal[NAMES.index(job.queue)] * 1000
            assert not isinstance(step, Evict) or step.cause is Cause.RECLAIM
        else:
            assert job.priority < new.priority


@given(sites(members=2, queues=NAMES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_what_is_reclaimed_lowers_the_sorted_shares(site: WorldBuilder, nominal: list[int]) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, nominal, strict=True))
    found = cleared(site, "new", RULES, queues)
    mine = site.job("new").job.queue
    if found is None or all(site.job(step.job).job.queue == mine for step in found.victims):
        return
    before = beyond(site, nominal)
    carry_out(site, "new", found)
    assert beyond(site, nominal) < before


@given(sites(members=3, queues=NAMES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
@settings(max_examples=40, deadline=None)
def test_a_fixed_demand_comes_to_rest(site: WorldBuilder, nominal: list[int]) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, nominal, strict=True))
    for _ in range(60):
        changed = False
        for name in site.waiting:
            found = cleared(site, name, Preemption(), queues)
            if found is not None:
                changed = True
                carry_out(site, name, found)
        if not changed:
            return
    raise AssertionError("still moving")


def usage(site: WorldBuilder) -> dict[str, int]:
    """Milli-cards that each queue is charged for."""
    used = dict.fromkeys(NAMES, 0)
    for name in site.holding:
        used[site.job(name).job.queue] += sum(part.milli for part in site.job(name).asked)
    return used


def beyond(site: WorldBuilder, nominal: list[int]) -> list[int]:
    """What each queue has beyond its own, most first: of equal weights, so that these compare as shares."""
    used = usage(site)
    return sorted(
        (max(0, used[name] - cards * 1000) for name, cards in zip(NAMES, nominal, strict=True)), reverse=True
    )


def ways(site: WorldBuilder, name: str) -> Iterator[Way]:
    """All that a running job could give up: its last members or cards, or everything."""
    record, grants = site.job(name), site.world.grants[JobId(name)]
    job, seats = record.job, [grant.seat for grant in grants if grant.seat is not None]
    whole = victim_cost(record, site.at, RULES)
    assert whole is not None
    cards = sum(seat.mask.bit_count() for seat in seats)
    ran = site.at - record.since_ms
    if job.elastic is not None:
        for width in job.elastic.widths:
            mask = seats[0].mask
            while mask.bit_count() > cards - width:
                mask &= mask - 1
            cost = cards * job.stop.restart_ms
            if width < cards and cost <= whole:
                yield Way(name, width, cost, (Seat(seats[0].row, mask, seats[0].vector, True),))
    for width in range(job.least, len(seats)) if len(seats) > 1 else ():
        lost = sum(seat.mask.bit_count() for seat in seats[width:])
        cost = cards * job.stop.restart_ms + lost * ran
        if cost <= whole:
            yield Way(name, width, cost, tuple(seats[width:]))
    yield Way(name, GONE, whole, tuple(seats))


def ways_of(site: WorldBuilder, found: Cleared) -> list[Way]:
    """What was decided, as ways; the cards are those that were chosen."""
    chosen = []
    for step in found.victims:
        width = step.width if isinstance(step, Resize) else GONE
        way = next(way for way in ways(site, step.job) if way.width == width)
        assert way.cost == step.cost_ms
        chosen.append(way)
    return chosen


def key_of(site: WorldBuilder, chosen: list[Way]) -> tuple[Any, ...]:
    """Worst rank, cost in minutes, number of jobs."""
    worst = max((site.job(way.job).job.priority for way in chosen), default=-1)
    return (worst, sum(way.cost for way in chosen) // ALIKE_MS, len(chosen))


def best_key(site: WorldBuilder) -> tuple[Any, ...] | None:
    """By trying all; None where nothing helps."""
    mine = site.job("new").job.priority
    open_ones = [name for name in site.holding if site.job(name).job.priority < mine]
    every = [[None, *ways(site, name)] for name in open_ones]
    sets = [[way for way in chosen if way is not None] for chosen in product(*every)]
    desk = Desk(site.frozen, policy(), Memo())
    for chosen in sorted(sets, key=lambda chosen: key_of(site, chosen)):
        if lets_in(site, chosen, desk):
            return key_of(site, chosen)
    return None


def lets_in(site: WorldBuilder, chosen: list[Way], desk: Desk | None = None) -> bool:
    """Whether `new` finds seats then."""
    desk = desk or Desk(site.frozen, policy(), Memo())
    mark = desk.mark()
    for way in chosen:
        for seat in way.seats:
            desk.release(seat)
    seats = seat_all(desk, site.job("new").job)
    desk.rollback(mark)
    return seats is not None
