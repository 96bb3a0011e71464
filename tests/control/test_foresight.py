"""What a loop's watcher learns: run times, intervals, how right they were; and that it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.control.encode import encode_json
from aliquot.control.experiments import Experiments
from aliquot.control.foresight import BLIND_FUTURES, FUTURES, Foresight, busy_share, find_places
from aliquot.control.looking import APART_MS, Lookout
from aliquot.control.whatif import Run
from aliquot.core.events import Ended, Granted, JobSubmitted, Outcome
from aliquot.core.ids import JobId
from aliquot.core.jobs import Bound
from aliquot.core.planner import Memo
from aliquot.core.promise import Answer
from aliquot.core.queueing.outlook import ENOUGH, Unsaid
from aliquot.core.queues import Queue
from aliquot.core.settings import Backfill
from aliquot.core.workload import Scenario
from aliquot.interfaces.cli.expectations import predicted_lines
from tests.support.build import a_job, a_node, a_scenario, an_offer
from tests.support.planning import PLAIN, carried_out, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
PATHS = (Path("site.yaml"),)
HOW = settings(backfill=Backfill(), queues=(Queue("a"), Queue("b")))


def busy_scenario(jobs: int = 160, bound: Bound = Bound()) -> Scenario:  # noqa: B008 - a frozen value
    """One card, jobs of a few minutes that come faster than they go; nobody knows how long but they."""
    random, offers = Random(3), []
    for seq in range(jobs):
        job = a_job(f"j{seq}", at=seq * 2 * MINUTE, seq=seq, queue="ab"[seq % 2], user="ann", bound=bound)
        offers.append(an_offer(job, random.randrange(1, 5 * MINUTE)))
    made = a_scenario([a_node("n", 1)], offers)
    return replace(made, policies=(("backfill", HOW),))


def experiments(scenario: Scenario) -> Experiments:
    def load(paths: Sequence[Path]) -> Scenario:
        return scenario

    return Experiments(make_sim, load, {})


def test_run_times_are_learnt_from_those_who_succeed() -> None:
    foresight, site = Foresight(PLAIN), WorldBuilder()
    for seq in range(12):
        job = a_job(f"j{seq}", user="ann")
        ran = 7 * MINUTE if seq % 2 else MINUTE
        outcome = Outcome.SUCCEEDED if seq % 2 else Outcome.FAILED
        site.happen(JobSubmitted(0, job))
        foresight.see([JobSubmitted(0, job), Granted(0, job.id, 1, ())], site.world)
        foresight.see([Ended(ran, job.id, 1, outcome)], site.world)
    assert foresight.estimate(a_job("next", user="ann")) == 7 * MINUTE
    assert foresight.estimate(a_job("next", user="ann", estimate_ms=5)) == 5, "the user's word comes first"
    assert Foresight(PLAIN).estimate(a_job("next")) is None


def test_of_who_runs_where_nothing_is_known_the_limit_speaks() -> None:
    foresight, site = Foresight(PLAIN), WorldBuilder()
    job = a_job("j", limit_ms=60 * MINUTE)
    site.happen(JobSubmitted(0, job))
    foresight.see([JobSubmitted(0, job), Granted(0, job.id, 1, ())], site.world)
    foresight.see([JobSubmitted(MINUTE, a_job("other", at=MINUTE, seq=1))], site.world)
    assert foresight.estimate(job) == 60 * MINUTE


def test_where_words_were_wrong_several_futures_are_looked_at() -> None:
    foresight, site = Foresight(PLAIN), WorldBuilder()
    assert foresight.futures is None
    for seq in range(40):
        job = a_job(f"j{seq}", seq=seq, estimate_ms=10 * MINUTE)
        site.happen(JobSubmitted(0, job))
        foresight.see([JobSubmitted(0, job), Granted(0, job.id, 1, ())], site.world)
        foresight.see([Ended((1 + seq) * MINUTE, job.id, 1, Outcome.SUCCEEDED)], site.world)
    assert foresight.futures is not None
    word = a_job("next", seq=7, estimate_ms=10 * MINUTE)
    lengths = foresight.futures(word, 0)
    assert len(set(lengths)) == FUTURES
    assert lengths == foresight.futures(word, 0), "nothing is drawn by chance"
    assert all(length is not None and length > 20 * MINUTE for length in foresight.futures(word, 20 * MINUTE))
    assert foresight.futures(a_job("unknown", seq=8, user="ann", queue="new"), 0) != (None,) * FUTURES
    assert Foresight(PLAIN).lengths(a_job("unknown"), 0) == (None,) * FUTURES


def test_where_nothing_is_said_futures_are_those_of_jobs_submitted_next_to_it() -> None:
    foresight, site = Foresight(PLAIN), WorldBuilder()
    site.happen(JobSubmitted(0, a_job("said", estimate_ms=10 * MINUTE)))
    foresight.see([JobSubmitted(0, a_job("said", estimate_ms=10 * MINUTE))], site.world)
    assert foresight.futures is None, "all have a word that was not wrong so far"
    for seq in range(40):
        job = a_job(f"j{seq}", seq=seq, queue="lab", limit_ms=60 * MINUTE)
        site.happen(JobSubmitted(0, job))
        foresight.see([JobSubmitted(0, job), Granted(0, job.id, 1, ())], site.world)
        ran = MINUTE if seq < 20 else (seq - 10) * MINUTE
        foresight.see([Ended(ran, job.id, 1, Outcome.SUCCEEDED)], site.world)
    assert foresight.futures is not None
    early, late = (a_job(f"next{seq}", seq=seq, queue="lab") for seq in (5, 40))
    assert foresight.estimate(early) == MINUTE
    assert foresight.estimate(late) > 10 * MINUTE
    lengths = foresight.futures(late, 0)
    assert len(lengths) == BLIND_FUTURES
    assert len(set(lengths)) > BLIND_FUTURES // 2
    assert all(length is not None and length > 20 * MINUTE for length in foresight.futures(late, 20 * MINUTE))
    bounded = foresight.futures(a_job("b", seq=40, queue="lab", limit_ms=15 * MINUTE), 0)
    assert max(bounded) == 15 * MINUTE, "none runs beyond its limit"
    word = a_job("word", seq=41, queue="lab", estimate_ms=10 * MINUTE)
    assert foresight.futures(word, 0) == (10 * MINUTE,) * BLIND_FUTURES, "the words of others were right"
    assert foresight.futures(word, 11 * MINUTE) == (None,) * BLIND_FUTURES


def test_a_run_is_the_same_with_and_without_predictions() -> None:
    tried = experiments(busy_scenario())
    with_them = tried.simulate(PATHS, None, None, predict=True)
    without = tried.simulate(PATHS, None, None)
    assert encode_json(replace(with_them, predicted_start=None)) == encode_json(without)
    assert without.predicted_start is None


def test_a_long_run_says_how_often_its_intervals_held() -> None:
    result = experiments(busy_scenario()).simulate(PATHS, None, None, predict=True)
    told = result.predicted_start
    assert told is not None
    assert f"of {told.jobs} intervals held" in next(predicted_lines([result]))
    assert told.unsaid >= ENOUGH
    assert told.jobs > 20
    assert told.inside_milli is not None
    assert told.inside_milli >= 600
    again = experiments(busy_scenario()).simulate(PATHS, None, None, predict=True).predicted_start
    assert again == told


def test_an_allowance_ends_guessing_and_not_the_run() -> None:
    foresight = Foresight(HOW, allowance=40)
    run = Run(busy_scenario(60), HOW, make_sim, foresight=foresight)
    run.finish()
    assert run.world.tally.granted == 60
    told = foresight.report()
    assert 0 < told.jobs + told.unsaid < 30


def test_explain_says_when_and_where_in_line_and_what_that_promises() -> None:
    bound = Bound(start_by_ms=100 * 60 * MINUTE)
    early = experiments(busy_scenario(bound=bound)).explain(PATHS, "j20", None, 40 * MINUTE, None)
    assert early.expected is not None
    assert early.promise is not None
    assert early.promise.answer is Answer.POSSIBLE, "too few starts were seen for an interval"
    late = experiments(busy_scenario(bound=bound)).explain(PATHS, "j158", None, 317 * MINUTE, None)
    assert late.expected is not None
    assert late.expected.low_ms is not None
    assert late.expected.high_ms is not None
    assert late.at_ms <= late.expected.low_ms <= late.expected.high_ms
    assert late.promise is not None
    assert late.promise.answer is Answer.MET
    assert late.position is not None
    assert late.queue_position is not None
    assert late.queue_position <= late.position <= late.waiting
    placed = experiments(busy_scenario(bound=bound)).explain(PATHS, "j0", None, None, None)
    assert placed.promise is not None
    assert placed.promise.answer is Answer.MET


def test_places_count_in_the_own_queue_and_among_all() -> None:
    site = WorldBuilder().node("n", 1).submit("busy", queue="a")
    carried_out(site, HOW)
    for at, name in enumerate("wxyz"):
        site.submit(name, queue="ab"[at % 2], estimate_ms=(4 - at) * MINUTE)
    places = find_places(site.frozen, HOW, site.at, Memo())
    assert sorted(place.position for place in places.values()) == [1, 2, 3, 4]
    assert {job: place.queue_position for job, place in places.items()} == {"w": 2, "y": 1, "x": 2, "z": 1}
    assert {place.queue_waiting for place in places.values()} == {2}


def test_cards_in_use_are_counted_with_those_that_are_shared() -> None:
    site = WorldBuilder()
    assert busy_share(site.frozen) is None
    site.node("n", 4).submit("j", cards=3)
    assert busy_share(site.frozen) == 0
    carried_out(site)
    assert busy_share(site.frozen) == 750


def live_site() -> tuple[WorldBuilder, Lookout]:
    """A full card and a waiting job with a bound, watched from now on."""
    site = WorldBuilder().node("n", 1).submit("busy", estimate_ms=60 * MINUTE)
    carried_out(site)
    site.started("busy").submit("a", estimate_ms=MINUTE, bound=Bound(start_by_ms=30 * MINUTE))
    return site, Lookout(PLAIN, site.world, lambda: 0.0)


def test_a_lookout_keeps_everybodys_start_and_the_bounds_in_danger() -> None:
    site, lookout = live_site()
    assert lookout.look(site.world, 0) is None
    seen = lookout.seen
    assert seen.table[JobId("a")].at_ms == 60 * MINUTE
    assert seen.promises[JobId("a")].answer is Answer.AT_RISK
    assert seen.crowding is not None
    assert (seen.crowding.busy_milli, seen.crowding.at_risk) == (1000, 1)
    assert not seen.crowding.is_crowded


def test_a_lookout_looks_seldom_and_only_where_something_happened() -> None:
    site, lookout = live_site()
    assert lookout.look(site.world, 0) is None
    before = lookout.seen.table
    assert lookout.look(site.world, 1) is None
    lookout.foresight.see([], site.world)
    assert lookout.look(site.world, 1) == APART_MS - 1, "come back later"
    assert lookout.seen.table is before
    assert lookout.look(site.world, APART_MS) is None
    assert lookout.seen.table is not before


def test_a_lookout_that_took_long_rests_long() -> None:
    site, _ = live_site()
    ticks = iter(range(100))
    lookout = Lookout(PLAIN, site.world, lambda: float(next(ticks)))
    assert lookout.look(site.world, 0) is None
    lookout.foresight.see([], site.world)
    wait = lookout.look(site.world, APART_MS)
    assert wait is not None
    assert wait >= 40_000 - APART_MS


def test_a_lookout_that_fails_says_that_nothing_is_known() -> None:
    site, lookout = live_site()
    lookout.look(site.world, 0)
    lookout.go_by(None)  # type: ignore[arg-type]  # whatever goes wrong
    assert lookout.look(site.world, APART_MS) is None
    assert lookout.failure is not None
    assert lookout.seen.table == {}


def test_an_end_that_nobody_knows_is_said_to_be_the_reason() -> None:
    site = WorldBuilder().node("n", 1).submit("busy")
    carried_out(site)
    site.submit("a", estimate_ms=MINUTE)
    expected = Foresight(PLAIN).expect(site.world, 0, [JobId("a")])[JobId("a")]
    assert (expected.at_ms, expected.unsaid) == (None, Unsaid.NO_END)
