"""A service that goes by documents: queues with quotas, preemption, other documents while jobs run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from aliquot.client import Submission
from aliquot.control.views import AttemptView, Configuration, SiteFile
from aliquot.core.errors import SpecError
from aliquot.core.queueing.outlook import Unsaid
from aliquot.core.steps import Gate
from tests.support.command import ROOT, complaint
from tests.support.local import wait_for
from tests.support.service import LiveService

QUEUES = """
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {{name: all}}
spec:
  queues:
    - {{name: vision, quota: {{cards: {vision}}}}}
    - {{name: text, quota: {{cards: 2, gpuMemory: 80GB}}}}
---
apiVersion: aliquot.dev/v1
kind: Policy
metadata: {{name: lab}}
spec: {{preemption: {{grace: 3s}}}}
"""


class Ruled(LiveService):
    """A service of eight cards that was started with a file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.file = self.folder / "site.yaml"
        self.file.write_text(text)
        self.options = [*self.options, str(self.file)]

    def hold(self, cards: int, queue: str, script: str = "sleep 60", **more: object) -> str:
        """A job of `queue` that runs, or waits."""
        spec = {"gpu": {"count": cards}, "queue": queue, **more}
        words = ("sh", "-c", script)
        return self.client.submit(Submission(command=words, spec=spec, grace="5s", warn="USR1"))

    def cells(self, queue: str) -> list[str]:
        """The row of a queue, as people see it."""
        rows = [line.split() for line in self.run("queues").out.splitlines()]
        return next(row[1:] for row in rows if row[0] == queue)

    def attempts(self, job: str) -> tuple[AttemptView, ...]:
        """Those of one job."""
        return self.client.job(job).attempts


@pytest.fixture
def service() -> Iterator[Ruled]:
    with Ruled(QUEUES.format(vision=6)) as running:
        yield running


def test_quotas_lend_borrow_and_are_taken_back_from_real_processes(service: Ruled) -> None:
    warned = service.folder / "warned"
    script = f"trap 'echo $ALIQUOT_ATTEMPT_NUMBER >> {warned}; exit 3' USR1; while :; do sleep 0.05; done"
    borrower = service.hold(6, "text", script)
    service.until_running(borrower)
    # priority, waiting, running, cards, nominal, borrowed, asked for
    assert service.cells("text") == ["0", "0", "1", "6", "2", "4", "0"]
    assert "text: memory nominal" in service.run("queues").out

    owner = service.hold(6, "vision", "sleep 1")
    assert service.client.wait(owner).job.phase == "succeeded"
    service.until_running(borrower)
    first, second = service.attempts(borrower)
    assert (first.number, first.outcome, second.number, second.outcome) == (1, "preempted", 2, None)
    assert first.exits == () or first.exits[0] is not None
    assert warned.read_text() == "1\n", "it was warned, once, and ended by itself"
    (held,) = service.attempts(owner)
    assert first.ended_ms is not None
    assert held.granted_ms >= first.ended_ms, "cards are given on only when nobody is on them"
    assert second.granted_ms >= (held.ended_ms or 0)
    service.client.cancel(borrower)
    service.client.wait(borrower)


@pytest.mark.parametrize("of_an_array", [False, True], ids=["on its own", "of an array"])
def test_b38_who_is_stopped_for_others_goes_back_to_its_queue_with_all_it_had(
    service: Ruled, of_an_array: bool
) -> None:
    """B38: pending again, the first submission counts, one attempt more, and its checkpoint is remembered."""
    report = f"{sys.executable} -m aliquot report --checkpoint --step"
    script = f"{report} $ALIQUOT_ATTEMPT_NUMBER; while :; do sleep 0.05; done"
    env = {"PYTHONPATH": str(ROOT / "src")}
    spec: dict[str, object] = {"gpu": {"count": 6}, "queue": "text"}
    asked = Submission(command=("sh", "-c", script), spec=spec, env=env, grace="0.5s")
    if of_an_array:
        asked = replace(asked, spec=spec | {"array": "0-1%1"})
    submitted = service.client.submit(asked)
    job = f"{submitted}_0" if of_an_array else submitted
    service.until_running(job)
    wait_for(lambda: service.client.job(job).progress, "its report")
    before = service.client.job(job)
    owner = service.hold(6, "vision")
    wait_for(lambda: service.client.job(job).job.phase == "pending", "it to be queued again")
    queued = service.client.job(job)
    assert [attempt.outcome for attempt in queued.attempts] == ["preempted"]
    assert queued.job.submitted_ms == before.job.submitted_ms
    assert queued.progress[0].checkpoint_ms == before.progress[0].checkpoint_ms
    assert queued.position is not None
    assert "preempted" in service.run("job", job).out
    assert "pending" in service.run("jobs", "--each").out
    service.until_running(owner).client.cancel(owner)
    service.until_running(job)
    wait_for(
        lambda: [one.step for one in service.client.job(job).progress] == [2], "its second attempt to report"
    )
    again = service.client.job(job)
    assert [attempt.number for attempt in again.attempts] == [1, 2]
    assert again.job.submitted_ms == before.job.submitted_ms
    service.client.cancel(submitted)
    service.client.wait(job)


