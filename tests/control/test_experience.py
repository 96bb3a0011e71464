"""What looking ahead has learnt outlives the service: kept with snapshots and beside events, heard again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.control.experience import decode_experience
from aliquot.control.foresight import Foresight
from aliquot.control.predicting import Guess
from aliquot.core.events import Ended, Event, Granted, JobCancelled, JobSubmitted, NodeJoined, Outcome
from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import ENOUGH, Method, PredictedStart
from aliquot.engines.local.journal import SqliteJournal
from tests.engines.local.test_journal_damage import change
from tests.support.build import a_job, a_node, a_placement
from tests.support.planning import PLAIN

MINUTE = 60_000


class Site:
    """A service's record and what looks ahead beside it, on one node whose jobs run one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.node, self.at, self.submitted = path, a_node("n", 1), 0, 0
        self.open()
        self.happen(NodeJoined(0, self.node))

    def open(self) -> None:
        """Begin with what is on record."""
        self.journal = SqliteJournal(self.path, durable=False)
        self.foresight = Foresight(PLAIN, note=self.journal.note_guesses)
        self.world = self.journal.resume(pupil=self.foresight)
        self.foresight.resume(self.world)

    def kill(self) -> None:
        """Nothing is put in order, and another begins."""
        self.journal.close()
        self.open()

    def save(self) -> None:
        """A snapshot."""
        self.journal.save(self.world, self.foresight.experience())

    def happen(self, *events: Event) -> None:
        """Recorded, folded and seen as by the loop, then looked ahead."""
        self.record(*events)
        self.foresight.look(self.world, self.at)

    def record(self, *events: Event) -> None:
        """The same while somebody looks ahead already."""
        self.journal.append(events)
        self.world.apply_all(events)
        self.foresight.see(events, self.world)

    def submit(self, estimate_ms: int | None) -> JobId:
        """One more who waits."""
        self.submitted += 1
        job = a_job(f"j{self.submitted}", at=self.at, seq=self.submitted, user="ann", estimate_ms=estimate_ms)
        self.happen(JobSubmitted(self.at, job))
        return job.id

    def run(self, job: JobId, ms: int, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        """It starts now, and ends after so long."""
        self.happen(Granted(self.at, job, 1, (a_placement(self.node, (0,)),)))
        self.at += ms
        self.happen(Ended(self.at, job, 1, outcome))

    def live(self, jobs: int) -> None:
        """So many come, wait and run; of every other a word was said, which was too long."""
        for number in range(jobs):
            job = self.submit(4 * MINUTE if number % 2 else None)
            self.at += MINUTE * (number % 5)
            self.run(job, MINUTE * (1 + number % 7))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "journal.db")


def known(site: Site) -> tuple[object, PredictedStart, int | None]:
    """All that was learnt, how right it was, and how long a next job is expected to run."""
    return (
        decode_experience(site.foresight.experience()),
        site.foresight.report(),
        site.foresight.estimate(a_job("next", seq=1000, user="ann")),
    )


@pytest.mark.parametrize("saved_after", [0, 20, 70], ids=["no snapshot", "an early snapshot", "a late one"])
def test_a_killed_service_knows_what_it_knew(site: Site, saved_after: int) -> None:
    for number in range(ENOUGH + 30):
        site.live(1)
        if number == saved_after - 1:
            site.save()
    waiting = site.submit(MINUTE)
    site.happen(JobCancelled(site.at, JobId("nobody")))  # what was said is written with what comes next
    before = known(site)
    assert before[1].jobs > 20
    assert before[2] is not None
    site.kill()
    assert known(site) == before
    site.run(waiting, MINUTE)
    assert site.foresight.report().jobs == before[1].jobs + 1


