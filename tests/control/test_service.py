"""The service without processes: what is acknowledged, what a full disk does, what a restart knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from aliquot.control.chronicle import Chronicle
from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.control.experience import Pupil
from aliquot.control.parts import Parts, Rules, Wanted, settle_nothing
from aliquot.control.service import Service
from aliquot.control.views import Caller, Configuration, Exit, Submission
from aliquot.core.errors import AliquotError
from aliquot.core.events import (
    Ended,
    Event,
    Granted,
    JobCancelled,
    JobSubmitted,
    Outcome,
    Started,
    StartRefused,
)
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array
from aliquot.core.settings import Settings
from aliquot.core.steps import Kill, Move, Start
from aliquot.core.windows import Window
from aliquot.core.world import World
from aliquot.interfaces.cli.job_rows import job_lines
from aliquot.interfaces.cli.live_text import explanation_lines
from tests.support.build import a_job, a_node, node_id
from tests.support.local import wait_for

ROOT, ANN, BEN = Caller(0, 0), Caller(1001, 100), Caller(1002, 100)
PATIENCE_S: Final = 5


class FullError(AliquotError):
    """The record has no room."""


class Machine:
    """Starts whatever it is told to at once; `end` ends a job."""

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.stopped: list[str] = []
        self.attempts: dict[str, int] = {}
        self.refusal = ""

    def tell(self, *events: Event) -> None:
        self.told.extend(events)

    def wait(self, until: int | None = None) -> None:
        time.sleep(0.002)

    def resume(self, world: World) -> None:
        self.attempts = {job: record.attempt for job, record in world.jobs.items()}

    def observe(self) -> Sequence[Event]:
        told, self.told = self.told, []
        return told

    def carry_out(self, steps: Sequence[Start | Kill | Move]) -> None:
        for step in steps:
            if isinstance(step, Start) and self.attempts.get(step.job) != step.attempt:
                self.attempts[step.job] = step.attempt
                refused = StartRefused(0, step.job, step.attempt, self.refusal)
                self.tell(refused if self.refusal else Started(0, step.job, step.attempt))
            elif isinstance(step, Kill):
                self.tell(Ended(0, step.job, step.attempt, Outcome.FAILED))

    def end(self, job: str, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        self.tell(Ended(0, JobId(job), self.attempts[job], outcome))


class Clock:
    """Counts calls."""

    def __init__(self) -> None:
        self.at = 0

    def now(self) -> int:
        self.at += 1
        return self.at

    def wake_at(self, at: int) -> None:
        """The loop turns all the time anyway."""


class Record:
    """Events in a list; `is_full` refuses more."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.bodies: dict[JobId, bytes] = {}
        self.documents: list[bytes] = []
        self.is_full = False

    def append(self, events: Sequence[Event]) -> None:
        if self.is_full:
            raise FullError("the disk is full")
        self.events.extend(events)

    def replay(self) -> Iterator[Event]:
        return iter(list(self.events))

    def resume(self, *, half_life_ms: int = 0, quantile_milli: int = 0, pupil: Pupil | None = None) -> World:
        world = World(half_life_ms=half_life_ms, quantile_milli=quantile_milli)
        if pupil is not None:
            pupil.recall(None, world)
        world.apply_all(self.events)
        return world

    def note_guesses(self, guesses: bytes) -> None:
        """Nothing is learnt."""

    def keep_documents(self, body: bytes) -> None:
        if self.is_full:
            raise FullError("the disk is full")
        self.documents.append(body)

    def attach(self, job: JobId, payload: bytes) -> None:
        self.bodies[job] = payload

    def payload(self, job: JobId) -> bytes | None:
        return self.bodies.get(job)

    def forget(self, jobs: Sequence[JobId]) -> None:
        for job in jobs:
            self.bodies.pop(job, None)

    def compact(self) -> None:
        """Nothing to win."""

    def save(self, world: World, learnt: bytes = b"") -> None:
        """Nothing to keep."""


