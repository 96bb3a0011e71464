"""kill -9 of the journal's writer, of the service, of supervisors and of jobs at random moments.

A child process is the service; it says what it has acknowledged through a pipe and is killed in the middle of
whatever it does. Then everything that is on the disk and in the kernel is looked at.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from aliquot.core.events import (
    CardsFaulty,
    Ended,
    Event,
    Evicting,
    JobCancelled,
    JobSubmitted,
    Outcome,
    Resizing,
)
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import HOLDING, Phase
from aliquot.core.world import World
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.leftovers import find_supervisors
from aliquot.engines.local.nursery import living_nursery
from tests.support.local import SLOTS, Site
from tests.support.same import same_world

KILLS = 30
MANY_KILLS = 300


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_every_acknowledged_append_survives_the_death_of_its_writer(tmp_path: Path, kills: int) -> None:
    random = Random(kills)
    path = tmp_path / "journal.db"
    acknowledged = 0
    for _ in range(kills):
        with forked(lambda say, first=acknowledged: append_for_ever(path, first, say)) as (pid, heard):
            time.sleep(random.random() * (0.03 if random.random() < 0.2 else 0.15))
            os.kill(pid, signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, heard())])
        with SqliteJournal(path) as journal:
            kept = [event.at for event in journal.replay()]
            assert journal.notes == []
        assert kept == list(range(len(kept)))
        assert len(kept) >= acknowledged
        acknowledged = len(kept)
    assert acknowledged > kills


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_no_job_is_lost_or_run_twice_at_once_whoever_dies(tmp_path: Path, kills: int) -> None:
    random = Random(kills + 1)
    story = Story(tmp_path)
    for number in range(kills):
        with forked(lambda say, number=number: story.serve(number, say)) as (pid, heard):
            end = time.monotonic() + 0.02 + random.random() * 0.3
            while time.monotonic() < end:
                time.sleep(0.01)
                if random.random() < 0.05:
                    story.kill_somebody(random)
            os.kill(pid, signal.SIGKILL)
            story.acknowledged += heard()
        story.inspect()
    story.finish()
    assert len(story.acknowledged) > kills  # else too little went on to prove anything


class Story:
    """One site over many services."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.acknowledged: list[str] = []
        (folder / "runs").mkdir()

    def serve(self, number: int, say: Callable[[str], None]) -> None:
        """A service under load until it is killed: submissions, exits, failures, retries, cancellations."""
        random = Random(number)
        site = Site(self.folder, durable=False)
        count = 0
        while True:
            if len(site.world.jobs) < 3 * SLOTS:
                name = f"j{number}-{count}"
                count += 1
                site.submit(name, self.script(name, random), retries=random.randrange(2))
                if random.random() < 0.2:
                    site.cancel(name if random.random() < 0.5 else f"j{number - 1}-0")
            if random.random() < 0.1:
                bad = tuple(card.uuid for card in site.nodes[0].cards if random.random() < 0.2)
                site.cluster.tell(CardsFaulty(0, site.nodes[0].id, bad))
            seen = site.turn(5)
            for event in seen:
                if isinstance(event, JobSubmitted):
                    say(event.job.id)

    def script(self, name: str, random: Random) -> str:
        """Takes a lock that tells of two attempts at once, works a little, may leave children, may fail."""
        lock, bad = self.folder / "runs" / name, self.folder / "bad"
        work = random.choice(
            ["true", "sleep 0.02", "sleep 0.2 & sleep 0.05", "setsid -f sleep 0.3", "exit 1"]
        )
        return f"exec 9>>{lock}; flock -n 9 || echo {name} >> {bad}; echo x >&9; {work}"

    def kill_somebody(self, random: Random) -> None:
        """A supervisor, the command beside it, or the nursery that both come from."""
        if random.random() < 0.2 and (nursery := living_nursery(self.folder / "attempts")) is not None:
            with suppress(ProcessLookupError):
                os.kill(nursery, signal.SIGKILL)
            return
        found = find_supervisors(self.folder / "attempts")
        if not found:
            return
        victim = random.choice(found)
        begun = victim.begun()
        pid = victim.holder() if random.random() < 0.5 or begun is None else begun.pid
        if pid is not None and victim.holder() is not None:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    def inspect(self) -> None:
        """With no service alive: the record and the machine say the same."""
        assert not (self.folder / "bad").exists(), (self.folder / "bad").read_text()
        with SqliteJournal(self.folder / "journal.db", durable=False) as journal:
            assert journal.notes == []
            world = journal.resume()
            replayed = World()
            replayed.apply_all(journal.replay())
            submitted = {e.job.id for e in journal.replay() if isinstance(e, JobSubmitted)}
            assert all(journal.payload(job) is not None for job in submitted)
        assert same_world(world.freeze(), replayed.freeze())
        assert submitted >= set(self.acknowledged)
        for folder in find_supervisors(self.folder / "attempts"):
            record = world.jobs.get(folder.held.job)
            assert record is not None, f"{folder.held} runs, its job is over"
            assert (record.attempt, record.phase in HOLDING) == (folder.held.attempt, True)

    def finish(self) -> None:
        """The last service brings everything to its end; every job has exactly one."""
        with Site(self.folder, durable=False) as site:
            site.until(lambda: not site.world.jobs, "all to end")
            assert site.world.outstanding() == []
            assert len(site.world.grants) == 0
            events = list(site.journal.replay())
        assert not (self.folder / "bad").exists()
        assert ended_more_than_once(events) == []
        submitted = {event.job.id for event in events if isinstance(event, JobSubmitted)}
        assert submitted >= set(self.acknowledged)
        assert find_supervisors(self.folder / "attempts") == []