def test_who_waits_is_guessed_for_once_and_his_wait_counts_from_then(site: Site) -> None:
    site.live(ENOUGH)
    waiting = site.submit(MINUTE)
    site.happen(JobCancelled(site.at, JobId("nobody")))
    site.at += 5 * MINUTE
    site.kill()
    assert site.foresight.take_fresh(site.world) == ()
    newcomer = site.submit(MINUTE)
    site.happen(Granted(site.at, waiting, 1, (a_placement(site.node, (0,)),)))
    known_now = decode_experience(site.foresight.experience())
    assert known_now is not None
    assert max(known_now.outlook.waited) == 5 * MINUTE
    assert [job for job, _, _ in known_now.said] == [newcomer]


def test_a_journal_that_kept_nothing_of_it_teaches_what_its_events_say(site: Site) -> None:
    site.live(ENOUGH)
    before = known(site)
    site.journal.save(site.world)
    site.live(20)
    change(site.path, "DELETE FROM guesses")
    site.kill()
    assert site.foresight.report().jobs == 0
    assert site.foresight.estimate(a_job("next", seq=1000, user="ann")) is not None
    assert before[1].jobs + before[1].unsaid == ENOUGH


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE learnt SET body = CAST('{' || substr(body, 2, 40) AS BLOB)",
        "UPDATE learnt SET body = CAST(replace(body, '1', '2') AS BLOB)",
        "UPDATE guesses SET body = CAST(replace(body, '1', '2') AS BLOB)",
    ],
)
def test_what_was_learnt_and_is_damaged_stops_nothing_and_is_never_believed(site: Site, damage: str) -> None:
    site.live(ENOUGH)
    site.save()
    site.live(10)
    world = site.world
    site.journal.close()
    change(site.path, damage)
    site.open()
    assert site.world.jobs == world.jobs
    if "learnt" in damage:
        (note,) = site.journal.notes
        assert "what was learnt of run times and starts cannot be read; it is learnt anew" in note
    site.live(1)


def test_who_starts_while_he_is_looked_for_waits_no_longer(site: Site) -> None:
    job = site.submit(MINUTE)
    site.journal.close()
    site.open()
    fresh = site.foresight.take_fresh(site.world)
    begun, started = site.at, site.at + MINUTE
    site.record(Granted(started, job, 1, (a_placement(site.node, (0,)),)))
    site.record(Ended(started + MINUTE, job, 1, Outcome.SUCCEEDED))
    site.foresight.begin(dict.fromkeys(fresh, Guess(begun, Method.PLAN)), begun)
    learnt = decode_experience(site.foresight.experience())
    assert learnt is not None
    assert (learnt.outlook.waiting, learnt.said) == ([], [])
    assert learnt.outlook.waited == [MINUTE]


def test_who_is_given_up_while_he_is_looked_for_teaches_nothing(site: Site) -> None:
    job = site.submit(MINUTE)
    site.journal.close()
    site.open()
    fresh = site.foresight.take_fresh(site.world)
    site.record(JobCancelled(site.at, job))
    site.foresight.begin(dict.fromkeys(fresh, Guess(site.at, Method.PLAN)), site.at)
    learnt = decode_experience(site.foresight.experience())
    assert learnt is not None
    assert (learnt.outlook.waiting, learnt.said, learnt.outlook.ended) == ([], [], 0)


STEPS = ("come", "come blind", "run", "fail", "give up", "save", "kill")


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
def test_after_any_history_a_killed_service_knows_what_it_knew(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    site, waiting = Site(tmp_path_factory.mktemp("site") / "journal.db"), list[JobId]()
    for step in [*steps, "kill"]:
        site.at += MINUTE
        match step:
            case "come" | "come blind":
                waiting.append(site.submit(None if "blind" in step else 2 * MINUTE))
            case "run" | "fail" if waiting:
                how = Outcome.SUCCEEDED if step == "run" else Outcome.FAILED
                site.run(waiting.pop(0), MINUTE * len(steps), how)
            case "give up" if waiting:
                site.happen(JobCancelled(site.at, waiting.pop()))
            case "save":
                site.save()
            case "kill":
                site.happen(JobCancelled(site.at, JobId("nobody")))
                before = known(site)
                site.kill()
                assert known(site) == before
    site.journal.close()
