"""A lookout works beside the loop, keeps to its time, and says what it did not reach."""

from __future__ import annotations

import threading
import time
from itertools import count

from aliquot.control.looking import ASKED_MS, LOOK_S, Lookout
from aliquot.core.ids import JobId
from aliquot.core.jobs import Bound
from aliquot.core.promise import Answer
from aliquot.core.queueing.outlook import Unsaid
from aliquot.core.room import backfill  # noqa: F401 - compiled here, not within what is looked at
from tests.support.local import wait_for
from tests.support.planning import PLAIN, carried_out
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE
MANY = 200


def a_line(jobs: int) -> WorldBuilder:
    """One card, and jobs of a minute each."""
    site = WorldBuilder().node("n", 1).submit("busy", estimate_ms=MINUTE)
    carried_out(site)
    site.started("busy")
    for at in range(jobs):
        site.submit(f"j{at:05}", estimate_ms=MINUTE)
    return site


def test_a_thread_looks_and_the_loop_goes_on() -> None:
    site = a_line(3)
    done = threading.Event()
    lookout = Lookout(PLAIN, site.world, on_look=done.set)
    lookout.start()
    assert lookout.look(site.world, 0) is None, "it tells when it is done"
    assert done.wait(20)
    assert [lookout.seen.table[JobId(f"j{at:05}")].at_ms for at in range(3)] == [
        MINUTE,
        2 * MINUTE,
        3 * MINUTE,
    ]
    assert lookout.seen.places[JobId("j00001")].position == 2
    assert lookout.look(site.world, 0) is None, "nothing has happened"
    lookout.stop()


def test_whoever_waits_for_a_look_gets_it_sooner() -> None:
    site = a_line(1)
    lookout = Lookout(PLAIN, site.world, lambda: 0.0)
    assert lookout.look(site.world, 0) is None
    lookout.see([], site.world)
    before = lookout.seen
    assert lookout.look(site.world, ASKED_MS) is not None
    lookout.ask()
    assert lookout.look(site.world, ASKED_MS) is None
    assert lookout.seen is not before


def test_where_many_wait_the_first_in_line_are_known_and_the_rest_is_said_to_be_too_far() -> None:
    site = a_line(MANY)
    lookout = Lookout(PLAIN, site.world, lambda: 0.0, counted=MANY // 2)
    lookout.look(site.world, 0)
    table = lookout.seen.table
    assert len(table) == MANY
    known = [job for job, expected in table.items() if expected.at_ms is not None]
    assert known == [f"j{at:05}" for at in range(MANY // 2)]
    assert {expected.unsaid for job, expected in table.items() if job not in known} == {Unsaid.TOO_FAR}


def test_a_look_keeps_to_its_time_and_says_the_best_so_far() -> None:
    site = a_line(MANY)
    ticks = count()
    # time passes whenever somebody asks for it, so that the time of a part is up after some of the line
    lookout = Lookout(PLAIN, site.world, lambda: next(ticks) * LOOK_S / 50)
    lookout.look(site.world, 0)
    known = [job for job, expected in lookout.seen.table.items() if expected.at_ms is not None]
    assert 0 < len(known) < MANY
    assert known[0] == "j00000"
    assert len(lookout.seen.table) == MANY
    assert next(ticks) < 400, "nobody was asked for long after the time was up"


def test_a_look_holds_nobody_up() -> None:
    site = a_line(MANY)
    lookout = Lookout(PLAIN, site.world)
    lookout.start()
    lookout.look(site.world, 0)
    turns = 0
    while lookout._is_busy:
        lookout.see([], site.world)
        turns += 1
        time.sleep(0.001)
    assert turns, "learning went on meanwhile"
    wait_for(lambda: len(lookout.seen.table) == MANY)
    lookout.stop()


def test_who_comes_first_is_told_before_counting_is_loaded() -> None:
    """A compiler takes seconds to load, and whoever submits waits for one."""
    site, is_ready = a_line(3), False
    lookout = Lookout(PLAIN, site.world, is_ready=lambda: is_ready)
    lookout.look(site.world, 0)
    assert lookout.seen.table[JobId("j00002")].at_ms == 3 * MINUTE
    assert lookout.look(site.world, 1) is not None, "it looks again once it may count"
    is_ready = True
    before = lookout.seen
    lookout.look(site.world, HOUR)
    assert lookout.seen is not before
    assert lookout.look(site.world, 2 * HOUR) is None, "nothing more to see"


def test_before_counting_is_loaded_nobody_is_counted() -> None:
    site = a_line(MANY)
    lookout = Lookout(PLAIN, site.world, is_ready=lambda: False)
    assert lookout.look(site.world, 0) is not None
    assert lookout.seen.table == {}


def test_bounds_are_judged_by_how_long_jobs_turned_out_to_run() -> None:
    """Jobs were told to run a minute and ran three: the sixtieth in line is not expected in an hour."""
    site = WorldBuilder().node("n", 1)
    lookout = Lookout(PLAIN, site.world, lambda: 0.0)
    seen = 0

    def show() -> None:
        nonlocal seen
        lookout.see(site.events[seen:], site.world)
        seen = len(site.events)

    for at in range(60):
        site.submit(f"past{at}", estimate_ms=MINUTE)
        carried_out(site)
        show()
        site.started(f"past{at}").later(3 * MINUTE).ended(f"past{at}")
        show()
    for at in range(MANY):
        site.submit(f"j{at:05}", estimate_ms=MINUTE, bound=Bound(start_by_ms=site.at + HOUR))
    carried_out(site)
    show()
    lookout.look(site.world, site.at)
    sixtieth = lookout.seen.table[JobId("j00060")]
    assert sixtieth.at_ms is not None
    assert sixtieth.at_ms > site.at + 2 * HOUR
    assert lookout.seen.promises[JobId("j00060")].answer is not Answer.POSSIBLE