class Stage:
    """A service with two cards, and all around it."""

    def __init__(self, *, uid: int = 0, held_s: float | None = None) -> None:
        """`held_s`: how long one who thinks may keep the record waiting; None: as long as everywhere."""
        self.uid, self.record, self.clock, self.held_s = uid, Record(), Clock(), held_s
        self.settle: Callable[[Configuration], Rules] = settle_nothing
        self.open()

    def open(self) -> None:
        self.machine = Machine()
        self.service = Service(
            Parts(
                machine=self.machine,
                clock=self.clock,
                record=self.record,
                rules=Rules("future-packing", Settings(engine="python")),
                nodes=(a_node("here", 2),),
                read=self.read,
                exits=lambda job, attempt: (Exit("exited", 3),),
                output=lambda job, attempt, member: Path(f"/out/{job}/{attempt}.{member}"),
                signal=lambda job, number: True,
                user_name=str,
                uid=self.uid,
                passing=(FullError,),
                settle=lambda asked: self.settle(asked),  # noqa: PLW0108 - a test may change it
                reserve=lambda asked, settings: Window(asked.name, 0, 10**9, nodes=(node_id("here"),)),
            )
        )
        if self.held_s is not None:
            self.service.group.patience_s = self.held_s
        self.service.start()

    def read(self, asked: Submission, caller: Caller, settings: Settings) -> Wanted:
        size = asked.spec.get("array", 0)
        if not size:
            return Wanted((a_job("", at=0),), b"{}")
        jobs = tuple(a_job("", at=0, array=Array("", size)) for _ in range(size))
        return Wanted(jobs, b"{}", tuple(range(size)))

    def submit(self, caller: Caller = ANN) -> str:
        return self.service.submit(caller, Submission(command=("x",))).result(PATIENCE_S)

    def phase(self, job: str) -> str:
        return self.service.life(job).phase.value

    def until(self, job: str, phase: str) -> None:
        wait_for(lambda: self.phase(job) == phase, f"{job} to be {phase}", PATIENCE_S)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.service.stop()


def test_what_is_acknowledged_is_on_record_under_its_number(stage: Stage) -> None:
    ids = [stage.submit() for _ in range(3)]
    assert ids == ["1", "2", "3"]
    recorded = [event.job.id for event in stage.record.events if isinstance(event, JobSubmitted)]
    assert recorded == ids
    assert [stage.service.life(job).owner for job in ids] == [ANN.uid] * 3


def test_whoever_asks_first_sees_the_cards() -> None:
    for _ in range(20):
        made = Stage()
        assert len(made.service.cards()) == 2
        made.service.stop()


def test_who_was_refused_by_the_host_is_told_why_while_he_waits(stage: Stage) -> None:
    stage.machine.refusal = "cgroup: No space left on device"
    job = stage.submit()
    wait_for(lambda: stage.service.job(ANN, job).attempts, "its refusal", PATIENCE_S)
    wait_for(lambda: stage.service.job(ANN, job).attempts[-1].outcome == "refused", "its refusal", PATIENCE_S)
    (row,) = stage.service.jobs()
    assert (row.phase, row.reason) == ("pending", "refused")
    said = stage.service.explain(job).result(PATIENCE_S)
    assert said.refused == "cgroup: No space left on device"
    line = "  Its last attempt could not be started here: cgroup: No space left on device."
    assert line in list(explanation_lines(said))
    assert "refused" in job_lines([row])[1]


def test_jobs_run_wait_and_are_over(stage: Stage) -> None:
    ids = [stage.submit() for _ in range(3)]
    stage.until("2", "running")
    assert stage.service.job(ANN, "3").position == 1
    stage.machine.end("1", Outcome.FAILED)
    stage.until("1", "failed")
    stage.until("3", "running")
    rows = {job.id: (job.phase, job.exit_status) for job in stage.service.jobs()}
    assert rows == {"1": ("failed", 3), "2": ("running", None), "3": ("running", None)}
    assert [job.id for job in stage.service.jobs(over=False)] == ids[1:]
    assert [job.id for job in stage.service.jobs(most=1)] == ["3"]


