"""Failures at every step of an attempt, with real processes: what was taken is given back, once.

`tests/core/test_world_faults_crashes` has the same of the ledger alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from aliquot.core import commit
from aliquot.core.events import Ended, Granted, JobCancelled, Outcome, StartRefused
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Kill, Start
from aliquot.engines.local.cgroups import Cgroups, Group
from aliquot.engines.local.leftovers import find_supervisors, start_ticks
from aliquot.engines.local.payload import Limits
from tests.support.build import a_placement, a_request
from tests.support.first_fit import first_fit
from tests.support.local import SLOTS, Site, wait_for
from tests.support.same import rows_of, same_world

ROUNDS: Final = 25
MANY_ROUNDS: Final = 200
THREE: Final = a_request(3, cpu=5_001)


class Stubborn(Cgroups):
    """Groups that cannot be made while `fails`."""

    def __init__(self) -> None:
        super().__init__(root=Path("/nonexistent"))
        self.missing = {}
        self.fails = False

    def find(self, name: str) -> Group:
        return Group(name, {})

    def make(self, name: str, limits: Limits) -> Group:
        if self.fails:
            raise OSError(28, "No space left on device", name)
        return self.find(name)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, durable=False) as made:
        yield made


# --- where a service may die -----------------------------------------------------------------------------


def die_reserving(site: Site) -> None:
    """Reserve and persist: decided, and dead before it is on record."""
    site._record(site.cluster.observe())
    frozen = site.world.freeze()
    commit.check(first_fit(frozen, site.clock.now()), frozen, site.clock.now())
    site.crash()


def die_persisted(site: Site) -> None:
    """On record, and dead before anything is done."""
    site._record(site.cluster.observe())
    frozen = site.world.freeze()
    site._record(commit.check(first_fit(frozen, site.clock.now()), frozen, site.clock.now()).events)
    site.crash()


def die_launching(site: Site) -> None:
    """Ordered, and dead before anyone says how it went."""
    site.turn()
    site.crash()


def die_releasing(site: Site) -> None:
    """Release: the news is taken, and dead before it is on record."""
    site.turn()
    site.cluster.wait(site.clock.now() + 30)
    site.cluster.observe()
    site.crash()


# --- what else may fail ----------------------------------------------------------------------------------


def fail_isolating(site: Site) -> None:
    """Isolate: its group cannot be made."""
    assert isinstance(site.cgroups, Stubborn)
    site.cgroups.fails = True
    site.turn()
    site.cgroups.fails = False


def fail_launching(site: Site) -> None:
    """Launch: the host cannot run the supervisor."""
    right, site.launcher.places = site.launcher.places, site.places._replace(program=site.folder / "gone")
    site.turn()
    site.launcher.places = right


def kill_supervisor(site: Site) -> None:
    """Watch: nobody sees how it ends."""
    site.turn()
    for folder in find_supervisors(site.places.state):
        with suppress(ProcessLookupError):
            os.kill(folder.holder() or -(1 << 21), signal.SIGKILL)


def kill_nursery(site: Site) -> None:
    """Launch or watch: the process that begins supervisors is gone, with orders perhaps."""
    site.turn()
    if site.launcher._nursery is not None:
        os.kill(site.launcher._nursery._pid, signal.SIGKILL)


def give_up(site: Site) -> None:
    """Its owner does not want it any more, at whatever step it is."""
    for job in list(site.world.jobs):
        site.cancel(job)
    site.turn()


FAILURES: Final[tuple[Callable[[Site], None], ...]] = (
    *(die_reserving, die_persisted, die_launching, die_releasing),
    *(fail_isolating, fail_launching, kill_supervisor, kill_nursery, give_up),
)


@pytest.mark.parametrize(
    "rounds", [ROUNDS, pytest.param(MANY_ROUNDS, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_b08_failures_at_random_points_give_back_what_was_taken_once(tmp_path: Path, rounds: int) -> None:
    """B08: reserve, persist, isolate, launch, watch, release; a job of three cards each time."""
    random = Random(rounds)
    with Site(tmp_path, durable=False, cgroups=Stubborn()) as site:
        site.turn()
        before = rows_of(site.world.freeze())
        for number in range(rounds):
            name = f"j{number}"
            site.submit(name, random.choice(("true", "sleep 0.02", "exit 1", "no-such-program")), THREE)
            for _ in range(random.randrange(1, 4)):
                random.choice(FAILURES)(site)
            finish(site, name)
            assert rows_of(site.world.freeze()) == before
            assert site.world.outstanding() == []
            assert not any(site.processes(name, attempt) for attempt in (1, 2, 3))
        events = list(site.journal.replay())
        assert same_world(site.journal.resume().freeze(), site.world.freeze())
    reserves = Counter((event.job, event.attempt) for event in events if isinstance(event, Granted))
    releases = Counter(
        (event.job, event.attempt) for event in events if isinstance(event, (Ended, StartRefused))
    )
    assert set(reserves.values()) == {1}
    assert releases == reserves, "one reserve and one release of each"


def finish(site: Site, name: str) -> None:
    """Turns until the job is over; one that has to wait before another try is given up."""
    site.until(lambda: site.phase(name) in {None, Phase.PENDING} and site._is_known(name), name)
    record = site.world.jobs.get(JobId(name))
    if record is not None and record.not_before_ms > site.clock.now():
        site.cancel(name)
    site.until_over(name)


# --- deleted while nobody serves -------------------------------------------------------------------------


def test_b14_what_was_deleted_while_nobody_served_is_ended_by_the_next_and_its_cards_go_on(
    site: Site,
) -> None:
    """B14: the deletion is on record, and the service dies before it does anything about it."""
    site.submit("j1", "trap '' TERM; sleep 60; sleep 60", a_request(SLOTS)).until_running("j1")
    left = site.processes("j1")
    site._record([JobCancelled(site.clock.now(), JobId("j1"))])
    site.crash()
    assert site.world.outstanding() == [Kill(JobId("j1"), 1)]
    site.submit("j2", "true", a_request(SLOTS)).until_over("j2")
    ended = next(at for at, event in enumerate(site.told) if isinstance(event, Ended) and event.job == "j1")
    granted = next(
        at for at, event in enumerate(site.told) if isinstance(event, Granted) and event.job == "j2"
    )
    assert ended < granted
    assert not [pid for pid in left if start_ticks(pid)]
    assert site.outcomes("j2") == [Outcome.SUCCEEDED]


def test_b14_what_ended_and_was_deleted_while_nobody_served_leaves_nothing(site: Site) -> None:
    site.submit("j1", "sleep 0.1", a_request(SLOTS)).until_running("j1")
    site._record([JobCancelled(site.clock.now(), JobId("j1"))])
    site._close()
    wait_for(lambda: not find_supervisors(site.places.state), "it to end by itself")
    site._open()
    site.submit("j2", "true", a_request(SLOTS)).until_over("j2")
    assert (site.phase("j1"), len(site.world.grants)) == (None, 0)
    site.turn(10)
    wait_for(lambda: not list(site.places.state.glob("j1.*")), "its folder to go")


def test_b14_a_stale_order_to_start_what_is_over_is_refused(site: Site) -> None:
    """B14: a delayed duplicate of the start, after the end, of the same attempt."""
    site.submit("j3", f"echo x >> {site.folder}/ran").until_over("j3")
    start = Start(JobId("j3"), 1, (a_placement(site.nodes[0], [0]),))
    site.cluster.carry_out([start, start])
    assert site.turn(50) == []
    assert (site.folder / "ran").read_text() == "x\n"


def test_b14_an_order_that_hangs_with_its_nursery_starts_nothing_once_the_job_is_given_up(site: Site) -> None:
    """B14: the order lies in the channel while the job is deleted; who would obey it wakes up later."""
    site.submit("first", "true").until_over("first")
    nursery = site.launcher._nursery
    assert nursery is not None
    os.kill(nursery._pid, signal.SIGSTOP)
    site.submit("late", f"echo x >> {site.folder}/ran")
    site.until(lambda: site.phase("late") is Phase.STARTING)
    site._record([JobCancelled(site.clock.now(), JobId("late"))])
    site._close()
    os.kill(nursery._pid, signal.SIGCONT)
    site._open()
    site.until_over("late")
    ran = site.folder / "ran"
    assert site.outcomes("late") in ([Outcome.FAILED], [Outcome.SUCCEEDED])
    before = ran.exists()
    site.turn(100)
    assert ran.exists() is before, "nothing starts after the end was told"
    assert site.at("late").holder() is None


# --- finished, and not gone ------------------------------------------------------------------------------


def test_b06_cards_are_given_on_only_when_the_last_process_is_gone(site: Site) -> None:
    """B06: the work is done and says so; a child has its grace, and the next job waits for it."""
    script = "(trap '' TERM; sleep 60; sleep 60) & sleep 0.05"
    site.submit("j1", script, a_request(SLOTS)).until(lambda: site.phase("j1") is Phase.STOPPING)
    left = site.processes("j1")
    site.submit("j2", "sleep 60", a_request(SLOTS)).turn()
    assert site.phase("j2") is Phase.PENDING
    assert left
    site.until_running("j2")
    assert not [pid for pid in left if start_ticks(pid)], "none of them was alive"
    assert site.outcomes("j1") == [Outcome.SUCCEEDED]
    assert None not in site.outcomes("j2"), "no start was tried in vain"
    site.cancel("j2").until_over("j2")


# --- whose process is it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["ticks", "boot"])
def test_a_stranger_that_got_the_pid_of_a_job_is_left_alone(site: Site, what: str) -> None:
    """Adopted is by pid, start time and boot: a number alone says nothing."""
    site.submit("j", "sleep 60").until_running("j")
    begun, pid = site.at("j").begun(), site.at("j").holder()
    assert begun is not None
    assert pid is not None
    site._close()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: site.at("j").holder() is None and start_ticks(begun.pid) != begun.ticks, "both to go")
    with subprocess.Popen(["sleep", "60"], env={}) as stranger:
        start = site.at("j").path / "start"
        text = start.read_text().replace(f"pid {begun.pid}\n", f"pid {stranger.pid}\n")
        if what == "boot":
            text = text.replace(begun.boot, "0" * len(begun.boot))
            text = text.replace(f"ticks {begun.ticks}\n", f"ticks {start_ticks(stranger.pid)}\n")
        start.write_text(text)
        site._open()
        site.until(lambda: site.starts("j") == [1, 2], "another attempt")
        assert stranger.poll() is None
        stranger.kill()
    assert site.outcomes("j") == [Outcome.LOST]
    site.cancel("j").until_over("j")
