"""Elastic jobs for real: stopped with a warning, their cards kept, and started again at another width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from aliquot.client import Submission
from aliquot.control.views import AttemptView
from tests.support.local import wait_for
from tests.support.service import LiveService

POLICY = """
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {{name: lab}}
spec: {{elasticity: {elasticity}, preemption: {preemption}}}
"""
QUICK = "{dwell: 0s, change: 0.1}"
WIDTHS = {"widths": [1, 2, 4, 8], "speeds": [1, 2, 4, 8]}
# what it finds is written down, as is each time it saves its work; two at once are found out by a lock
TRAIN = """
echo $ALIQUOT_ATTEMPT_NUMBER $ALIQUOT_WIDTH $ALIQUOT_CARDS $ALIQUOT_WIDTHS >> {log}
trap 'echo saved $ALIQUOT_ATTEMPT_NUMBER >> {log}; {on_warning}' USR1
exec 9>>{log}.lock; flock -n 9 || echo twice >> {log}
while [ ! -e {log}.done ]; do sleep 0.05; done
"""


class Elastic(LiveService):
    """A service of eight cards with elastic jobs in it."""

    def __init__(self, elasticity: str = QUICK, preemption: str = "false") -> None:
        super().__init__()
        file = self.folder / "site.yaml"
        file.write_text(POLICY.format(elasticity=elasticity, preemption=preemption))
        self.options = [*self.options, str(file)]

    def train(self, name: str, cards: int = 8, on_warning: str = "exit 0", **more: Any) -> str:
        """A job that can run with 1, 2, 4 or 8 cards."""
        script = TRAIN.format(log=self.folder / name, on_warning=on_warning)
        spec = {"gpu": {"count": cards}, "elastic": WIDTHS, **more.pop("spec", {})}
        how = {"grace": "5s", "warn": "USR1", "warn_before": "10s", **more}
        return self.client.submit(Submission(command=("sh", "-c", script), spec=spec, name=name, **how))

    def hold(self, cards: int, **spec: Any) -> str:
        """A rigid job that runs until it is cancelled."""
        return self.submit("sleep 600", gpus=cards, spec=spec)

    def said(self, name: str) -> list[str]:
        """What a job has written down."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def attempts(self, job: str) -> tuple[AttemptView, ...]:
        """Those of one job."""
        return self.client.job(job).attempts

    def until_width(self, job: str, width: int) -> None:
        """Wait until it runs at that width."""
        wait_for(lambda: self.width(job) == width, f"{job} to run at {width}")

    def width(self, job: str) -> int | None:
        """Its width while it runs."""
        shown = self.client.job(job).job
        return shown.width if shown.phase == "running" else None

    def finish(self, name: str) -> None:
        """Its work is done."""
        (self.folder / f"{name}.done").touch()

    def free(self) -> int:
        """Cards on which nothing is booked."""
        return sum(card.free_compute_milli == 1000 for card in self.client.gpus())


@pytest.fixture
def service() -> Iterator[Elastic]:
    with Elastic() as running:
        yield running


def test_a_job_grows_into_cards_that_come_free_and_finds_its_width_each_time(service: Elastic) -> None:
    other = service.hold(6)
    service.until_running(other)
    job = service.train("train")
    service.until_width(job, 2)
    service.client.cancel(other)
    service.until_width(job, 8)
    wait_for(lambda: len(service.said("train")) == 3, "the second start to be written down")
    assert service.said("train") == ["1 2 2 1,2,4,8", "saved 1", "2 8 8 1,2,4,8"]
    first, second = service.attempts(job)
    assert (first.outcome, first.exits == () or first.exits[0] is not None) == ("resized", True)
    assert first.ended_ms is not None
    assert second.granted_ms >= first.ended_ms, "its own cards are given on only once it has ended"
    assert set(first.holds[0].cards) < set(second.holds[0].cards), "it keeps the cards it had"
    service.finish("train")
    assert service.client.wait(job).job.phase == "succeeded"
    assert service.free() == 8


def test_it_makes_room_for_a_newcomer_which_starts_once_it_has_ended(service: Elastic) -> None:
    job = service.train("train")
    service.until_width(job, 8)
    newcomer = service.hold(4)
    service.until_running(newcomer)
    service.until_width(job, 4)
    first, second = service.attempts(job)
    assert (first.outcome, second.outcome) == ("resized", None)
    (held,) = service.attempts(newcomer)
    assert held.granted_ms >= (first.ended_ms or 0)
    assert not set(held.holds[0].cards) & set(second.holds[0].cards)
    assert "twice" not in service.said("train")


