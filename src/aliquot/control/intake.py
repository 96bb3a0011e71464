"""The door between those who ask, in any thread, and the loop: it gives ids and says when a thing is on disk.

It is the loop's cluster, in front of the engine's own. What the record could not take is not lost: what
people submitted is refused to them, what the machine told is offered to the record again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from aliquot.control.arrays import numbered
from aliquot.core.events import Event, JobSubmitted
from aliquot.core.ids import JobId
from aliquot.core.jobs import After, Job, When
from aliquot.core.steps import Work
from aliquot.core.world import World

SLICE: Final = 10_000  # decisions of one person that a turn takes up; others get theirs in between


class Machine(Protocol):
    """A cluster of live machines, as engines make them."""

    @property
    def resizes_in_place(self) -> bool:
        """See `ports.Cluster`."""
        ...

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


class Behind(NamedTuple):
    """An edge to the `place`-th of what is submitted in the same call, which has no id yet."""

    place: int
    when: When


class Submitted(NamedTuple):
    """Jobs without ids, one or all of an array with their indices, and what lies beside them.

    `behind`: what of the same call, and before it, they wait for.
    """

    jobs: Sequence[Job]
    body: bytes
    indices: Sequence[int] = ()
    behind: Sequence[Behind] = ()


class _Ask(NamedTuple):
    """Events of one decision, or what is submitted; recorded together, and then `answer` is done.

    `named`: the jobs of each submission of the same call, as they get their ids.
    """

    events: Sequence[Event]
    submitted: Submitted | None
    answer: Future[JobId]
    named: list[list[JobId]]


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
        self._slices: deque[_Ask] = deque()  # of which a turn takes up one
        self._machine_told: list[Event] = []
        self._asked: list[tuple[Sequence[Event], JobId, _Ask]] = []

    @property
    def resizes_in_place(self) -> bool:
        """As the machine can."""
        return self._machine.resizes_in_place

    def submit_all(self, asked: Sequence[Submitted]) -> list[Future[JobId]]:
        """Accept all, or none; ids and times are given here.

        Each is done, in order, once it is on the disk: with its id, or that of its array.
        """
        return self._ask([((), one) for one in asked])

    def tell(self, *events: Event) -> Future[JobId]:
        """Something a person decided; done once all of it is on the disk."""
        return self._ask([(events, None)])[0]

    def tell_apart(self, events: Sequence[Event]) -> Future[JobId]:
        """The same of decisions that need not be recorded together, in slices; done once the last is."""
        if len(events) <= SLICE:
            return self.tell(*events)
        slices = [events[at : at + SLICE] for at in range(0, len(events), SLICE)]
        return self._ask([(part, None) for part in slices], self._slices)[-1]

    def observe(self) -> Sequence[Event]:
        """What the machine told, then what people asked for."""
        if not self._machine_told:
            self._machine_told = list(self._machine.observe())
        now, number = self._now(), self.submitted
        number += sum(len(ask.submitted.jobs) for _, _, ask in self._asked if ask.submitted is not None)
        if self._slices:
            self._asks.append(self._slices.popleft())
        if self._slices:
            self._machine.tell()  # the next turn is at once
        while self._asks:
            ask = self._asks.popleft()
            if ask.submitted is None:
                self._asked.append(([replace(event, at=now) for event in ask.events], JobId(""), ask))
                continue
            name = JobId(str(number + 1))
            self._asked.append((_accepted(ask.submitted, number, now, ask.named), name, ask))
            self._attach(name, ask.submitted.body)
            number += len(ask.submitted.jobs)
        return [*self._machine_told, *(event for events, _, _ in self._asked for event in events)]

    def carry_out(self, steps: Sequence[Work]) -> None:
        """The machine's, once what they come from is on record."""
        self._flush()
        self._machine.carry_out(steps)

    def see(self, events: Sequence[Event], world: World) -> None:
        """What was observed is on the disk: tell those who asked."""
        self._machine_told = []
        self.submitted = world.tally.submitted
        asked, self._asked = self._asked, []
        for _, name, ask in asked:
            ask.answer.set_result(name)

    def refuse_new(self, error: Exception) -> bool:
        """What was submitted could not be recorded: say so, and keep all else that was asked for.

        Whether there is something else.
        """
        with self._lock:
            new = [entry for entry in self._asked if entry[2].submitted is not None]
            self._asked = [entry for entry in self._asked if entry[2].submitted is None]
        for _, _, ask in new:
            ask.answer.set_exception(error)
        return bool(new) and bool(self._asked or self._machine_told)

    def refuse(self, error: Exception) -> None:
        """What was observed could not be recorded: say so to those who asked for it, in this turn."""
        asked, self._asked = self._asked, []
        if not asked:
            return
        with self._lock:
            waiting = [*(ask for _, _, ask in asked), *self._slices]
            self._slices.clear()
        for ask in waiting:
            ask.answer.set_exception(error)

    def close(self, error: Exception) -> None:
        """Refuse what was asked for, and whatever is asked for from now on."""
        with self._lock:
            self._closed = error
            waiting = [*(ask for _, _, ask in self._asked), *self._asks, *self._slices]
            self._asked = []
            self._asks.clear()
            self._slices.clear()
        for ask in waiting:
            ask.answer.set_exception(error)

    def _ask(
        self, asked: Sequence[tuple[Sequence[Event], Submitted | None]], into: deque[_Ask] | None = None
    ) -> list[Future[JobId]]:
        named: list[list[JobId]] = []
        asks = [_Ask(events, submitted, Future(), named) for events, submitted in asked]
        for ask in asks:
            ask.answer.set_running_or_notify_cancel()  # from here on nobody can take it back
        with self._lock:
            if self._closed is not None:
                raise self._closed
            # in one piece, so that one turn takes all of them
            (self._asks if into is None else into).extend(asks)
        self._machine.tell()
        return [ask.answer for ask in asks]


def _accepted(asked: Submitted, number: int, now: int, named: list[list[JobId]]) -> list[Event]:
    """Jobs with the numbers behind `number`, which are `named` for those of their call behind them."""
    array = str(number + 1)
    indices = asked.indices or (None,) * len(asked.jobs)
    behind = [After(job, edge.when) for edge in asked.behind for job in named[edge.place]]
    jobs = [
        numbered(job, number + at, array, index, now)
        for at, (job, index) in enumerate(zip(asked.jobs, indices, strict=True), 1)
    ]
    if behind:
        jobs = [replace(job, after=(*job.after, *behind)) for job in jobs]
    named.append([job.id for job in jobs])
    return [JobSubmitted(now, job) for job in jobs]
