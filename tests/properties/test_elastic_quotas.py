"""Elastic jobs under quotas: however they start, grow and give way, no queue ever has more than it may."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from aliquot.control.quotas import overcommits_of
from aliquot.core.events import Outcome
from aliquot.core.jobs import Elastic
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo
from aliquot.core.queues import CARDS, Discipline, Queue, Quota
from aliquot.core.settings import ElasticRules, Order, Preemption, Settings
from aliquot.core.steps import Resize
from tests.support.planning import carried_out, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
NAMES = ("lab/a", "lab/b", "c")
MENUS = (
    Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000)),
    Elastic((2, 4, 6), (1000, 1900, 2700)),
    Elastic((1, 3), (1000, 1010)),
)


@st.composite
def policies(draw: st.DrawFn) -> Settings:
    """Three queues with limits of every kind, with or without preemption, in place or by restart."""

    def limit() -> int | None:
        return draw(st.none() | st.integers(0, 6).map(lambda cards: 1000 * cards))

    queues = [Queue("lab", quotas=(Quota(CARDS, borrowing=limit()),))]
    for name in NAMES:
        nominal = 1000 * draw(st.integers(0, 5))
        quota = Quota(CARDS, nominal, limit(), limit(), draw(st.none() | st.just(nominal + 2000)))
        queues.append(
            Queue(name, quotas=(quota,), discipline=draw(st.sampled_from([None, Discipline.STRICT])))
        )
    return settings(
        queues=tuple(queues),
        elastic=ElasticRules(dwell_ms=0, change_milli=draw(st.sampled_from([0, 50]))),
        preemption=draw(st.sampled_from([None, Preemption(least_run_ms=0, grace_ms=0)])),
        resizes_in_place=draw(st.booleans()),
        order=Order(half_life_ms=0),
    )


JOBS = st.fixed_dictionaries(
    {"queue": st.sampled_from(NAMES)},
    optional={"elastic": st.sampled_from(MENUS), "priority": st.integers(0, 2), "spread": st.just(False)},
)


@given(policies(), st.lists(st.tuples(JOBS, st.integers(0, 7)), min_size=2, max_size=10))
@examples(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_queue_ever_has_more_than_it_may(how: Settings, story: list[tuple[dict[str, Any], int]]) -> None:
    """After each job that comes, perhaps one that runs ends, and plans are made until nothing changes."""
    site, memo = WorldBuilder().nodes(2, 8), Memo()
    for at, (more, ends) in enumerate(story):
        cards = more["elastic"].widths[-1] if "elastic" in more else 1 + ends % 4
        site.submit(f"j{at}", cards=cards, **more)
        running = [name for name in site.holding if site.phase(name) is Phase.RUNNING]
        if ends < len(running):
            site.ended(running[ends])
        for _ in range(4):
            carried_out(site, how, memo=memo)
            for queue in NAMES:
                assert overcommits_of(site.frozen, how, queue) == ()
            for name in site.holding:
                if site.phase(name) is Phase.STARTING:
                    site.started(name)
                elif site.phase(name) is Phase.STOPPING:
                    site.ended(name, Outcome.LOST)
            site.later(MINUTE)


@given(policies(), st.integers(1, 5), st.sampled_from(NAMES), st.integers(1, 8))
@examples(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_a_queue_has_within_its_nominal_no_elastic_job_of_it_gives_to_another(
    how: Settings, wide: int, other: str, cards: int
) -> None:
    owner = Queue("own", quotas=(Quota(CARDS, 1000 * wide),))
    how = settings(
        queues=(*how.queues, owner),
        elastic=how.elastic,
        preemption=how.preemption,
        resizes_in_place=how.resizes_in_place,
        order=how.order,
    )
    elastic = Elastic(tuple(range(1, wide + 1)), tuple(1000 + at for at in range(wide)))
    site = WorldBuilder().node("n", 8).submit("e", cards=wide, elastic=elastic, queue="own")
    carried_out(site, how)
    assume("e" in site.holding)  # others keep what they own to themselves, and own more than there is
    before = site.grant("e").placement.cards
    site.started("e").later(10 * MINUTE).submit("x", cards=cards, queue=other, priority=9)
    decided = carried_out(site, how)
    narrowed = [step for step in decided.steps if isinstance(step, Resize)]
    assert all(len(step.placements[0].cards) >= len(before) for step in narrowed)
