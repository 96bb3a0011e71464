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
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from aliquot.control.accepting import Accepting
from aliquot.control.answering import Answering
from aliquot.control.counting import Counting
from aliquot.control.errors import BatchError, ConflictError, UnavailableError
from aliquot.control.foresight import Foresight
from aliquot.control.grouping import Group
from aliquot.control.intake import Intake
from aliquot.control.looking import Lookout
from aliquot.control.loop import Loop
from aliquot.control.overbooked import Overbooked, overbooked_notes
from aliquot.control.parts import Parts, Rules
from aliquot.control.quotas import notes_on_queues
from aliquot.control.reservation_views import Reservation
from aliquot.control.reserving import changes_of, wanted_by, with_window, without_window
from aliquot.control.room import Room
from aliquot.control.snapshots import SnapshotKeeper
from aliquot.control.views import (
    Caller,
    Configuration,
    InForce,
    Submission,
)
from aliquot.control.watching import Watch
from aliquot.core.errors import SpecError
from aliquot.core.events import Event, JobCancelled, NodeDrained, NodeJoined, WindowCancelled, WindowMade
from aliquot.core.ids import JobId, NodeId
from aliquot.core.planner import Memo
from aliquot.core.world import World

COMPACT_EVERY: Final = 20_000  # events
RETRY_MS: Final = 1000
NOTES: Final = 50  # of what happened, the latest
STOPS: Final = "the service stops; ask again when it is back"
_T = TypeVar("_T")


