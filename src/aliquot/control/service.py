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
from typing import Any, Final, TypeVar

import msgspec

from aliquot.control.chronicle import Chronicle, Life
from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.control.explaining import explain_live
from aliquot.control.grouping import Group
from aliquot.control.intake import Intake
from aliquot.control.kept import Kept, decode_kept, encode_kept
from aliquot.control.keys import Keys, digest_of
from aliquot.control.listing import card_views, describe, peak_of, queue_views, summarise
from aliquot.control.looking import Lookout
from aliquot.control.loop import Loop
from aliquot.control.parts import Parts
from aliquot.control.progress import ProgressBoard, Whose
from aliquot.control.views import (
    Caller,
    CardView,
    JobDetail,
    JobSummary,
    LiveExplanation,
    Progress,
    QueueView,
    Submission,
)
from aliquot.control.watching import Watch
from aliquot.core.errors import NotFoundError, SpecError
from aliquot.core.events import Event, JobCancelled, NodeDrained, NodeJoined
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.planner import Memo
from aliquot.core.records import Frozen
from aliquot.core.steps import Place
from aliquot.core.world import World

COMPACT_EVERY: Final = 20_000  # events
RETRY_MS: Final = 1000
STOPS: Final = "the service stops; ask again when it is back"
_T = TypeVar("_T")


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
        self.progress = ProgressBoard(parts.clock.now, self._whose, lambda uid: uid in {0, parts.uid})
        self.watch: Watch | None = None
        record = parts.record
        world = record.resume()
        self.chronicle = Chronicle(self._kept_of, parts.exits, self._forget)
        self._keys = Keys(self.chronicle)
        self.intake = Intake(parts.machine, parts.clock.now, record.attach, self._flush)
        self.lookout = Lookout(parts.settings, world)
        own = (self.chronicle, self, self.intake, self.lookout.foresight)
        self.group = Group(record, (*own, *parts.observers))
        self.loop = Loop(self.intake, parts.clock, self.group, parts.settings, (self.group,))
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
        if self.parts.eyes is not None:
            self.watch = Watch(
                self.parts.eyes, self.parts.nodes[0].id, lambda: self.frozen, self.parts.clock.now,
                self.parts.machine.tell, self._end, self.parts.pace,
            )  # fmt: skip  # parts only
            self.watch.start()

    def stop(self) -> None:
        """End the loop and wait for it; who still waits for an answer gets UnavailableError."""
        if self.watch is not None:
            self.watch.stop()
        self._is_stopping = True
        self.parts.machine.tell()
        if self._thread.is_alive():
            self._thread.join()

    # --- asking for something --------------------------------------------------------------------------

    def submit(self, caller: Caller, asked: Submission) -> Future[JobId]:
        """Accept a job; done once it is on the disk. Raises SpecError, ForbiddenError, ConflictError.

        Under a key that the caller has used before, it is the job of then.
        """
        return self.submit_all(caller, (asked,))[0]

    def submit_all(self, caller: Caller, asked: Sequence[Submission]) -> list[Future[JobId]]:
        """Accept jobs, all or none; the last to be done is the last of them. Raises as `submit`."""
        self._must_serve()
        if not self.is_admin(caller) and self.parts.uid != 0:
            raise ForbiddenError(
                "this service runs jobs only as the user who started it; ask root to run it for everyone"
            )
        keys = [one.key for one in asked if one.key]
        if len(set(keys)) < len(keys):
            raise SpecError("the same key twice", field="key", hint="one key for each job of a batch")
        with self._keys:
            known = [self._keys.find(caller, one) for one in asked]
            fresh = [one for one, job in zip(asked, known, strict=True) if job is None]
            answers = self.intake.submit_all([self._read(caller, one) for one in fresh])
            for one, answer in zip(fresh, answers, strict=True):
                self._keys.claim(caller, one, answer)
        given = iter(answers)
        return [next(given) if job is None else job for job in known]

    def _read(self, caller: Caller, asked: Submission) -> tuple[Job, bytes]:
        job, payload = self.parts.read(asked, caller)
        for edge in job.after:
            self.own(caller, edge.on)  # one waits for jobs one may see
        digest = digest_of(asked) if asked.key else ""
        raw = msgspec.Raw(payload)
        return job, encode_kept(
            Kept(caller.uid, asked.name, asked.command, asked.cwd, raw, asked.key, digest)
        )

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
        table = self.lookout.foresight.table
        lives = lives if most is None else lives[-most:]
        return [summarise(life, self.parts.user_name, table.get(life.job.id)) for life in lives]

    def job(self, caller: Caller, job: str) -> JobDetail:
        """All about one job. Raises NotFoundError."""
        life = self.life(job)
        is_own = self._may_control(caller, life)
        kept = self._kept_of(life.job.id) if is_own else None
        output = None
        if is_own and life.attempts:
            output = str(self.parts.output(life.job.id, life.attempts[-1].number, 0))
        progress = self._progress_of(life) if is_own else ()
        return describe(life, self.frozen, self.parts.user_name, kept, output, progress)

    def output(self, caller: Caller, job: str, attempt: int | None, member: int) -> Path | None:
        """Where the output of one member goes; None before the first attempt. Raises as `cancel`."""
        life = self.own(caller, job)
        if not life.attempts:
            return None
        return self.parts.output(life.job.id, attempt or life.attempts[-1].number, member)

    def cards(self) -> list[CardView]:
        """Every card, what is granted of it and how it is used."""
        lives = self.chronicle.lives
        return card_views(
            self.frozen,
            lambda job: _owner_name(lives.get(job), self.parts.user_name),
            {} if self.watch is None else self.watch.readings(),
            self.parts.user_of_pid,
        )

    def queues(self) -> list[QueueView]:
        """Every queue that is configured or in use."""
        seen = self.lookout.foresight
        lives = list(self.chronicle.lives.values())
        return queue_views(self.parts.settings, lives, seen.promises, seen.crowding)

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
            if not self.group.is_eager:
                self.parts.machine.observe()  # all that it told is on record: what is left of it may go
        except Exception as error:  # whatever it is, those who wait must be told
            self.failure = error
        finally:
            with self._lock:
                self._is_stopping = True
            self.group.close()
            self.intake.close(UnavailableError(STOPS))
            self._run_errands()
            self.on_change()

    def _turn(self) -> int | None:
        """One turn; the longest time to wait for the next, None for any."""
        try:
            happened = self.loop.turn()
            self.group.flush()
        except self.parts.passing as error:
            self._fall_back()
            self.intake.refuse(UnavailableError(str(error), is_full=True))
            return RETRY_MS
        self.group.is_eager = False
        if happened:
            self._note_places()
            self.on_change()
        if self._since_compacted >= COMPACT_EVERY:
            self._since_compacted = 0
            self.parts.record.compact()
        return self.lookout.look(self.loop.world, self.parts.clock.now())

    def _flush(self) -> None:
        """Before anything is carried out."""
        self.group.flush()

    def _fall_back(self) -> None:
        """The record took nothing: the world is what is recorded again, and so until it takes something."""
        self.group.is_eager = True
        if self.group.is_holding:
            self.group.forget()
            self.loop.world, self.loop.memo = self.parts.record.resume(), Memo()

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
            self._places.get(job), loop.memo, self.parts.clock.now(), self.lookout,
        )  # fmt: skip  # three lines read better than seven

    def _progress_of(self, life: Life) -> tuple[Progress, ...]:
        if not life.attempts:
            return ()
        last = life.attempts[-1]
        world = self.frozen
        return self.progress.of(life.job.id, last.number, lambda member: peak_of(world, last.holds[member]))

    def _whose(self, job: JobId) -> Whose | None:
        life = self.chronicle.lives.get(job)
        if life is None or life.over_ms is not None or not life.attempts:
            return None
        last = life.attempts[-1]
        return Whose(life.owner, last.number, len(last.holds))

    def _end(self, job: JobId, attempt: int, reason: str) -> None:
        with contextlib.suppress(UnavailableError):
            self._do(lambda: self.parts.end(job, attempt, reason))

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
