"""kill -9 of the service amid resizes: after each a job is still as wide as it was, or goes on as was kept.

A few elastic jobs run for as long as the story does; rigid ones come and go, so that widths change all the
time. The service is killed soon after it has recorded that somebody is to change, or at any other moment.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from aliquot.control.service import Service
from aliquot.control.views import Submission
from aliquot.core.events import Ended, Event, Granted, Outcome, Resizing
from aliquot.core.ids import CardId, JobId
from aliquot.core.lifecycle import Phase
from aliquot.engines.local.journal import SqliteJournal
from tests.engines.local.test_crashes import forked
from tests.interfaces.test_kills import ME, RUN, Load, Story, a_story
from tests.support.local import PATIENCE_S, wait_for

RULES = """
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {name: lab}
spec: {preemption: {grace: 0.3s}, elasticity: {dwell: 0s, change: 0.1}}
"""
WIDTHS = {"widths": [1, 2, 4, 8], "speeds": [1, 2, 4, 8]}
TRAINING = 2  # elastic jobs
LATE_S = 0.5  # after somebody begins to change, the service is dead
FULL_REPLAY = 5


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.slow)], ids=["some", "many"])
def test_widths_change_once_and_as_kept_however_often_the_service_dies(kills: int) -> None:
    kills = int(os.environ.get("ALIQUOT_KILLS", kills))
    events = run_story(kills, Random(kills))
    resizes = [event for event in events if isinstance(event, Resizing)]
    assert len(resizes) >= kills // 2
    assert taken_by_others(events) == []


def run_story(kills: int, random: Random) -> list[Event]:
    """So many services, one after another; all that happened."""
    with a_story() as plain:
        story = Changing(plain.folder)
        for number in range(kills):
            with forked(lambda say, number=number: story.serve(number, say)) as (pid, heard):
                story.kill_amid(pid, number, random)
                said = heard()
                assert "failed" not in said, f"round {number}: {said[-20:]}"
                story.acknowledged += said
            story.inspect(is_full=number % FULL_REPLAY == 0)
            story.look_at_widths()
        (story.folder / "done").touch()
        return story.finish()


def taken_by_others(events: list[Event]) -> list[tuple[str, str]]:
    """(job, other) where somebody got a card that was kept for a job until it went on."""
    kept: dict[JobId, set[CardId]] = {}
    found = []
    for event in events:
        if isinstance(event, Resizing):
            kept[event.job] = {card for place in event.placements for card in place.cards}
        elif isinstance(event, Granted):
            mine = kept.pop(event.job, None)
            cards = {card for place in event.placements for card in place.cards}
            assert mine is None or cards == mine, f"{event.job} goes on with {cards}, kept was {mine}"
            found += [(job, event.job) for job, theirs in kept.items() if theirs & cards]
        elif isinstance(event, Ended) and event.outcome is Outcome.SUCCEEDED:
            kept.pop(event.job, None)  # it came to its end while it was stopped for another width
    return found


class Changing(Story):
    """A site with nothing but changes of width."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "s"
        self.attempts = self.state / "attempts"
        self.acknowledged = []
        self.bad, self.runs = folder / "bad", folder / "runs"
        self.file = folder / "rules.yaml"
        self.file.write_text(RULES)

    def serve(self, number: int, say: Callable[[str], None]) -> None:
        """Be the service, under load, until killed."""
        try:
            with self.opened() as service:
                Newcomers(self, number, service, say).run()
        except BaseException as error:
            say(f"failed {error!r}".replace(" ", "_").replace("failed_", "failed "))
            raise

    def changing(self, number: int) -> Path:
        """There once somebody begins to change under the service of this round."""
        return self.folder / f"changing.{number}"

    def kill_amid(self, pid: int, number: int, random: Random) -> None:
        """Soon after somebody begins to change; now and then whenever."""
        try:
            if random.random() < 0.9:
                wait_for(lambda: self.changing(number).exists(), "a change of width", 2 * PATIENCE_S)
                time.sleep(random.random() * LATE_S)
            else:
                time.sleep(random.random() * 3)
        finally:
            os.kill(pid, signal.SIGKILL)

    def look_at_widths(self) -> None:
        """Who trains is on record as somewhere between two widths, or at one of them."""
        with SqliteJournal(self.state / "journal.db", durable=False) as journal:
            world = journal.resume()
        kept = {one.job: one for one in world.kept if one.firm}
        for job, record in world.jobs.items():
            if record.job.elastic is None:
                continue
            if record.resizing is not None:
                assert record.phase in {Phase.STOPPING, Phase.PENDING}
                assert kept[job].placements == record.resizing.placements
            else:
                assert record.phase is not Phase.STOPPING, record
        trained = [record for record in world.jobs.values() if record.job.elastic is not None]
        first = [job for job in self.acknowledged if int(job) <= TRAINING]
        assert len(trained) >= len(first), "none of them is lost, and none is over"


class Newcomers(Load):
    """Rigid jobs that come and go beside elastic ones, which end when the story does."""

    def __init__(self, story: Changing, number: int, service: Service, say: Callable[[str], None]) -> None:
        super().__init__(story, service, Random(number), say)
        self.changing, self.done = story.changing(number), story.folder / "done"

    def run(self) -> None:
        """Until killed."""
        while self.service.failure is None:
            jobs = list(self.service.frozen.jobs.values())
            if any(record.resizing is not None for record in jobs):
                self.changing.touch()
            if self.service.intake.submitted < TRAINING:
                self.ask(
                    {"gpu": {"count": 8}, "elastic": WIDTHS}, f"until [ -e {self.done} ]; do sleep 0.05; done"
                )
            elif len(jobs) <= TRAINING and all(record.phase is Phase.RUNNING for record in jobs):
                self.ask({"gpu": {"count": self.random.choice((2, 4, 5))}}, "sleep 0.3")
            time.sleep(0.02)
        raise self.service.failure

    def ask(self, spec: dict[str, object], work: str) -> None:
        """Submit a job, and wait until it is on the disk."""
        script = RUN.format(runs=self.story.runs, bad=self.story.bad, work=work)
        env = {"STORY": str(self.story.folder)}
        asked = Submission(command=("sh", "-c", script), spec=spec, env=env, grace="0.2s")
        self.say(self.service.submit(ME, asked).result())