def test_while_it_is_resized_it_is_shown_and_its_cards_are_kept(service: Elastic) -> None:
    job = service.train("train", on_warning="", warn_before="600s")  # it saves, and does not end by itself
    service.until_width(job, 8)
    newcomer = service.hold(4)
    wait_for(lambda: "saved 1" in service.said("train"), "the warning")
    third = service.hold(1)
    shown = service.client.job(job).job
    assert shown.resizing is not None
    assert (shown.phase, shown.width, shown.resizing.was, shown.resizing.width) == ("stopping", 8, 8, 4)
    assert shown.resizing.for_job == newcomer
    assert "stopping (8 to 4)" in service.run("jobs").out
    for command in ("job", "explain"):
        assert "being resized from 8 to 4 since" in service.run(command, job).out
        assert f"it makes room for job {newcomer}" in service.run(command, job).out
    assert service.client.explain(newcomer).wait is not None
    assert {service.client.job(other).job.phase for other in (newcomer, third)} == {"pending"}
    service.kill().start()
    assert service.client.job(job).job.resizing == shown.resizing, "as on record"
    service.client.cancel(job)
    assert service.client.job(job).job.phase == "stopping"
    assert service.client.signal(job, 9)
    assert service.client.wait(job).job.phase == "cancelled"
    service.until_running(newcomer).until_running(third)
    assert service.said("train") == ["1 8 8 1,2,4,8", "saved 1"], "it was not started again"


def test_a_resize_does_not_count_as_a_failed_try(service: Elastic) -> None:
    other = service.hold(6)
    service.until_running(other)
    script = TRAIN.format(log=service.folder / "train", on_warning="exit 1")
    script += "[ $ALIQUOT_ATTEMPT_NUMBER = 3 ]"
    spec = {"gpu": {"count": 8}, "elastic": WIDTHS}
    asked = Submission(command=("sh", "-c", script), spec=spec, warn="USR1", warn_before="10s", retries=1)
    job = service.client.submit(asked)
    service.until_width(job, 2)
    service.client.cancel(other)
    service.until_width(job, 8)
    service.finish("train")
    assert service.client.wait(job).job.phase == "succeeded"
    assert [attempt.outcome for attempt in service.attempts(job)] == ["resized", "failed", "succeeded"]


def test_a_gang_goes_on_with_fewer_members_for_one_that_matters_more() -> None:
    with Elastic("false", "{grace: 5s}") as service:
        log = service.folder / "gang"
        script = (
            f"echo $ALIQUOT_ATTEMPT_NUMBER $ALIQUOT_MEMBER $ALIQUOT_WIDTH $WORLD_SIZE >> {log};"
            f"trap 'echo saved >> {log}; exit 0' USR1; while :; do sleep 0.05; done"
        )
        spec = {"gpu": {"count": 1}, "members": 8, "minimum": 1}
        job = service.client.submit(
            Submission(command=("sh", "-c", script), spec=spec, warn="USR1", grace="1s")
        )
        service.until_running(job)
        wait_for(lambda: len(service.said("gang")) == 8, "all members")
        high = service.hold(7, priority=10)
        service.until_running(high).until_width(job, 1)
        wait_for(lambda: len(service.said("gang")) == 17, "one member more")
        assert service.said("gang").count("saved") == 8
        assert service.said("gang")[-1] == "2 0 1 1"
        service.client.cancel(high)
        service.client.cancel(job)
        assert service.client.wait(job).job.phase == "cancelled"
        service.client.wait(high)
        assert service.free() == 8


def test_without_shrinking_preemption_stops_an_elastic_job_whole() -> None:
    with Elastic("false", "{grace: 5s, shrink: false}") as service:
        job = service.train("train")
        service.until_width(job, 8)
        high = service.hold(4, priority=10)
        service.until_running(high)
        service.until_width(job, 4)
        assert [attempt.outcome for attempt in service.attempts(job)] == ["preempted", None]


def test_run_takes_widths(service: Elastic) -> None:
    words = ("--gpus", "4", "--widths", "1,2,4", "--serial", "5%", "--", "sh", "-c", "echo $ALIQUOT_WIDTH")
    assert service.run("run", *words).out == "4\n"
    done = service.run("run", "--gpus", "3", "--widths", "1,2", "--serial", "5%", "--", "true")
    assert "none of its widths" in done.err
    assert "speeds of no widths" in service.run("run", "--serial", "5%", "--", "true").err


def test_preemption_narrows_an_elastic_job_without_rules_of_elasticity() -> None:
    with Elastic("false", "{grace: 5s}") as service:
        job = service.train("train")
        service.until_width(job, 8)
        high = service.hold(4, priority=10)
        service.until_running(high)
        service.until_width(job, 4)
        assert [attempt.outcome for attempt in service.attempts(job)] == ["resized", None]
        assert "twice" not in service.said("train")
