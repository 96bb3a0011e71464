"""Elastic jobs through the planner: no step from one to another helps, and nobody changes all the time."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from aliquot.core.jobs import Elastic
from aliquot.core.lifecycle import Phase
from aliquot.core.room.elastic import ElasticJob, slowness
from aliquot.core.settings import ElasticRules
from aliquot.core.steps import Place, Resize
from tests.support.planning import carried_out, settings, width
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
FREE = ElasticRules(change_milli=0, dwell_ms=0, evenness_milli=1000)
FEW = examples(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def concave(draw: st.DrawFn) -> Elastic:
    """Widths from 1 on with falling gains."""
    gains = sorted((draw(st.integers(1, 1000)) for _ in range(draw(st.integers(1, 4)))), reverse=True)
    return Elastic(
        tuple(range(1, len(gains) + 2)), tuple(1000 + sum(gains[:at]) for at in range(len(gains) + 1))
    )


def all_started(site: WorldBuilder) -> None:
    for name in site.holding:
        if site.phase(name) is Phase.STARTING:
            site.started(name)


@FEW
@given(st.lists(concave(), min_size=2, max_size=4), st.integers(0, 6))
def test_no_step_from_one_to_another_would_help_once_all_is_at_rest(jobs: list[Elastic], spare: int) -> None:
    """On one node, where whatever one gives up another can take: the sum of slownesses is a local least."""
    how = settings(elastic=FREE)
    site = WorldBuilder().node("n", len(jobs) + spare)
    for at, elastic in enumerate(jobs):
        site.submit(f"j{at}", cards=1, elastic=elastic, estimate_ms=MINUTE)
        carried_out(site, how)
        all_started(site)
        site.later(MINUTE)
    for _ in range(30):
        decided = carried_out(site, how)
        all_started(site)
        site.later(MINUTE)
        if not any(isinstance(step, (Resize, Place)) for step in decided.steps):
            break
    else:
        raise AssertionError("no rest after 30 rounds")
    now = [width(site, f"j{at}") for at in range(len(jobs))]
    shapes = [
        ElasticJob(one.widths, tuple(map(float, one.speeds_milli)), held)
        for one, held in zip(jobs, now, strict=True)
    ]

    def cost(widths: list[int]) -> float:
        return sum(slowness(job, cards, FREE) for job, cards in zip(shapes, widths, strict=True))

    reached = cost(now)
    for giver, taker in itertools.product((None, *range(len(jobs))), range(len(jobs))):
        other = now.copy()
        other[taker] += 1
        if giver is not None:
            other[giver] -= 1
        legal = all(cards in job.widths for cards, job in zip(other, jobs, strict=True))
        if giver != taker and legal and sum(other) <= len(jobs) + spare:
            assert cost(other) >= reached - 1e-6, (now, other)


@FEW
@given(
    st.lists(concave(), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=3, max_size=15),
)
def test_a_job_is_changed_once_per_rest_and_once_more_for_each_that_starts(
    jobs: list[Elastic], happenings: list[tuple[int, int]]
) -> None:
    """Plain jobs of 1 to 3 cards come and go (0: one goes); elastic ones grow and give way meanwhile."""
    rules = ElasticRules(change_milli=0, dwell_ms=5 * MINUTE)
    how = settings(elastic=rules)
    site = WorldBuilder().node("n", 6)
    for at, elastic in enumerate(jobs):
        site.submit(f"e{at}", cards=1, elastic=elastic)
    changed, starts, plain = Counter[str](), 0, 0
    for minutes, cards in happenings:
        if cards:
            plain += 1
            site.submit(f"p{plain}", cards=cards)
        elif there := [name for name in site.holding if name.startswith("p")]:
            site.ended(there[0])
        rested = {str(job): site.at - record.resized_ms for job, record in site.world.jobs.items()}
        decided = carried_out(site, how)
        resized = [step.job for step in decided.steps if isinstance(step, Resize)]
        placed = sum(isinstance(step, Place) for step in decided.steps)
        assert placed or all(rested[job] >= rules.dwell_ms for job in resized)
        changed.update(resized)
        starts += placed
        for name in site.holding:
            site.started(name)
        site.later(minutes * MINUTE)
    assert all(count <= site.at // rules.dwell_ms + starts for count in changed.values())