THREE_LIMITS = """
apiVersion: aliquot.dev/v1
kind: Queues
metadata: {name: all}
spec:
  queues:
    - {name: none, quota: {cards: {nominal: 2, borrowing: 0}}}
    - {name: absent, quota: {cards: {nominal: 2}}}
    - {name: endless, quota: {cards: {nominal: 2, borrowing: unlimited}}}
    - {name: lender, quota: {cards: 2}}
"""


def test_b29_no_limit_none_said_and_unlimited_stay_three_things_over_a_restart(service: Ruled) -> None:
    """B29: 0 borrows nothing, and neither a limit that is absent nor one that is unlimited is read as 0."""
    service.client.apply(Configuration((SiteFile("three.yaml", THREE_LIMITS),)))
    service.options = service.options[:2]
    for _ in range(2):
        for queue in ("absent", "endless"):
            job = service.hold(4, queue)
            service.until_running(job)
            service.client.cancel(job)
            service.client.wait(job)
        held = service.hold(4, "none")
        wait = service.client.explain(held).wait
        assert wait is not None
        assert wait.gate is Gate.QUOTA
        assert service.client.job(held).job.phase == "pending"
        service.client.cancel(held)
        (kept,) = service.client.rules().configuration.files
        assert kept.text == THREE_LIMITS
        service.kill().start()


def test_other_documents_while_jobs_run_lose_nothing_and_outlive_the_service(service: Ruled) -> None:
    running = service.hold(6, "vision")
    service.until_running(running)
    waiting = service.hold(6, "vision", "true")
    done = service.run(
        "apply", service.write("new.yaml", QUEUES.replace("vision,", "audio,").format(vision=2))
    )
    assert done.out.splitlines()[0] == "policy lab; queues: audio, text"
    assert any("queue vision is in no document any more" in note for note in service.client.site().notes)
    assert service.client.job(running).job.phase == "running", "what runs goes on"
    assert service.client.job(waiting).job.phase == "pending"
    assert service.cells("audio") == ["0", "0", "0", "0", "2", "0", "0"]
    with pytest.raises(SpecError, match="unknown queue 'vision'"):
        service.hold(1, "vision")

    service.options = service.options[:2]  # no files: as it last was
    service.kill().start()
    assert service.cells("audio") == ["0", "0", "0", "0", "2", "0", "0"]
    assert service.client.site().policy == "lab"
    assert service.client.job(running).job.phase == "running"
    service.client.cancel(running)
    assert service.client.wait(waiting).job.phase == "succeeded", "a job of a queue that is gone has its turn"


def test_quotas_lowered_below_what_runs_are_warned_of_and_shown(service: Ruled) -> None:
    service.until_running(service.hold(6, "vision"))
    assert "Overcommitted" not in service.run("queues").out
    text = QUEUES.format(vision=2).replace("{cards: 2}", "{cards: {nominal: 2, borrowing: 1}}")
    assert service.run("apply", service.write("lowered.yaml", text)).code == 0
    said = "queue vision uses 6 of cards and may have 3"
    assert any(note.startswith(said) for note in service.client.site().notes), "warned of as they come"
    assert f"Overcommitted: {said}" in service.run("queues").out
    waiting = service.hold(1, "vision", "true")
    assert f"Overcommitted: {said}" in service.run("explain", waiting).out
    assert service.client.jobs(over=False)[0].phase == "running", "nobody is stopped for it"