def test_a_full_disk_refuses_and_nothing_is_lost(stage: Stage) -> None:
    first = stage.submit()
    stage.until(first, "running")
    stage.record.is_full = True
    stage.machine.end(first)
    with pytest.raises(UnavailableError) as refused:
        stage.submit()
    assert refused.value.is_full
    stage.record.is_full = False
    stage.until(first, "succeeded")
    assert stage.submit() == "2"
    submitted = [event for event in stage.record.events if isinstance(event, JobSubmitted)]
    assert len(submitted) == 2
    said = ["nothing can be recorded, so nothing is accepted or started: the disk is full"]
    assert list(stage.service.notes) == [*said, "events can be recorded again"], "once each, not at every try"


KEYED = Submission(command=("x",), key="k")


def test_what_is_submitted_twice_under_one_key_is_one_job(stage: Stage) -> None:
    first = stage.service.submit(ANN, KEYED).result(PATIENCE_S)
    assert stage.service.submit(ANN, KEYED).result(PATIENCE_S) == first
    assert stage.service.submit(BEN, KEYED).result(PATIENCE_S) != first, "a key is its user's own"
    stage.service.stop()
    stage.open()
    assert stage.service.submit(ANN, KEYED).result(PATIENCE_S) == first, "it outlives the service"
    assert len([event for event in stage.record.events if isinstance(event, JobSubmitted)]) == 2


def test_a_key_is_of_one_job_only(stage: Stage) -> None:
    stage.service.submit(ANN, KEYED).result(PATIENCE_S)
    with pytest.raises(ConflictError, match="used for another job"):
        stage.service.submit(ANN, Submission(command=("y",), key="k"))


def test_many_threads_with_one_key_get_one_job(stage: Stage) -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: stage.service.submit(ANN, KEYED).result(PATIENCE_S), range(40)))
    assert len(ids) == 1


def test_what_was_refused_may_be_submitted_again_under_its_key(stage: Stage) -> None:
    stage.record.is_full = True
    with pytest.raises(UnavailableError):
        stage.service.submit(ANN, KEYED).result(PATIENCE_S)
    stage.record.is_full = False
    assert stage.service.submit(ANN, KEYED).result(PATIENCE_S) == "1"


def test_a_batch_is_accepted_whole_in_its_order(stage: Stage) -> None:
    answers = stage.service.submit_all(ANN, [Submission(command=(str(at),)) for at in range(5)])
    assert [answer.result(PATIENCE_S) for answer in answers] == ["1", "2", "3", "4", "5"]
    assert stage.service.submit_all(ANN, []) == []


def test_a_batch_is_refused_whole(stage: Stage) -> None:
    stage.record.is_full = True
    answers = stage.service.submit_all(ANN, [Submission(command=("x",))] * 3)
    for answer in answers:
        with pytest.raises(UnavailableError):
            answer.result(PATIENCE_S)
    assert not any(isinstance(event, JobSubmitted) for event in stage.record.events)


@pytest.fixture
def slow_stage() -> Iterator[Stage]:
    """One on which no turn takes too long."""
    made = Stage(held_s=60)
    yield made
    made.service.stop()


def test_a_turn_is_one_append_and_nothing_is_carried_out_before_it(slow_stage: Stage) -> None:
    stage = slow_stage
    appended: list[list[str]] = []
    append, carry_out = stage.record.append, stage.machine.carry_out

    def note(events: Sequence[Event]) -> None:
        appended.append([type(event).__name__ for event in events])
        append(events)

    def look(steps: Sequence[Any]) -> None:
        recorded = {event.job for event in stage.record.events if isinstance(event, Granted)}
        assert {step.job for step in steps if isinstance(step, Start)} <= recorded
        carry_out(steps)

    stage.record.append = note  # type: ignore[method-assign]  # to see how it is called
    stage.machine.carry_out = look  # type: ignore[method-assign]  # the same
    job = stage.submit()
    stage.until(job, "running")
    (first,) = [names for names in appended if "JobSubmitted" in names]
    assert "Granted" in first, "what was asked and what was decided are one append"
    assert stage.service.failure is None


