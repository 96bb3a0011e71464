"""A live site: one loop in one thread, and what people may ask of it from any other.

Whatever changes something goes through the loop and is on the disk before it is answered. Reading looks at
values that are never changed, so it holds nothing up. Everyone sees every job; what a job runs, prints and
becomes is up to its owner and to root.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from aliquot.control.chronicle import Chronicle, Life
from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.control.explaining import explain_live
from aliquot.control.intake import Intake, Machine
from aliquot.control.kept import Kept, decode_kept, encode_kept
from aliquot.control.listing import card_views, describe, queue_views, summarise
from aliquot.control.loop import Loop, Observer
from aliquot.control.views import (
    Caller,
    CardView,
    Exit,
    JobDetail,
    JobSummary,
    LiveExplanation,
    QueueView,
    Submission,
)
from aliquot.core.errors import AliquotError, NotFoundError
from aliquot.core.events import Event, JobCancelled, NodeDrained, NodeJoined
from aliquot.core.ids import JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.records import Frozen
from aliquot.core.settings import Settings
from aliquot.core.steps import Place
from aliquot.core.world import World
from aliquot.ports import Clock, Journal

COMPACT_EVERY: Final = 20_000  # events
RETRY_MS: Final = 1000
STOPS: Final = "the service stops; ask again when it is back"
_T = TypeVar("_T")


class Record(Journal, Protocol):
    """A journal that keeps bodies beside jobs and can begin again from what it holds."""

    def resume(self) -> World:
        """The world after everything recorded."""
        ...

    def attach(self, job: JobId, payload: bytes) -> None:
        """Keep `payload` beside the submission of `job`, once that is recorded."""
        ...

    def payload(self, job: JobId) -> bytes | None:
        """What was attached."""
        ...

    def forget(self, jobs: Sequence[JobId]) -> None:
        """Drop what lies beside `jobs`."""
        ...

    def compact(self) -> None:
        """Drop events that no snapshot needs."""
        ...

    def save(self, world: World) -> None:
        """Keep a snapshot."""
        ...


class Parts(NamedTuple):
    """What a service is put together from.

    `read` makes a job and the engine's payload of a submission, or raises SpecError. `exits` and `output`
    are the engine's for an attempt and for a member of one. `passing`: errors of the record that may pass.
    """

    machine: Machine
    clock: Clock
    record: Record
    settings: Settings
    policy: str
    nodes: tuple[Node, ...]
    read: Callable[[Submission, Caller], tuple[Job, bytes]]
    exits: Callable[[JobId, int], tuple[Exit | None, ...]]
    output: Callable[[JobId, int, int], Path]
    signal: Callable[[JobId, int], bool]
    user_name: Callable[[int], str]
    uid: int  # of the service
    passing: tuple[type[AliquotError], ...] = ()
    observers: tuple[Observer, ...] = ()


class Service:
    """`start` it, ask, `stop` it. Jobs go on without it.

    `on_change` is called from the loop's thread when something has changed; `failure` is set when the loop
    could not go on, and `on_change` is then called as well.
    """

    def __init__(self, parts: Parts, on_change: Callable[[], None] = lambda: None) -> None:
        self.parts, self.on_change = parts, on_change
        self.failure: BaseException | None = None
        self._errands: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._places: dict[JobId, Place] = {}
        self._lock = threading.Lock()
        self._is_stopping = False
        self._since_compacted = 0
        self._thread = threading.Thread(target=self._run, name="aliquot-loop", daemon=True)
        record = parts.record
        world = record.resume()
        self.chronicle = Chronicle(self._kept_of, parts.exits, self._forget)
        self.intake = Intake(parts.machine, parts.clock.now, record.attach)
        observers: tuple[Observer, ...] = (self.chronicle, self, self.intake, *parts.observers)
        self.loop = Loop(self.intake, parts.clock, record, parts.settings, observers)
        self.loop.world = world
        self.chronicle.resume(record.replay(), world)
        self.intake.submitted = world.tally.submitted
        self.frozen: Frozen = world.freeze()

    def start(self) -> None:
        """Take up what runs, and begin."""
        self.parts.machine.resume(self.loop.world)
        known = self.loop.world.nodes
        for node in self.parts.nodes:
            record = known.get(node.id)
            if record is None or record.node != node or not record.up:
                self.parts.machine.tell(NodeJoined(0, node))
        self._thread.start()

    def stop(self) -> None:
        """End the loop and wait for it; who still waits for an answer gets UnavailableError."""
        self._is_stopping = True
        self.parts.machine.tell()
        if self._thread.is_alive():
            self._thread.join()

    # --- asking for something --------------------------------------------------------------------------

    def submit(self, caller: Caller, asked: Submission) -> Future[JobId]:
        """Accept a job; done once it is on the disk. Raises SpecError, ForbiddenError."""
        self._must_serve()
        if not self.is_admin(caller) and self.parts.uid != 0:
            raise ForbiddenError(
                "this service runs jobs only as the user who started it; ask root to run it for everyone"
            )
        job, payload = self.parts.read(asked, caller)
        kept = Kept(caller.uid, asked.name, asked.command, asked.cwd, msgspec.Raw(payload))
        return self.intake.submit(job, encode_kept(kept))

    def cancel(self, caller: Caller, job: str) -> Future[JobId]:
        """Give a job up; done once that is on the disk. Raises NotFound-, Forbidden-, ConflictError."""
        life = self.own(caller, job)
        if life.over_ms is not None:
            raise ConflictError(f"job {job} is over already: {life.phase.value}")
        return self.intake.tell(JobCancelled(0, life.job.id))

    def signal(self, caller: Caller, job: str, number: int) -> Future[bool]:
        """Send a signal to the processes of a running job; False where none runs."""
        life = self.own(caller, job)
        if life.over_ms is not None:
            raise ConflictError(f"job {job} is over already: {life.phase.value}")
        return self._do(lambda: self.parts.signal(life.job.id, number))

    def drain(self, caller: Caller, node: str, *, drained: bool) -> Future[JobId]:
        """No new work for a node, or work again. Raises ForbiddenError, NotFoundError."""
        if not self.is_admin(caller):
            raise ForbiddenError("only root may take a node out of service")
        found = next((name for name in self.frozen.nodes if node in {str(name), name.name}), None)
        if found is None:
            there = ", ".join(sorted(str(name) for name in self.frozen.nodes))
            raise NotFoundError(f"no node {node!r}; there is {there or 'none'}")
        return self.intake.tell(NodeDrained(0, found, drained))

    def explain(self, job: str) -> Future[LiveExplanation]:
        """Why a job is where it is, or waits. Raises NotFoundError."""
        life = self.life(job)
        return self._do(lambda: self._explain(life.job.id))

    # --- looking -----------------------------------------------------------------------------------------

    def jobs(
        self, *, over: bool = True, owner: int | None = None, most: int | None = None
    ) -> list[JobSummary]:
        """Jobs in order of submission, newest last; the last `most` of those asked for."""
        lives = [
            life
            for life in list(self.chronicle.lives.values())
            if (over or life.over_ms is None) and (owner is None or life.owner == owner)
        ]
        return [summarise(life, self.parts.user_name) for life in (lives if most is None else lives[-most:])]

    def job(self, caller: Caller, job: str) -> JobDetail:
        """All about one job. Raises NotFoundError."""
        life = self.life(job)
        is_own = self._may_control(caller, life)
        kept = self._kept_of(life.job.id) if is_own else None
        output = None
        if is_own and life.attempts:
            output = str(self.parts.output(life.job.id, life.attempts[-1].number, 0))
        return describe(life, self.frozen, self.parts.user_name, kept, output)

    def output(self, caller: Caller, job: str, attempt: int | None, member: int) -> Path | None:
        """Where the output of one member goes; None before the first attempt. Raises as `cancel`."""
        life = self.own(caller, job)
        if not life.attempts:
            return None
        return self.parts.output(life.job.id, attempt or life.attempts[-1].number, member)

    def cards(self) -> list[CardView]:
        """Every card and what is granted of it."""
        lives = self.chronicle.lives
        return card_views(self.frozen, lambda job: _owner_name(lives.get(job), self.parts.user_name))

    def queues(self) -> list[QueueView]:
        """Every queue that is configured or in use."""
        return queue_views(self.parts.settings, list(self.chronicle.lives.values()))

    def life(self, job: str) -> Life:
        """The life of a job, or NotFoundError."""
        life = self.chronicle.lives.get(JobId(job))
        if life is None:
            raise NotFoundError(f"no job {job!r}; 'aliquot jobs' lists those there are")
        return life

    def own(self, caller: Caller, job: str) -> Life:
        """The same where the caller may control it, else ForbiddenError."""
        life = self.life(job)
        if not self._may_control(caller, life):
            owner = "nobody known" if life.owner is None else self.parts.user_name(life.owner)
            raise ForbiddenError(f"job {job} belongs to {owner}; only its owner and root may do this")
        return life

    def is_admin(self, caller: Caller) -> bool:
        """Root, and whoever runs the service."""
        return caller.uid in {0, self.parts.uid}

    # --- the loop ----------------------------------------------------------------------------------------

    def see(self, events: Sequence[Event], world: World) -> None:
        """Show what was recorded, before anyone is told that it was."""
        self.frozen = world.freeze()
        self._since_compacted += len(events)

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                wait = self._turn()
                self._run_errands()
                until = None if wait is None else self.parts.clock.now() + wait
                if not self._is_stopping:
                    self.parts.machine.wait(until)
            self._save()
        except Exception as error:  # whatever it is, those who wait must be told
            self.failure = error
        finally:
            with self._lock:
                self._is_stopping = True
            self.intake.close(UnavailableError(STOPS))
            self._run_errands()
            self.on_change()

    def _turn(self) -> int | None:
        """One turn; the longest time to wait for the next, None for any."""
        try:
            happened = self.loop.turn()
        except self.parts.passing as error:
            self.intake.refuse(UnavailableError(str(error), is_full=True))
            return RETRY_MS
        if happened:
            self._note_places()
            self.on_change()
        if self._since_compacted >= COMPACT_EVERY:
            self._since_compacted = 0
            self.parts.record.compact()
        return None

    def _save(self) -> None:
        """A restart then has nothing to fold. Not worth an error: what is recorded is enough."""
        with contextlib.suppress(*self.parts.passing):
            self.parts.record.save(self.loop.world)

    def _run_errands(self) -> None:
        for errand, answer in self._take_errands():
            try:
                answer.set_result(errand())
            except Exception as error:  # whoever asked is told
                answer.set_exception(error)

    def _take_errands(self) -> Iterator[tuple[Callable[[], Any], Future[Any]]]:
        while self._errands:
            yield self._errands.popleft()

    def _do(self, errand: Callable[[], _T]) -> Future[_T]:
        """Have the loop's thread do something between two turns."""
        answer: Future[_T] = Future()
        answer.set_running_or_notify_cancel()
        with self._lock:
            self._must_serve()
            self._errands.append((errand, answer))
        self.parts.machine.tell()
        return answer

    def _note_places(self) -> None:
        """Keep what choices cost, as long as their jobs live."""
        steps = self.loop.last_plan.steps if self.loop.last_plan is not None else ()
        for step in steps:
            if isinstance(step, Place):
                self._places[step.job] = step
        jobs = self.loop.world.jobs
        if len(self._places) > 2 * len(jobs) + 100:
            self._places = {job: place for job, place in self._places.items() if job in jobs}

    def _explain(self, job: JobId) -> LiveExplanation:
        loop = self.loop
        return explain_live(
            self.life(job), loop.world, self.parts.settings, self.parts.policy,
            self._places.get(job), loop.memo, self.parts.clock.now(),
        )  # fmt: skip  # three lines read better than seven

    def _forget(self, jobs: Sequence[JobId]) -> None:
        """On a full disk what lies beside old jobs stays; the events seen are on record all the same."""
        with contextlib.suppress(*self.parts.passing):
            self.parts.record.forget(jobs)

    def _kept_of(self, job: JobId) -> Kept | None:
        body = self.parts.record.payload(job)
        return None if body is None else decode_kept(body)

    def _may_control(self, caller: Caller, life: Life) -> bool:
        return self.is_admin(caller) or caller.uid == life.owner

    def _must_serve(self) -> None:
        if self._is_stopping:
            raise UnavailableError(STOPS)


def _owner_name(life: Life | None, name: Callable[[int], str]) -> str:
    return "" if life is None or life.owner is None else name(life.owner)
