"""kill -9 of the whole service at random moments, and of supervisors, jobs and their nursery.

The service is the real one: documents with queues, planner, journal on disk, supervisors, cgroups. Its load
has single jobs, arrays, gangs, jobs that are stopped for others, cards that break and come back, cancels and
new documents. A child process is the service; it says what it has acknowledged and is killed in the middle of
whatever it does. Then what the record says is held against what is on the machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from aliquot.bootstrap_local import open_service
from aliquot.control.arrays import array_of, body_id
from aliquot.control.live import ServeAsk
from aliquot.control.service import Service
from aliquot.control.views import Caller, Configuration, SiteFile, Submission
from aliquot.core.decay import HALF_LIFE_MS
from aliquot.core.errors import AliquotError
from aliquot.core.events import CardsFaulty, Event, Evicting, Granted, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import HOLDING
from aliquot.core.room import backfill  # noqa: F401 - loaded before the fork, so that no child compiles
from aliquot.core.world import World
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.leftovers import find_supervisors, is_alive
from aliquot.engines.local.mounts import find_mounts
from aliquot.engines.local.nursery import living_nursery
from aliquot.engines.local.places import site_name
from tests.engines.local.test_crashes import ended_more_than_once, forked
from tests.support.invariants import broken_rules
from tests.support.local import supervisor, wait_for
from tests.support.same import same_world

ME = Caller(os.geteuid(), os.getegid())
LIVING = 24  # jobs at a time
CALM = 8  # of them, below which there is room for everybody
MANY = 50  # kills from which on each kind of happening must have come up
FULL_REPLAY = 10  # every so many rounds all events are folded anew
RULES = """
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {{name: all}}
spec:
  queues:
    - {{name: owner, quota: {{cards: {owner}}}}}
    - {{name: guest, quota: {{cards: 1}}}}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {{name: lab}}