def ended_more_than_once(events: list[Event]) -> list[JobId]:
    """Jobs with two final ends on record: folding ignores the second, but none should be needed.

    An attempt that was stopped for others, or for another width, and failed of it is not the end of its job.
    """
    stopped = {(event.job, event.attempt) for event in events if isinstance(event, Evicting | Resizing)}
    cancelled = {event.job for event in events if isinstance(event, JobCancelled)}
    finals = [
        event.job
        for event in events
        if isinstance(event, Ended) and event.outcome is not Outcome.LOST and event.job not in cancelled
        if event.outcome is Outcome.SUCCEEDED or (event.job, event.attempt) not in stopped
    ]
    return sorted({job for job in finals if finals.count(job) > 1})


def append_for_ever(path: Path, first: int, say: Callable[[str], None]) -> None:
    with SqliteJournal(path) as journal:
        at = first
        while True:
            journal.append([JobCancelled(at, JobId("j")), JobCancelled(at + 1, JobId("j"))])
            at += 2
            say(str(at))


@contextmanager
def forked(work: Callable[[Callable[[str], None]], None]) -> Iterator[tuple[int, Callable[[], list[str]]]]:
    """A child that does `work`; gives its pid and what it said so far (after its death: all)."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work(lambda text: void(os.write(there, text.encode() + b"\n")))
        finally:
            os._exit(1)
    os.close(there)

    def heard() -> list[str]:
        os.waitpid(pid, 0)
        text = b""
        while piece := os.read(here, 65536):
            text += piece
        return text.decode().split()

    try:
        yield pid, heard
    finally:
        os.close(here)


def void(_: object) -> None:
    """For its effect."""


def test_a_job_that_ends_while_no_service_is_there_is_heard_of_later(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        site.submit("short", "sleep 0.1; exit 4").submit("long", "sleep 60").until_running("short", "long")
        site._close()
        time.sleep(0.3)
        site._open()
        site.until_over("short")
        assert site.ending("short").status == 4
        assert (site.phase("long"), site.starts("long")) == (Phase.RUNNING, [1])
        site.cancel("long").until_over("long")


def test_an_attempt_nobody_has_on_record_is_ended_and_named(tmp_path: Path) -> None:
    with Site(tmp_path, durable=False) as site:
        site.submit("j", "sleep 60").until_running("j")
        site._close()
        for file in tmp_path.glob("journal.db*"):
            file.unlink()
        site._open()
        assert site.said == ["j attempt 1: runs, but is not on record; it is ended"]
        site.until(lambda: site.at("j").holder() is None)
