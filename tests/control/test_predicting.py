"""Predicted starts: the plan played forward on a copy, or counted; what is touched is nothing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from aliquot.bootstrap import make_sim
from aliquot.control.evenness import is_even
from aliquot.control.predicting import Budget, count_forward, play_forward, predict
from aliquot.control.whatif import Run
from aliquot.core.events import Event, Granted, Resized
from aliquot.core.ids import JobId
from aliquot.core.image import image_of
from aliquot.core.jobs import After, Array, Elastic, Job, Stop
from aliquot.core.queueing.outlook import Method
from aliquot.core.queues import Queue
from aliquot.core.room.disciplines import EASY
from aliquot.core.settings import Backfill, Discipline, Preemption, Settings
from aliquot.core.steps import Reserve
from aliquot.core.workload import Offer
from aliquot.core.world import World
from tests.support.build import a_job, a_node, a_placement, a_request, a_scenario, an_offer
from tests.support.planning import PLAIN, carried_out, planned, settings
from tests.support.same import same_world
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
FEW = examples(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=(
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ),  # a story of forty turns does not shrink in useful time
)
POLICIES = {
    "best effort": settings(),
    "strict": settings(discipline=Discipline.STRICT),
    "easy": settings(backfill=EASY),
    "backfill": settings(backfill=Backfill(overdue_ms=60 * MINUTE, overdue_wide_ms=30 * MINUTE)),
    "queues": settings(queues=(Queue("a"), Queue("b")), backfill=Backfill()),
    "preemption": settings(preemption=Preemption()),
}


class Grants:
    """Notes when each job first got its room."""

    def __init__(self) -> None:
        self.at: dict[JobId, int] = {}

    def see(self, events: list[Event] | tuple[Event, ...], world: World) -> None:
        for event in events:
            if isinstance(event, Granted):
                self.at.setdefault(event.job, event.at)


def drawn(random: Random, jobs: int = 14, *, widths: bool = True) -> list[Offer]:
    """Jobs of all kinds that come within an hour and run exactly as long as they say.

    `widths`: some may have several. What they did before one changed is only estimated.
    """
    offers, at = [], 0
    for seq in range(jobs):
        at += random.randrange(8 * MINUTE)
        runs = random.randrange(1, 90 * MINUTE)
        ask: list[object] = [a_request(random.choice((1, 1, 2, 4, 8)))]
        if random.random() < 0.2:
            ask = [a_request(1, compute=random.choice((250, 500)), memory=20_000)]
        if random.random() < 0.2:
            ask = [a_request(4)] * random.randrange(2, 4)
        more: dict[str, object] = {"stop": Stop(stop_ms=0)}
        if widths and len(ask) > 1 and random.random() < 0.5:
            more["minimum"] = 1
        elif widths and len(ask) == 1 and random.random() < 0.2:
            ask, more["elastic"] = [a_request(4)], Elastic((1, 2, 4), (1000, 1900, 3000))
        if seq and random.random() < 0.15:
            more["after"] = (After(JobId(f"j{random.randrange(seq)}")),)
        if random.random() < 0.2:
            more["array"] = Array("many", 8, 2)
        job = a_job(
            f"j{seq}", ask, at=at, seq=seq, priority=random.randrange(3), queue=random.choice("ab"),  # type: ignore[arg-type]  # both kinds are requests
            estimate_ms=runs, **more,
        )  # fmt: skip  # what it is, then how it behaves
        offers.append(an_offer(job, runs))
    return offers


def begun(offers: list[Offer], how: Settings, until_ms: int) -> tuple[Run, Grants]:
    """Three machines, and the run up to `until_ms`."""
    grants = Grants()
    run = Run(a_scenario([a_node(f"n{at}", 8) for at in range(3)], offers), how, make_sim, (grants,))
    for _ in run.turns(until_ms):
        pass
    return run, grants


@pytest.mark.parametrize("name", POLICIES)
@FEW
@given(random=st.randoms(use_true_random=False))
def test_exact_estimates_and_no_newcomers_give_what_then_happens(name: str, random: Random) -> None:
    how = POLICIES[name]
    offers = drawn(random, widths=how.preemption is None)
    run, grants = begun(offers, how, offers[-1].job.submitted_ms + random.randrange(20 * MINUTE))
    waiting = {key[3] for key in run.world.freeze().pending}
    before = dict(grants.at)
    found = play_forward(run.world, how, run.loop.clock.now(), waiting - before.keys(), Budget(5000))
    run.finish()
    then = {job: at for job, at in grants.at.items() if job in waiting and job not in before}
    assert {job: guess.at_ms for job, guess in found.starts.items()} == then
    assert not found.is_cut


@FEW
@given(random=st.randoms(use_true_random=False))
def test_looking_ahead_touches_neither_the_world_nor_what_happens_next(random: Random) -> None:
    how = POLICIES["backfill"]
    offers = drawn(random)
    middle = offers[len(offers) // 2].job.submitted_ms
    run, grants = begun(offers, how, middle)
    quiet, expected = begun(offers, how, middle)
    before = image_of(run.world)
    waiting = [key[3] for key in run.world.freeze().pending]
    predict(run.world, how, run.loop.clock.now(), waiting)
    count_forward(run.world.freeze(), how, run.loop.clock.now(), waiting)
    assert image_of(run.world) == before
    run.finish()
    quiet.finish()
    assert same_world(run.world.freeze(), quiet.world.freeze())
    assert grants.at == expected.at


def waiting_site() -> WorldBuilder:
    """A card that is busy for an hour, and two who wait for it."""
    site = WorldBuilder().node("n", 1).submit("busy", estimate_ms=60 * MINUTE)
    carried_out(site)
    return site.started("busy").submit("a", estimate_ms=10 * MINUTE).submit("b", estimate_ms=5 * MINUTE)


def starts(site: WorldBuilder, how: Settings = PLAIN, *names: str, **more: Any) -> dict[str, int]:
    """Minutes at which the named (or both) are predicted to start."""
    wanted = [JobId(name) for name in names or ("a", "b")]
    found = predict(site.world, how, site.at, wanted, **more)
    return {job: guess.at_ms // MINUTE for job, guess in found.starts.items()}


def test_jobs_start_one_after_the_other_as_what_runs_ends() -> None:
    assert starts(waiting_site()) == {"a": 60, "b": 70}


def test_the_order_is_that_of_the_policy() -> None:
    assert starts(waiting_site(), settings(backfill=Backfill())) == {"b": 60, "a": 65}


def test_what_has_no_end_is_waited_for_without_one() -> None:
    site = WorldBuilder().node("n", 1).submit("busy")
    carried_out(site)
    site.submit("a", estimate_ms=MINUTE)
    assert starts(site, PLAIN, "a") == {}
    assert starts(site, PLAIN, "a", estimate_of=lambda job: job.estimate_ms or 7 * MINUTE) == {"a": 7}


def test_a_job_that_outran_its_estimate_ends_later_not_never() -> None:
    assert starts(waiting_site().later(90 * MINUTE), PLAIN, "a") == {"a": 90 + 91}


def test_a_start_that_was_not_confirmed_and_an_end_that_was_not_seen_count() -> None:
    site = WorldBuilder().nodes(2, 1).submit("new", estimate_ms=30 * MINUTE).submit("old", estimate_ms=MINUTE)
    carried_out(site)
    site.started("old").stopping("old").submit("a", estimate_ms=MINUTE).submit("b", estimate_ms=MINUTE)
    assert starts(site) == {"a": 0, "b": 1}


def test_a_spent_budget_leaves_the_rest_to_counts_or_unknown() -> None:
    site = waiting_site()
    wanted = [JobId("a"), JobId("b")]
    counted = predict(site.world, PLAIN, 0, wanted, Budget(0))
    assert {guess.method for guess in counted.starts.values()} == {Method.COUNTS}
    assert {job: guess.at_ms // MINUTE for job, guess in counted.starts.items()} == {"a": 60, "b": 70}
    site.submit("slice", a_request(compute=500), estimate_ms=MINUTE)
    cut = predict(site.world, PLAIN, 0, wanted, Budget(0))
    assert (cut.starts, cut.is_cut) == ({}, True)
    assert predict(site.world, PLAIN, 0, wanted, Budget(99, lambda: True)).is_cut


def test_counts_stop_when_time_is_up_and_say_so() -> None:
    site = waiting_site()
    asked: list[int] = []

    def is_spent() -> bool:
        asked.append(len(asked))
        return len(asked) > 1  # those who wait, then the present

    found = count_forward(site.frozen, PLAIN, 0, [JobId("a"), JobId("b")], Budget(is_spent=is_spent))
    assert (found.starts, found.is_cut) == ({}, True)


def test_where_ends_are_doubtful_the_start_in_the_middle_of_all_futures_is_taken() -> None:
    def starts_in(*busy: int | None) -> dict[str, int]:
        def futures(job: Job, ran_ms: int) -> list[int | None]:
            return [
                MINUTE if minutes and job.id != "busy" else minutes and minutes * MINUTE for minutes in busy
            ]

        wanted = [JobId("a"), JobId("b")]
        found = count_forward(waiting_site().frozen, PLAIN, 0, wanted, futures=futures)
        return {job: guess.at_ms // MINUTE for job, guess in found.starts.items()}

    assert starts_in(20, 80, 40) == {"a": 40, "b": 41}
    assert starts_in(20, 90, 50, 30) == {"a": 40, "b": 41}, "between the two in the middle"
    assert starts_in(None) == {"a": 60}, "nobody knows more than was told, nor how long a runs"


def test_a_guess_says_what_was_seen_of_the_job() -> None:
    for budget in (Budget(), Budget(0)):
        guess = predict(waiting_site().world, PLAIN, 0, [JobId("a")], budget).starts[JobId("a")]
        assert (guess.length_ms, guess.cards, guess.waiting) == (10 * MINUTE, 1, 2)


def test_counts_are_as_good_as_the_plan_only_where_all_is_even() -> None:
    assert is_even(waiting_site().frozen, PLAIN)
    assert is_even(waiting_site().frozen, settings(backfill=Backfill()))
    assert not is_even(waiting_site().frozen, settings(queues=(Queue("a"),)))
    assert not is_even(waiting_site().frozen, settings(preemption=Preemption()))
    assert not is_even(waiting_site().submit("c", priority=1).frozen, PLAIN)
    assert not is_even(waiting_site().submit("c", array=Array("many", 3, 1)).frozen, PLAIN)
    assert not is_even(waiting_site().node("m", 2).frozen, PLAIN)
    quick = predict(waiting_site().world, PLAIN, 0, [JobId("a")], Budget(most_even=0))
    assert quick.starts[JobId("a")].method is Method.COUNTS


def wide_site(width: int) -> WorldBuilder:
    """An elastic job, said to run for 8 h on one card, has so many of eight; another waits for all."""
    node = a_node("n", 8)
    linear = Elastic((1, 2, 4, 8), (1000, 2000, 4000, 8000))
    site = WorldBuilder().node(node).submit("e", cards=8, elastic=linear, estimate_ms=480 * MINUTE)
    site.granted("e", a_placement(node, range(width))).started("e")
    return site.submit("a", cards=8, estimate_ms=MINUTE)


@pytest.mark.parametrize(("width", "minutes"), [(1, 480), (2, 240), (8, 60)])
def test_an_elastic_job_is_over_sooner_the_wider_it_is(width: int, minutes: int) -> None:
    site = wide_site(width)
    assert starts(site, PLAIN, "a") == {"a": minutes}
    assert starts(site, PLAIN, "a", budget=Budget(0)) == {"a": minutes}
    how = settings(backfill=Backfill(first=1, overdue_wide_ms=0))
    (kept,) = [step for step in planned(site, how).steps if isinstance(step, Reserve)]
    assert kept.from_ms == minutes * MINUTE, "its reservation begins then"


def test_what_it_did_before_it_grew_counts() -> None:
    """Half of it on one card in four hours, the other half on eight in half an hour."""
    site, node = wide_site(1).later(240 * MINUTE), a_node("n", 8)
    event = Resized(site.at, JobId("e"), 1, (a_placement(node, range(8)),))
    assert starts(site.happen(event), PLAIN, "a") == {"a": 270}


def test_a_gang_with_fewer_members_is_over_later() -> None:
    """Two of three members take an hour and a half for what all do in one."""
    node = a_node("n", 2)
    site = WorldBuilder().node(node).submit("g", [a_request(1)] * 3, minimum=1, estimate_ms=60 * MINUTE)
    site.granted("g", a_placement(node, [0]), a_placement(node, [1])).started("g").submit("a", estimate_ms=1)
    assert starts(site, PLAIN, "a") == {"a": 90}


def test_no_job_is_reckoned_to_outlive_its_limit_at_any_width() -> None:
    node = a_node("n", 2)
    site = WorldBuilder().node(node)
    site.submit("g", [a_request(1)] * 3, minimum=1, estimate_ms=60 * MINUTE, limit_ms=70 * MINUTE)
    site.granted("g", a_placement(node, [0]), a_placement(node, [1])).started("g").submit("a", estimate_ms=1)
    assert starts(site, PLAIN, "a") == {"a": 70}


def array_site(width: int, *minutes: int | None) -> WorldBuilder:
    """One of three cards is never given back, one is in an hour; an array waits, and one job behind it."""
    site = WorldBuilder().node("n", 3).submit("ever").submit("busy", estimate_ms=60 * MINUTE)
    carried_out(site)
    site.started("ever").started("busy").submit("first", estimate_ms=20 * MINUTE)
    carried_out(site)
    site.started("first")
    for at, length in enumerate(minutes):
        how = {"estimate_ms": None if length is None else length * MINUTE}
        site.submit(f"a{at}", array=Array("a", len(minutes), width), **how)
    return site.submit("last", estimate_ms=MINUTE)


@pytest.mark.parametrize(
    ("width", "minutes", "expected"),
    [
        pytest.param(1, (30, 40, 50), {"a0": 20, "a1": 50, "a2": 90, "last": 60}, id="one after the other"),
        pytest.param(2, (30, 40, 50), {"a0": 20, "a1": 50, "a2": 60, "last": 90}, id="as room allows"),
        pytest.param(1, (30, None, 50), {"a0": 20, "a1": 50, "last": 60}, id="one of them has no known end"),
        pytest.param(1, (None, 40, 50), {"a0": 20, "last": 60}, id="nor is anything known of those behind"),
    ],
)
def test_of_an_array_no_more_than_its_width_are_predicted_at_once(
    width: int, minutes: tuple[int | None, ...], expected: dict[str, int]
) -> None:
    """By the plan as by counts; what is not known is not said."""
    site = array_site(width, *minutes)
    wanted = [JobId(name) for name in ("a0", "a1", "a2", "last")]
    played = play_forward(site.world, PLAIN, site.at, wanted).starts
    assert {job: guess.at_ms // MINUTE for job, guess in played.items()} == expected
    if width == 1:  # a freed card of a wider one goes to the next of the array, whoever stands before it
        counted = count_forward(site.frozen, PLAIN, site.at, wanted).starts
        assert {job: guess.at_ms // MINUTE for job, guess in counted.items()} == expected


def test_who_follows_one_of_an_array_that_runs_begins_when_that_is_over() -> None:
    site = WorldBuilder().node("n", 2)
    for at, length in enumerate((10, 20, 30)):
        site.submit(f"a{at}", array=Array("a", 3, 1), estimate_ms=length * MINUTE)
    carried_out(site)
    site.started("a0").submit("wide", cards=2, estimate_ms=MINUTE)
    wanted = [JobId(name) for name in ("a1", "a2", "wide")]
    for found in (play_forward(site.world, PLAIN, 0, wanted), count_forward(site.frozen, PLAIN, 0, wanted)):
        assert {job: guess.at_ms // MINUTE for job, guess in found.starts.items()} == {
            "a1": 10,
            "a2": 30,
            "wide": 60,
        }


@pytest.mark.parametrize("how", [settings(), settings(discipline=Discipline.STRICT)])
@FEW
@given(random=st.randoms(use_true_random=False))
def test_counts_agree_with_the_plan_where_cards_are_alike(how: Settings, random: Random) -> None:
    """One machine and jobs of whole cards: nothing but the order decides."""
    offers = []
    for seq in range(12):
        runs = random.randrange(1, 90) * MINUTE
        job = a_job(f"j{seq}", cards=random.choice((1, 2, 4, 8)), at=seq, seq=seq, estimate_ms=runs)
        offers.append(an_offer(job, runs))
    run = Run(a_scenario([a_node("n", 8)], offers), how, make_sim)
    for _ in run.turns(20):
        pass
    waiting = [key[3] for key in run.world.freeze().pending]
    now = run.loop.clock.now()
    played = play_forward(run.world, how, now, waiting).starts
    counted = count_forward(run.world.freeze(), how, now, waiting).starts
    assert {job: guess.at_ms for job, guess in counted.items()} == {
        job: guess.at_ms for job, guess in played.items()
    }