spec: {{preemption: {{grace: 0.3s}}, backfill: true}}
"""
RUN = """
d={runs}/$ALIQUOT_JOB; mkdir -p $d; me=$d/$ALIQUOT_ATTEMPT_NUMBER.$ALIQUOT_MEMBER
exec 9>>$me; flock -n 9 || echo "twice $me" >> {bad}
for other in $d/*; do
  case $other in
    $d/$ALIQUOT_ATTEMPT_NUMBER.*) ;;
    *) flock -n -s $other true || echo "$me beside $other" >> {bad} ;;
  esac
done
{work}
"""
QUICK = ("true", "sleep 0.05", "sleep 0.2 & sleep 0.05", "setsid -f sleep 0.3", "exit 1")
SLOW = ("sleep 3", "sleep 6", "trap 'exit 1' TERM; sleep 5 & wait")


@pytest.mark.parametrize("kills", [5, pytest.param(300, marks=pytest.mark.slow)], ids=["some", "many"])
def test_nothing_is_lost_or_run_twice_at_once_whoever_dies(kills: int) -> None:
    kills = int(os.environ.get("ALIQUOT_KILLS", kills))
    acknowledged, events = run_story(kills, Random(kills))
    kinds = Counter(type(event) for event in events)
    # how much goes on between two kills is up to the machine; that it was something is not
    assert acknowledged
    if kills >= MANY:
        assert kinds[Evicting]
        assert kinds[CardsFaulty]
        assert any(len(event.placements) > 1 for event in events if isinstance(event, Granted))
        assert any(array_of(event.job.id) for event in events if isinstance(event, JobSubmitted))


def run_story(kills: int, random: Random) -> tuple[list[str], list[Event]]:
    """So many services, one after another; what they acknowledged, and all that happened."""
    with a_story() as story:
        for number in range(kills):
            with forked(lambda say, number=number: story.serve(number, say)) as (pid, heard):
                story.torment(pid, number, random)
                said = heard()
                assert "failed" not in said, f"round {number}: {said[-20:]}"
                story.acknowledged += said
            story.inspect(is_full=number % FULL_REPLAY == 0)
        return story.acknowledged, story.finish()


class Story:
    """One site over many services."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "s"
        self.attempts = self.state / "attempts"
        self.acknowledged: list[str] = []
        self.bad, self.runs = folder / "bad", folder / "runs"
        self.runs.mkdir()
        self.file = folder / "rules.yaml"
        self.file.write_text(RULES.format(owner=6))
        (self.state / "bin").mkdir(parents=True)
        shutil.copy2(supervisor(), self.state / "bin")

    # --- the service -------------------------------------------------------------------------------------

    def serve(self, number: int, say: Callable[[str], None]) -> None:
        """Be the service, under load, until killed."""
        try:
            with self.opened() as service:
                self.ready(number).touch()
                Load(self, service, Random(number), say).run()
        except BaseException as error:
            say(f"failed {error!r}".replace(" ", "_").replace("failed_", "failed "))
            raise

    @contextmanager
    def opened(self) -> Iterator[Service]:
        """A service on the state, started."""
        ask = ServeAsk(simulate="a100-40x8", files=(self.file,), watch="0.2s")
        with open_service(ask, self.state, self.state) as (service, _):
            service.start()
            yield service
            service.stop()
            assert service.failure is None, repr(service.failure)

    # --- who is killed -----------------------------------------------------------------------------------

    def ready(self, number: int) -> Path:
        """There once the service of this round takes jobs."""
        return self.folder / f"ready.{number}"

    def torment(self, pid: int, number: int, random: Random) -> None:
        """Kill others for a while, and then the service: now and then before it is ready."""
        if random.random() < 0.85:
            wait_for(lambda: self.ready(number).exists() or _is_gone(pid), "the service")
        end = time.monotonic() + 0.02 + random.random() * 1.2
        while time.monotonic() < end:
            time.sleep(0.01)
            if random.random() < 0.06:
                self.kill_somebody(random)
        os.kill(pid, signal.SIGKILL)

    def kill_somebody(self, random: Random) -> None:
        """A supervisor, the command beside it, or the nursery that both come from."""
        nursery = living_nursery(self.attempts) if self.attempts.is_dir() else None
        if random.random() < 0.15 and nursery is not None:
            with suppress(ProcessLookupError):
                os.kill(nursery, signal.SIGKILL)
            return
        found = find_supervisors(self.attempts)
        if not found:
            return
        victim = random.choice(found)
        begun = victim.begun()
        pid = victim.holder() if random.random() < 0.5 or begun is None else begun.pid
        if pid is not None and victim.holder() is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # --- what is held against what -----------------------------------------------------------------------

    def inspect(self, *, is_full: bool) -> list[Event]:
        """With no service alive: the record and the machine say the same."""
        assert not self.bad.exists(), self.bad.read_text()
        with SqliteJournal(self.state / "journal.db", durable=False) as journal:
            assert journal.notes == []
            world = journal.resume(half_life_ms=HALF_LIFE_MS)
            events = list(journal.replay())
            submitted = {event.job.id for event in events if isinstance(event, JobSubmitted)}
            assert all(journal.payload(body_id(job)) is not None for job in submitted)
        if is_full:
            replayed = World(half_life_ms=HALF_LIFE_MS)
            replayed.apply_all(events)
            assert same_world(world.freeze(), replayed.freeze())
        assert broken_rules(world.freeze()) == []
        names = submitted | {JobId(array_of(job)) for job in submitted}
        assert names >= set(self.acknowledged)
        for folder in find_supervisors(self.attempts):
            record = world.jobs.get(folder.held.job)
            assert record is not None, f"{folder.held} runs, its job is over"
            assert (record.attempt, record.phase in HOLDING) == (folder.held.attempt, True), folder.held
        return events

    def finish(self) -> list[Event]:
        """The last service brings everything to its end; nothing is left, and every job has one end."""
        with self.opened() as service:
            wait_for(lambda: not service.jobs(over=False), "all to end", 180)
            assert {card.free_compute_milli for card in service.cards() if card.state == "ok"} == {1000}
            assert all(job.phase in {"succeeded", "failed", "cancelled"} for job in service.jobs())
        events = self.inspect(is_full=True)
        assert ended_more_than_once(events) == []
        assert find_supervisors(self.attempts) == []
        assert self.processes() == []
        assert self.groups() == []
        return events

    def processes(self) -> list[int]:
        """Living processes of any job of the story."""
        mark = f"STORY={self.folder}".encode()
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return [pid for pid in found if is_alive(pid)]

    def groups(self) -> list[Path]:
        """Cgroups of jobs that are still there."""
        parents = [mount.path / site_name(self.state) for mount in find_mounts(Path("/"))]
        return [group for parent in parents if parent.is_dir() for group in parent.glob("job-*/")]