def test_files_are_read_again_on_sighup_and_a_mistake_changes_nothing(service: Ruled) -> None:
    assert service.process is not None
    service.file.write_text(QUEUES.format(vision=3))
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: service.cells("vision")[4] == "3", "the new quota")
    service.file.write_text(QUEUES.format(vision="many"))
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any("not taken" in note for note in service.client.site().notes), "the complaint")
    (said,) = (note for note in service.client.site().notes if "not taken" in note)
    assert f"{service.file}:" in said
    assert "quota.cards" in said
    assert service.cells("vision")[4] == "3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("kind: Queue\n", "apiVersion", id="no version"),
        pytest.param(
            "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: j}\nspec: {cpu: 1}\n",
            "aliquot submit",
            id="a job",
        ),
        pytest.param(
            "apiVersion: aliquot.dev/v1\nkind: Queue\nmetadata: {name: q}\nspec: {quota: {cards: x}}\n",
            "spec.quota.cards",
            id="a quota in words",
        ),
    ],
)
def test_documents_that_are_wrong_are_refused_with_their_place(service: Ruled, text: str, words: str) -> None:
    path = service.write("bad.yaml", text)
    said = complaint(service.run("apply", path))
    assert words in said
    assert said.startswith(f"{path}:"), "as compilers print it"
    assert said.count(str(path)) == 1
    assert service.cells("vision")[4] == "6"


def test_a_policy_nobody_knows_is_named(service: Ruled) -> None:
    said = complaint(service.run("apply", "--policy", "binpak"))
    assert "no policy 'binpak'" in said
    assert service.run("apply", "--policy", "spread").out.startswith("policy spread; queues: vision, text")
    kept = service.client.rules().configuration
    assert kept == Configuration((SiteFile(str(service.file), service.file.read_text()),), "spread")


def test_a_service_is_not_started_with_documents_that_are_wrong(tmp_path: Path) -> None:
    from tests.support.command import aliquot

    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Queue\n")
    said = complaint(aliquot("up", bad, "--simulate", "l40s-4", "--state", tmp_path / "state"))
    assert str(bad) in said


def test_who_submits_is_told_his_place_his_start_and_what_becomes_of_his_bounds(service: Ruled) -> None:
    first = service.client.submit(
        Submission(command=("sleep", "60"), spec={"gpu": {"count": 8}, "queue": "vision"}, time="1h")
    )
    service.until_running(first)
    asked = Submission(
        command=("true",),
        spec={"gpu": {"count": 2}, "queue": "text", "startBy": "1m", "priority": -1, "memory": "64MiB"},
    )
    told = service.client.submit_and_see(asked, patience=20)
    assert (told.phase, told.position, told.queue_position, told.queue_waiting) == ("pending", 1, 1, 1)
    assert told.expected is not None
    assert told.expected.at_ms is not None
    assert told.promise is not None
    assert told.promise.answer.value in {"at risk", "cannot be met"}

    detail = service.client.job(told.id)
    assert (detail.queue_position, detail.expected) == (1, told.expected)
    said = service.run("job", told.id).out
    assert "Place 1 of 1 in the queue." in said
    assert "Expected to start" in said
    assert "Start by" in said
    is_held_to = "host memory" not in said
    assert is_held_to or "not enforced: at most 64 MiB of host memory" in said
    service.client.cancel(first)
    assert service.client.wait(told.id).job.phase == "succeeded"
    after = service.client.submit_and_see(asked, patience=20)
    assert after.expected is not None
    assert after.promise is not None
    assert (after.phase in {"starting", "running"}, after.promise.answer.value) == (True, "met")


def test_bounds_that_can_be_kept_are_told_so_at_submission_and_the_command_says_it(service: Ruled) -> None:
    first = service.client.submit(
        Submission(command=("sleep", "60"), spec={"gpu": {"count": 8}, "queue": "vision"}, time="1h")
    )
    service.until_running(first)
    job = (
        "apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {name: j}\n"
        "spec: {gpu: {count: 2}, queue: text, startBy: 3h, finishBy: 5h, time: 10m, command: ['true']}\n"
    )
    spec = {"gpu": {"count": 2}, "queue": "text", "startBy": "3h", "finishBy": "5h"}
    asked = Submission(command=("true",), spec=spec, time="10m")
    told = service.client.submit_and_see(asked, patience=20)
    assert told.promise is not None
    assert [part.answer.value for part in told.promise.parts] == ["can be met", "can be met"]

    quick = service.client.submit_and_see(asked, patience=0)
    assert quick.expected is not None
    assert quick.expected.at_ms is not None or quick.expected.unsaid is Unsaid.NOT_YET
    done = service.run("submit", service.write("job.yaml", job))
    assert "Start by" in done.err
    assert "can be met" in done.err or "ask again" in done.err