def test_a_record_that_breaks_ends_the_service_and_says_so(stage: Stage) -> None:
    class BrokenError(Exception):
        """Not one that passes."""

    def fail(events: Sequence[Event]) -> None:
        raise BrokenError

    stage.record.append = fail  # type: ignore[method-assign]  # the record breaks while the service runs
    with pytest.raises(UnavailableError):
        stage.submit()
    wait_for(lambda: stage.service.failure is not None, "the failure")
    assert isinstance(stage.service.failure, BrokenError)


def test_after_the_end_nothing_is_accepted(stage: Stage) -> None:
    stage.service.stop()
    with pytest.raises(UnavailableError):
        stage.submit()


def test_a_restart_knows_every_life_as_it_was(stage: Stage) -> None:
    for _ in range(4):
        stage.submit()
    stage.until("2", "running")
    stage.machine.end("1")
    stage.until("1", "succeeded")
    stage.until("3", "running")
    stage.service.cancel(ANN, "4").result(PATIENCE_S)
    stage.until("4", "cancelled")
    stage.service.stop()
    before = stage.service.chronicle.lives
    stage.open()
    assert stage.service.chronicle.lives == before
    assert stage.submit() == "5"


def test_a_life_whose_beginning_is_compacted_is_found_again() -> None:
    stage = Stage()
    job = stage.submit()
    stage.until(job, "running")
    stage.service.stop()
    chronicle = Chronicle(lambda job: None, lambda job, attempt: ())
    chronicle.resume((), stage.service.loop.world)
    life = chronicle.lives[JobId(job)]
    assert (life.phase.value, life.owner, len(life.attempts)) == ("running", None, 1)
    assert life.attempts[0].holds == stage.service.life(job).attempts[0].holds


def test_old_lives_are_forgotten_with_what_lay_beside_them() -> None:
    forgotten: list[JobId] = []
    chronicle = Chronicle(lambda job: None, lambda job, attempt: (), forgotten.extend, kept=2)
    world = World()
    for number in range(4):
        job = a_job(str(number), at=number, seq=number)
        for event in (JobSubmitted(number, job), JobCancelled(number, job.id)):
            world.apply(event)
            chronicle.see((event,), world)
    assert list(chronicle.lives) == ["2", "3"]
    assert forgotten == ["0", "1"]


ACTS: Final[dict[str, Callable[[Service, Caller], Any]]] = {
    "cancel": lambda service, caller: service.cancel(caller, "1").result(PATIENCE_S),
    "signal": lambda service, caller: service.signal(caller, "1", 15).result(PATIENCE_S),
    "output": lambda service, caller: service.output(caller, "1", None, 0),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS.keys())
def test_only_its_owner_and_root_control_a_job(stage: Stage, act: Callable[..., Any]) -> None:
    stage.submit(ANN)
    with pytest.raises(ForbiddenError, match="belongs to 1001"):
        act(stage.service, BEN)
    act(stage.service, ANN)


def test_what_a_job_runs_is_told_to_its_owner_only(stage: Stage) -> None:
    job = stage.submit(ANN)
    assert stage.service.job(ANN, job).command == ("x",)
    assert stage.service.job(BEN, job).command is None
    assert stage.service.job(BEN, job).output is None


def test_only_root_drains(stage: Stage) -> None:
    wait_for(stage.service.cards, "the cards")
    with pytest.raises(ForbiddenError):
        stage.service.drain(ANN, "here", drained=True)
    stage.service.drain(ROOT, "here", drained=True).result(PATIENCE_S)
    wait_for(lambda: stage.service.cards()[0].state == "drained", "the drain", PATIENCE_S)


def test_a_service_of_ones_own_serves_oneself() -> None:
    stage = Stage(uid=ANN.uid)
    assert stage.submit(ANN) == "1"
    with pytest.raises(ForbiddenError, match="only as the user who started it"):
        stage.submit(BEN)
    stage.service.stop()


def test_what_is_over_cannot_be_given_up(stage: Stage) -> None:
    job = stage.submit()
    stage.service.cancel(ANN, job).result(PATIENCE_S)
    stage.until(job, "cancelled")
    with pytest.raises(ConflictError):
        stage.service.cancel(ANN, job)
