"""What a world learns of run times: from whom, for whom, how exactly, and what the planner does with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.events import Outcome
from aliquot.core.history import ENOUGH, GROUPS, KEPT, History, longest_of, step_of
from aliquot.core.ids import JobId
from aliquot.core.image import image_of, world_of
from aliquot.core.jobs import Elastic, Job
from aliquot.core.lengths import length_by, must_end
from aliquot.core.planner import Memo
from aliquot.core.records import JobRecord
from aliquot.core.settings import Backfill, Estimating, Settings, Source
from aliquot.core.world import World
from tests.support.build import a_job, a_request
from tests.support.planning import carried_out, nodes_of, planned, settings
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE


def taught(*runs: int, quantile: int = 900, **like: Any) -> History:
    """A history of jobs alike that ran so many ms."""
    history = History(quantile)
    for number, ran in enumerate(runs):
        history.learn(a_job(f"j{number}", **like), ran)
    return history


@given(st.integers(0, 10**13), st.integers(0, 10**13))
def test_a_step_holds_its_run_times_and_longer_ones_are_never_in_a_lower_one(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert step_of(low) <= step_of(high)
    assert longest_of(step_of(low)) >= low
    if low >= 16_000:
        assert longest_of(step_of(low)) <= low * 9 // 8 + 1000


def test_a_guess_is_what_nine_of_ten_did_not_exceed() -> None:
    history = taught(*(number * MINUTE for number in range(1, 11)))
    assert history.guess(a_job("new")) == longest_of(step_of(10 * MINUTE))
    history = History(500, history.groups)
    assert history.guess(a_job("new")) == longest_of(step_of(6 * MINUTE))


def test_the_nearest_group_that_has_seen_enough_speaks() -> None:
    history = taught(*[HOUR] * ENOUGH, user="ana", queue="lab", cards=8)
    for number in range(ENOUGH):
        history.learn(a_job(f"b{number}", user="ben", queue="lab", cards=8), MINUTE)
    for number in range(3 * ENOUGH):
        history.learn(a_job(f"c{number}", user="cyd", queue="lab", cards=1), 2 * MINUTE)
    hour, two = longest_of(step_of(HOUR)), longest_of(step_of(2 * MINUTE))
    assert history.guess(a_job("x", user="ana", queue="lab", cards=8)) == hour
    assert history.guess(a_job("x", user="ben", queue="lab", cards=8)) == longest_of(step_of(MINUTE))
    assert history.guess(a_job("x", user="dan", queue="lab", cards=8)) == hour, "the same queue and cards"
    assert history.guess(a_job("x", user="dan", queue="lab", cards=2)) == hour, "the same queue"
    history = History(500, history.groups)
    assert history.guess(a_job("x", user="dan", queue="other", cards=2)) == two, "anybody"


def test_too_few_and_nothing_asked_for_is_unknown() -> None:
    assert taught(*[HOUR] * (ENOUGH - 1)).guess(a_job("x")) is None
    assert taught(*[HOUR] * ENOUGH, quantile=0).groups == ()


def test_habits_change_and_memory_is_bounded() -> None:
    history = taught(*[HOUR] * KEPT, *[MINUTE] * KEPT)
    assert history.guess(a_job("x")) == longest_of(step_of(MINUTE))
    for number in range(GROUPS + 50):
        history.learn(a_job("x", queue=f"q{number}"), MINUTE)
    assert len(history.groups) == GROUPS
    assert all(len(runs) <= KEPT for _, runs in history.groups)


def learning(how: Settings) -> WorldBuilder:
    """A site whose world learns as `how` asks."""
    site = WorldBuilder(quantile_milli=how.estimates.learnt_milli)
    return site.nodes(1, 1)


def run(site: WorldBuilder, how: Settings, name: str, ms: int, **more: Any) -> None:
    """A job comes, runs for `ms` and succeeds."""
    site.submit(name, **more)
    carried_out(site, how)
    site.started(name).later(ms).ended(name)


BEST = settings(backfill=Backfill(), estimates=Estimating(Source.BEST))


def test_it_learns_from_those_that_ran_through_at_one_width() -> None:
    site = learning(BEST)
    run(site, BEST, "through", HOUR)
    assert len(site.world.history.groups) == 3
    before = site.world.history.groups
    site.submit("fails")
    carried_out(site, BEST)
    site.started("fails").later(1).ended("fails", Outcome.FAILED)
    run(site, BEST, "stretches", HOUR, elastic=Elastic((1,), (1000,)))
    assert site.world.history.groups == before


def test_what_it_knows_is_in_the_image_and_in_the_fold() -> None:
    site = learning(BEST)
    for number in range(ENOUGH):
        run(site, BEST, f"j{number}", HOUR)
    site.submit("next")
    assert site.job("next").guess_ms == longest_of(step_of(HOUR))
    again = World(quantile_milli=900)
    again.apply_all(site.events)
    copy = world_of(image_of(site.world), quantile_milli=900)
    assert again.history.groups == copy.history.groups == site.world.history.groups
    assert same_world(again.freeze(), site.frozen)
    assert copy.freeze().jobs == site.frozen.jobs


@pytest.mark.parametrize(
    ("source", "told", "guess", "limit", "length"),
    [
        (Source.USER, None, HOUR, None, None),
        (Source.USER, MINUTE, HOUR, None, MINUTE),
        (Source.USER, None, HOUR, MINUTE, MINUTE),
        (Source.BEST, MINUTE, HOUR, None, MINUTE),
        (Source.BEST, None, HOUR, None, HOUR),
        (Source.BEST, None, HOUR, MINUTE, MINUTE),
        (Source.BEST, None, None, MINUTE, MINUTE),
        (Source.HISTORY, MINUTE, HOUR, None, HOUR),
        (Source.HISTORY, MINUTE, None, None, MINUTE),
        (Source.HISTORY, 2 * HOUR, 3 * HOUR, HOUR, HOUR),
    ],
)
def test_whose_word_counts(
    source: Source, told: int | None, guess: int | None, limit: int | None, length: int | None
) -> None:
    record = JobRecord(a_job("j", estimate_ms=told, limit_ms=limit), guess_ms=guess)
    assert length_by(settings(estimates=Estimating(source)))(record) == length


def test_a_gang_that_may_start_in_part_and_one_that_begins_again_take_longer() -> None:
    length = length_by(settings())
    gang: Job = a_job("g", [a_request(1)] * 4, minimum=2, estimate_ms=HOUR)
    assert must_end(JobRecord(gang), length) == 2 * HOUR
    assert must_end(JobRecord(a_job("j", estimate_ms=HOUR), attempt=2), length) == HOUR


def test_short_jobs_go_first_though_nobody_says_so() -> None:
    """What was learnt stands for the estimate in the order by size."""
    site = learning(BEST)
    for number in range(ENOUGH):
        run(site, BEST, f"long{number}", HOUR, user="ana")
        run(site, BEST, f"short{number}", MINUTE, user="ben")
    site.submit("long", user="ana").submit("short", user="ben")
    assert list(nodes_of(planned(site, BEST))) == ["short"]
    user = settings(backfill=Backfill())
    assert list(nodes_of(planned(site, user))) == ["long"]
    memo = Memo()
    assert planned(site, BEST, memo=memo) == planned(site, BEST, memo=memo) == planned(site, BEST)


def test_a_guess_is_that_of_the_submission_for_life() -> None:
    site = learning(BEST)
    site.submit("early")
    for number in range(ENOUGH):
        run(site, BEST, f"j{number}", HOUR, priority=1)
    assert site.job("early").guess_ms is None
    assert site.world.history.guess(site.job("early").job) is not None
    assert JobId("early") in site.frozen.jobs