class Load:
    """What people and machines do to one service."""

    def __init__(self, story: Story, service: Service, random: Random, say: Callable[[str], None]) -> None:
        self.story, self.service, self.random, self.say = story, service, random, say

    def run(self) -> None:
        """Until killed."""
        while self.service.failure is None:
            if len(self.service.frozen.jobs) < LIVING:
                self.submit()
            happening = self.random.random()
            if happening < 0.06:
                self.cancel()
            elif happening < 0.10:
                self.break_cards()
            elif happening < 0.12:
                self.change_rules()
            time.sleep(0.01)
        raise self.service.failure

    def submit(self) -> None:
        """A single job, an array, a gang, or a wide job of the queue that others borrow from."""
        is_calm = len(self.service.frozen.jobs) < CALM
        draw = 1.0 if is_calm else self.random.random()  # first fill the cards
        spec: dict[str, object] = {"gpu": {"count": self.random.choice((1, 1, 2))}, "queue": "guest"}
        if draw < 0.15:
            spec = {"gpu": {"count": 1}, "queue": "guest", "array": "0-4%3"}
        elif draw < 0.35:
            spec = {"gpu": {"count": 1}, "queue": "guest", "members": self.random.randint(2, 3)}
        elif draw < 0.45:
            spec = {"gpu": {"count": self.random.choice((4, 6))}, "queue": "owner"}
        elif draw < 0.55:
            spec = {"gpu": {"memory": "4GiB", "compute": "20%"}, "queue": "guest", "memory": "64MiB"}
        work = self.random.choice(SLOW if is_calm else self.random.choice((QUICK, SLOW)))
        script = RUN.format(runs=self.story.runs, bad=self.story.bad, work=work)
        asked = Submission(
            command=("sh", "-c", script),
            spec=spec,
            env={"STORY": str(self.story.folder)},
            grace="0.2s",
            retries=self.random.randrange(2),
        )
        answer = self.service.submit(ME, asked)
        answer.add_done_callback(lambda done: self.say(done.result()) if done.exception() is None else None)

    def cancel(self) -> None:
        """One that lives, or the array that it is of."""
        living = sorted(self.service.frozen.jobs)
        if living:
            job = self.random.choice(living)
            with suppress(AliquotError):
                self.service.cancel(ME, array_of(job) or job)

    def break_cards(self) -> None:
        """Some cards are reported to be broken; the next look at them finds them well again."""
        node = self.service.parts.nodes[0]
        bad = tuple(card.uuid for card in node.cards if self.random.random() < 0.2)
        self.service.parts.machine.tell(CardsFaulty(0, node.id, bad))

    def change_rules(self) -> None:
        """Another quota for the owner."""
        text = RULES.format(owner=self.random.randint(4, 7))
        with suppress(AliquotError):
            self.service.apply(ME, Configuration((SiteFile(str(self.story.file), text),)))


def _is_gone(pid: int) -> bool:
    return not is_alive(pid)


@contextmanager
def a_story() -> Iterator[Story]:
    """In a folder with a short name; whatever still runs at the end is ended."""
    folder = Path(tempfile.mkdtemp(prefix="aliquot-"))
    story = Story(folder)
    try:
        yield story
    finally:
        for left in find_supervisors(story.attempts):
            left.command("kill test-over")
        wait_for(lambda: not find_supervisors(story.attempts), "supervisors to go")
        for group in story.groups():
            with suppress(OSError):
                group.rmdir()
        shutil.rmtree(folder, ignore_errors=True)
