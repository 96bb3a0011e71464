"""I4: nobody is stopped twice for the same job, evictions are bounded, and a fixed demand comes to rest."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as tries
from hypothesis import strategies as st

from aliquot.core.events import Evicting, Granted, Outcome
from aliquot.core.jobs import Request
from aliquot.core.planner import Memo, plan
from aliquot.core.settings import Backfill, Order, Preemption, Settings
from aliquot.core.steps import Start
from tests.support.build import a_request
from tests.support.full_sites import a_quota
from tests.support.planning import settings
from tests.support.worlds import WorldBuilder

CYCLES = 60
REST = 10  # cycles at the end in which nothing may happen any more
STEP_MS = 5_000
GRACE_MS = 10_000
NAMES = ("one", "two", "three")
MOST = Preemption().most_evictions

members = st.lists(
    st.sampled_from([a_request(1), a_request(2), a_request(4), a_request(8), a_request(memory=40_000)]),
    min_size=1,
    max_size=2,
)
wants = st.tuples(members, st.integers(0, 3), st.sampled_from(NAMES), st.integers(0, 8))


def rules(kind: str) -> Settings:
    preemption = Preemption(grace_ms=GRACE_MS)
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, (4, 8, 4), strict=True))
    order = Order(half_life_ms=0, aging_ms=0)
    return {
        "priority": settings(preemption=preemption),
        "queues": settings(preemption=preemption, queues=queues, order=order),
        "backfill": settings(preemption=preemption, queues=queues, order=order, backfill=Backfill()),
    }[kind]


@pytest.mark.parametrize("kind", ["priority", "queues", "backfill"])
@tries(max_examples=15, deadline=None)
@given(asked=st.lists(wants, min_size=2, max_size=10))
def test_a_fixed_demand_comes_to_rest_and_nobody_is_stopped_twice_for_one(
    kind: str, asked: list[tuple[list[Request], int, str, int]]
) -> None:
    site, memo, how = WorldBuilder().nodes(2, 8), Memo(), rules(kind)
    waiting = sorted(enumerate(asked), key=lambda entry: entry[1][3])
    for cycle in range(CYCLES):
        while waiting and waiting[0][1][3] <= cycle:
            at, (requests, priority, queue, _) = waiting.pop(0)
            site.submit(f"j{at}", requests, priority=priority, queue=queue)
        before = len(site.events)
        turn(site, how, memo)
        assert cycle < CYCLES - REST or not moved(site, before), site.events[before:]
    evictions = [event for event in site.events if isinstance(event, Evicting)]
    pairs = Counter((event.job, event.for_job) for event in evictions)
    assert max(pairs.values(), default=0) <= 1, "nobody is stopped twice for the same job"
    assert max(Counter(event.job for event in evictions).values(), default=0) <= MOST
    granted = Counter(event.job for event in site.events if isinstance(event, Granted))
    for job, count in granted.items():
        assert count <= 1 + sum(event.job == job for event in evictions), (
            "stopped, and started again: no more"
        )


def turn(site: WorldBuilder, how: Settings, memo: Memo) -> None:
    """One cycle: who starts runs at once, who is stopped ends after its grace, and nobody is ever done."""
    site.check(*plan(site.frozen, how, site.at, memo).steps)
    for step in site.world.outstanding():
        if isinstance(step, Start):
            site.started(step.job)
    site.later(STEP_MS)
    for name in site.holding:
        record = site.job(name)
        if record.evicting is not None and site.at - record.since_ms >= GRACE_MS:
            site.ended(name, Outcome.FAILED)


def moved(site: WorldBuilder, since: int) -> bool:
    """Whether anybody was started or stopped since then."""
    return any(isinstance(event, (Granted, Evicting)) for event in site.events[since:])