class Service(Answering):
    """`start` it, ask, `stop` it. Jobs go on without it.

    `on_change` is called from the loop's thread when something has changed; `failure` is set when the loop
    could not go on, and `on_change` is then called as well.
    """

    def __init__(self, parts: Parts, on_change: Callable[[], None] = lambda: None) -> None:
        super().__init__(parts)
        self.on_change = on_change
        self.failure: BaseException | None = None
        self._errands: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._is_stopping = self._is_refused = False
        self._since_compacted = 0
        self._has_turned = threading.Event()
        self._thread = threading.Thread(target=self._run, name="aliquot-loop", daemon=True)
        self.notes: deque[str] = deque(maxlen=NOTES)
        self.room = Room(parts.lack, self.say)
        record = parts.record
        foresight = Foresight(self.rules.settings, note=record.note_guesses)
        world = record.resume(**self.rules.folding, pupil=foresight)
        self.intake = Intake(parts.machine, parts.clock.now, record.attach, self._flush)
        self.accepting = Accepting(self, self.intake, self.room)
        self.lookout = Lookout(
            self.rules.settings, world, is_ready=Counting(parts.keep_kernels), on_look=self._foreseen,
            foresight=foresight,
        )  # fmt: skip  # parts only
        keeper = SnapshotKeeper(record, every=COMPACT_EVERY, learnt=self.lookout.experience)
        own = (self.chronicle, self, self.intake, self.lookout, Overbooked(self.say), keeper)
        self.group = Group(record, (*own, *parts.observers))
        self.loop = Loop(self.intake, parts.clock, self.group, self.rules.settings, (self.group,))
        self.loop.world = world
        self.chronicle.resume(record.replay(), world)
        self.intake.submitted = world.tally.submitted
        self.frozen = world.freeze()

    def start(self) -> None:
        """Take up what runs, and begin; on return the nodes are known, as far as that can be recorded."""
        self.parts.machine.resume(self.loop.world)
        known = self.loop.world.nodes
        for node in self.parts.nodes:
            record = known.get(node.id)
            if record is None or record.node != node or not record.up:
                self.parts.machine.tell(NodeJoined(0, node))
            else:
                for note in overbooked_notes(self.frozen, node.id):
                    self.say(note)
        self._keep_windows()
        for note in notes_on_queues(self.frozen, self.rules.settings):
            self.say(note)
        self.lookout.start()
        self._thread.start()
        self._has_turned.wait()
        if self.parts.eyes is not None:
            self.watch = Watch(
                self.parts.eyes, self.parts.nodes[0].id, lambda: self.frozen, self.parts.clock.now,
                self.parts.machine.tell, self._end, self.parts.pace, self.say,
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
        self.lookout.stop()

    # --- asking for something --------------------------------------------------------------------------

    def submit(self, caller: Caller, asked: Submission) -> Future[JobId]:
        """Accept a job; done once it is on the disk. Raises SpecError, ForbiddenError, ConflictError.

        Under a key that the caller has used before, it is the job of then.
        """
        try:
            return self.submit_all(caller, (asked,))[0]
        except BatchError as error:
            raise error.error from error

    def submit_all(self, caller: Caller, asked: Sequence[Submission]) -> list[Future[JobId]]:
        """Accept jobs, all or none; the last to be done is the last of them. `after` may name earlier ones.

        Raises BatchError about one of them, ForbiddenError and UnavailableError about all.
        """
        self._must_serve()
        return self.accepting.accept(caller, asked, self.rules.settings)

    def cancel(self, caller: Caller, job: str, *, at_once: bool = False) -> Future[JobId]:
        """Give a job, or all of an array, up; done once that is on the disk. `at_once`: without a grace.

        Raises NotFound-, Forbidden-, ConflictError.
        """
        living = self._living(caller, job)
        gone = [JobCancelled(0, life.job.id, at_once=at_once, by=caller.uid) for life in living]
        return self.intake.tell_apart(gone)

    def signal(self, caller: Caller, job: str, number: int) -> Future[bool]:
        """Send a signal to the processes of a running job, or of an array; False where none runs."""
        living = self._living(caller, job)
        jobs = [life.job.id for life in living]
        return self._do(lambda: self._signal_all(jobs, number))

    def drain(self, caller: Caller, name: str, *, drained: bool) -> Future[JobId]:
        """No new work for a node, or work again; a card that is out for a fatal error only comes back.

        Raises ForbiddenError, NotFoundError, SpecError, and ConflictError for a card that stays out.
        """
        self.must_administer(caller)
        found = self.find_place(name)
        if isinstance(found, NodeId):
            return self.intake.tell(NodeDrained(0, found, drained))
        if drained:
            raise SpecError(
                f"{name} is a card", field="node", value=name, hint="a node; only an undrain takes a card"
            )
        if self.watch is not None and (fault := self.watch.pardon(found)) is not None:
            raise ConflictError(f"card {name} stays out: {fault.text}")
        answer: Future[JobId] = Future()  # the next look at the cards does the rest
        answer.set_result(JobId(""))
        return answer

    def apply(self, caller: Caller, configuration: Configuration) -> Future[InForce]:
        """Go by other documents from now on; done once they are on the disk.

        What runs goes on. Jobs of a queue that is gone count in the nearest one above that is left. Raises
        ForbiddenError, and SpecError where the documents are wrong; then nothing has changed.
        """
        self.must_administer(caller)
        rules = self.parts.settle(configuration)
        return self._do(lambda: self._go_by(rules))

    def reserve(self, caller: Caller, asked: Reservation) -> Future[None]:
        """Close cards for a time; done once that is on the disk, and in force with the loop's next turn.

        Raises ForbiddenError and SpecError; the answer may be a ConflictError.
        """
        self.must_administer(caller)
        window = self.parts.reserve(asked, self.rules.settings)
        made = WindowMade(0, window)
        return self._do(lambda: self._change_windows(lambda now: with_window(self.rules, window, now), made))

    def unreserve(self, caller: Caller, name: str) -> Future[None]:
        """Take a reservation back. The same; the answer may be a NotFound- or ConflictError too."""
        self.must_administer(caller)
        gone = WindowCancelled(0, name)
        return self._do(lambda: self._change_windows(lambda now: without_window(self.rules, name, now), gone))

    def say(self, text: str) -> None:
        """A thing that a person should know; from any thread."""
        self.notes.append(text)
        self.parts.say(text)

    def look_ahead(self) -> None:
        """Somebody waits to be told what is expected: look ahead soon."""
        self.lookout.ask()
        self.parts.machine.tell()

    # --- the loop ----------------------------------------------------------------------------------------

    def see(self, events: Sequence[Event], world: World) -> None:
        """Show what was recorded, before anyone is told that it was."""
        if self._is_refused:
            self._is_refused = False
            self.say("events can be recorded again")
        self.frozen = world.freeze()
        self._since_compacted += len(events)

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                wait = self._turn()
                self._has_turned.set()
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
            self._has_turned.set()
            self.on_change()

    def _turn(self) -> int | None:
        """One turn; the longest time to wait for the next, None for any."""
        try:
            happened = self.loop.turn()
            self.group.flush()
        except self.parts.passing as error:
            self._fall_back()
            if not self._is_refused:
                self._is_refused = True
                self.say(f"nothing can be recorded, so nothing is accepted or started: {error}")
            self.intake.carry_out(self.loop.world.outstanding())  # of what happened, and is on record
            refusal = UnavailableError(str(error), is_full=True)
            if self.intake.refuse_new(refusal):
                return 0  # the rest may be taken without what is new
            self.intake.refuse(refusal)
            return RETRY_MS
        self.group.is_eager = False
        if happened:
            self._note_places()
            self.on_change()
        if self._since_compacted >= COMPACT_EVERY:
            self._since_compacted = 0
            with contextlib.suppress(*self.parts.passing):
                self.parts.record.compact()
        self.room.note()
        return self.lookout.look(self.loop.world, self.parts.clock.now())

    def _flush(self) -> None:
        """Before anything is carried out."""
        self.group.flush()

    def _fall_back(self) -> None:
        """The record took nothing: the world is what is recorded again, and so until it takes something."""
        self.group.is_eager = True
        if self.group.is_holding:
            self.group.forget()
            world = self.parts.record.resume(**self.rules.folding)
            self.loop.world, self.loop.memo = world, Memo()

    def _save(self) -> None:
        """A restart then has nothing to fold. Not worth an error: what is recorded is enough."""
        with contextlib.suppress(*self.parts.passing):
            self.parts.record.save(self.loop.world, self.lookout.experience())

    def _keep_windows(self) -> None:
        """Reservations are those of the documents, and those that people asked for."""
        changes = changes_of(wanted_by(self.rules), self.frozen.closures, self.parts.clock.now())
        self.parts.machine.tell(*changes)

    def _change_windows(self, change: Callable[[int], Rules], event: Event) -> None:
        """In the loop's thread: one reservation more or less, on the disk first."""
        rules = change(self.parts.clock.now())
        try:
            self.parts.record.keep_documents(msgspec.json.encode(rules.configuration))
        except self.parts.passing as error:
            raise UnavailableError(str(error), is_full=True) from error
        self.rules = rules
        self.parts.machine.tell(event)

    def _go_by(self, rules: Rules) -> InForce:
        """In the loop's thread, between two turns. Nothing changes before it is on the disk.

        The snapshot is what the new rules begin with: events before it were folded by the old ones.
        """
        record = self.parts.record
        reserved = self.rules.configuration.reserved  # the documents do not say these
        rules = rules._replace(configuration=replace(rules.configuration, reserved=reserved))
        try:
            record.save(self.loop.world, self.lookout.experience())
            record.keep_documents(msgspec.json.encode(rules.configuration))
        except self.parts.passing as error:
            raise UnavailableError(str(error), is_full=True) from error
        self.rules, self.loop.settings, self.loop.memo = rules, rules.settings, Memo()
        self.loop.world = record.resume(**rules.folding)
        self.frozen = self.loop.world.freeze()
        self._keep_windows()
        self.lookout.go_by(rules.settings)
        for note in (*rules.notes, *notes_on_queues(self.frozen, rules.settings)):
            self.say(note)
        self.parts.machine.tell()  # who waits may start under these
        return self.in_force()

    def _signal_all(self, jobs: Sequence[JobId], number: int) -> bool:
        reached = [self.parts.signal(job, number) for job in jobs]
        return any(reached)

    def _foreseen(self) -> None:
        """A look ahead is over: who waits for it may be told, and the loop may want the next."""
        self.on_change()
        if self.lookout.foresight.is_stale:
            self.parts.machine.tell()

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

    def _end(self, job: JobId, attempt: int, reason: str) -> None:
        with contextlib.suppress(UnavailableError):
            self._do(lambda: self.parts.end(job, attempt, reason))

    def _must_serve(self) -> None:
        if self._is_stopping:
            raise UnavailableError(STOPS)
