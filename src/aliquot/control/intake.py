"""The door between those who ask, in any thread, and the loop: it gives ids and says when a thing is on disk.

It is the loop's cluster, in front of the engine's own. What the record could not take is not lost: what
people asked for is refused to them, what the machine told is offered to the record again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from aliquot.core.events import Event, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.steps import Work
from aliquot.core.world import World


class Machine(Protocol):
    """A cluster of live machines, as engines make them."""

    def tell(self, *events: Event) -> None:
        """Something happened; from any thread. Ends a `wait`."""
        ...

    def wait(self, until: int | None = None) -> None:
        """Sleep until there may be something to observe."""
        ...

    def resume(self, world: World) -> None:
        """After a restart: take up what should live."""
        ...

    def observe(self) -> Sequence[Event]:
        """What happened since the last call; to call is to say that all before is on record."""
        ...

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Begin each step."""
        ...


class _Ask(NamedTuple):
    """`event` of a submission has a job without id, which `body` goes with."""

    event: Event
    body: bytes
    answer: Future[JobId]


class Intake:
    """Port `Cluster` over `machine`. `attach` keeps a body beside a job until its submission is recorded.

    `flush` is called before steps are carried out.
    """

    is_over = False

    def __init__(
        self,
        machine: Machine,
        now: Callable[[], int],
        attach: Callable[[JobId, bytes], None],
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._machine, self._now, self._attach, self._flush = machine, now, attach, flush
        self.submitted = 0  # jobs ever accepted; their numbers are their ids
        self._lock = Lock()
        self._closed: Exception | None = None
        self._asks: deque[_Ask] = deque()
        self._machine_told: list[Event] = []
        self._asked: list[tuple[Event, _Ask]] = []

    def submit(self, job: Job, body: bytes) -> Future[JobId]:
        """Accept `job`, whose id and time are given here; done once it is on the disk."""
        return self.submit_all([(job, body)])[0]

    def submit_all(self, jobs: Sequence[tuple[Job, bytes]]) -> list[Future[JobId]]:
        """The same of several, all or none; done in their order."""
        return self._ask([(JobSubmitted(0, job), body) for job, body in jobs])

    def tell(self, event: Event) -> Future[JobId]:
        """Something a person decided; done once it is on the disk."""
        return self._ask([(event, b"")])[0]

    def observe(self) -> Sequence[Event]:
        """What the machine told, then what people asked for."""
        if not self._machine_told:
            self._machine_told = list(self._machine.observe())
        now, number = self._now(), self.submitted
        while self._asks:
            ask = self._asks.popleft()
            event = replace(ask.event, at=now)
            if isinstance(event, JobSubmitted):
                number += 1
                job = replace(event.job, id=JobId(str(number)), seq=number, submitted_ms=now)
                event = replace(event, job=job)
                self._attach(job.id, ask.body)
            self._asked.append((event, ask))
        return [*self._machine_told, *(event for event, _ in self._asked)]

    def carry_out(self, steps: Sequence[Work]) -> None:
        """The machine's, once what they come from is on record."""
        self._flush()
        self._machine.carry_out(steps)

    def see(self, events: Sequence[Event], world: World) -> None:
        """What was observed is on the disk: tell those who asked."""
        self._machine_told = []
        self.submitted = world.tally.submitted
        asked, self._asked = self._asked, []
        for event, ask in asked:
            ask.answer.set_result(event.job.id if isinstance(event, JobSubmitted) else JobId(""))

    def refuse(self, error: Exception) -> None:
        """What was asked for could not be recorded: say so to those who asked."""
        with self._lock:
            waiting = [ask for _, ask in self._asked] + list(self._asks)
            self._asks.clear()
        self._asked = []
        for ask in waiting:
            ask.answer.set_exception(error)

    def close(self, error: Exception) -> None:
        """Refuse what was asked for, and whatever is asked for from now on."""
        with self._lock:
            self._closed = error
        self.refuse(error)

    def _ask(self, asked: Sequence[tuple[Event, bytes]]) -> list[Future[JobId]]:
        asks = [_Ask(event, body, Future()) for event, body in asked]
        for ask in asks:
            ask.answer.set_running_or_notify_cancel()  # from here on nobody can take it back
        with self._lock:
            if self._closed is not None:
                raise self._closed
            self._asks.extend(asks)  # in one piece, so that one turn takes all of them
        self._machine.tell()
        return [ask.answer for ask in asks]
