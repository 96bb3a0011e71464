"""The local cluster keeps what every cluster promises, with real processes, and its clock what a clock does.

The contract speaks in turns; processes take time. So a turn here waits a little for news as long as anything
lives, as the loop of a service does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from aliquot.core.events import Event, JobSubmitted, NodeJoined
from aliquot.core.ids import JobId
from aliquot.core.steps import Kill, Move, Start
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.launcher import Launcher
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.places import Places
from tests.contracts.test_cluster import (
    JOBS,
    NODES,
    Watched,
    test_a_kill_of_an_attempt_long_over_spares_the_present_one,
    test_a_start_that_comes_again_later_changes_nothing,
    test_a_step_about_what_is_not_there_is_harmless,
    test_every_kill_is_answered_by_an_end_and_frees_the_cards,
    test_every_start_is_answered_however_often_it_comes,
    test_in_the_end_all_is_quiet_and_free,
    test_it_tells_of_its_nodes_before_any_job,
    test_times_of_what_it_tells_never_go_back,
    test_what_it_tells_can_be_written_down,
    test_what_was_told_is_told_once,
)
from tests.support.local import a_payload, supervisor, wait_for

__all__ = [
    "test_a_kill_of_an_attempt_long_over_spares_the_present_one",
    "test_a_start_that_comes_again_later_changes_nothing",
    "test_a_step_about_what_is_not_there_is_harmless",
    "test_every_kill_is_answered_by_an_end_and_frees_the_cards",
    "test_every_start_is_answered_however_often_it_comes",
    "test_in_the_end_all_is_quiet_and_free",
    "test_it_tells_of_its_nodes_before_any_job",
    "test_times_of_what_it_tells_never_go_back",
    "test_what_it_tells_can_be_written_down",
    "test_what_was_told_is_told_once",
]  # not the move: a process cannot be moved, see test_launcher


class Patient:
    """A local cluster whose `observe` waits for news while attempts live; `late` is told after 100 ms."""

    is_over = False

    def __init__(self, cluster: LocalCluster, late: Event) -> None:
        self.cluster = cluster
        self._late, self._late_at = [late], cluster.clock.now() + 100

    def observe(self) -> Sequence[Event]:
        """At most a second."""
        end = time.monotonic() + 1
        events = self.cluster.observe()
        while not events and self.cluster.launcher.living() and time.monotonic() < end:
            if self._late and self.cluster.clock.now() >= self._late_at:
                self.cluster.tell(self._late.pop())
            self.cluster.wait(self.cluster.clock.now() + 50)
            events = self.cluster.observe()
        return events

    def carry_out(self, steps: Sequence[Start | Kill | Move]) -> None:
        """As it is."""
        self.cluster.carry_out(steps)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    clock = LocalClock()
    places = Places(supervisor(), tmp_path / "attempts", tmp_path / "output")
    payload = a_payload(["sleep", "0.5"])  # one process: its end is one piece of news
    launcher = Launcher(places, clock.now, lambda job: payload if job != JobId("none") else None)
    cluster = LocalCluster(launcher, clock)
    cluster.tell(*[NodeJoined(0, node) for node in NODES], *[JobSubmitted(0, job) for job in JOBS[:2]])
    yield Watched(Patient(cluster, JobSubmitted(0, JOBS[2])))
    launcher.close()
    for folder in find_supervisors(places.state):
        folder.command("kill test-over")
    wait_for(lambda: not find_supervisors(places.state))


# --- the clock -------------------------------------------------------------------------------------------


def test_after_a_restart_time_goes_on_from_the_last_event_whatever_the_wall_clock_says() -> None:
    ahead = time.time_ns() // 1_000_000 + 3_600_000
    clock = LocalClock(since=ahead)
    assert ahead <= clock.now() < ahead + 1000
    assert "3600 s behind" in clock.note or "3599 s behind" in clock.note
    assert -3_601_000 < clock.drift_ms() < -3_598_000
    assert LocalClock(since=1).note == ""


def test_a_wall_clock_that_is_set_while_the_service_runs_changes_no_time_and_is_told_once() -> None:
    wall = 1_000_000_000
    clock = LocalClock(wall=lambda: wall)
    before = clock.now()
    assert clock.news() == ""
    for to, word in ((1_003_600_000, "ahead of"), (996_400_000, "behind")):
        wall = to
        assert 0 <= clock.now() - before < 1000
        assert f"3600 s {word} the service" in clock.news().replace("3599", "3600").replace("3601", "3600")
        assert clock.news() == ""


def test_a_wait_ends_at_the_earliest_time_asked_for(tmp_path: Path) -> None:
    clock = LocalClock()
    launcher = Launcher(Places(tmp_path, tmp_path / "a", tmp_path / "o"), clock.now, lambda job: None)
    cluster = LocalCluster(launcher, clock)
    before = clock.now()
    clock.wake_at(before + 5000)
    clock.wake_at(before + 60)
    cluster.wait()
    assert before + 60 <= clock.now() < before + 1000
    assert clock.next_wake() in {before + 60, None}
    launcher.close()


@pytest.mark.parametrize("call", [LocalCluster.wait])
def test_a_wait_ends_when_somebody_tells_something(
    tmp_path: Path, call: Callable[[LocalCluster], None]
) -> None:
    clock = LocalClock()
    launcher = Launcher(Places(tmp_path, tmp_path / "a", tmp_path / "o"), clock.now, lambda job: None)
    cluster = LocalCluster(launcher, clock)
    cluster.tell(JobSubmitted(0, JOBS[0]))
    call(cluster)
    (event,) = cluster.observe()
    assert abs(event.at - clock.now()) < 1000
    launcher.close()
