"""What a service is put together from: the engine's parts, by what they must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from aliquot.control.intake import Machine
from aliquot.control.loop import Observer
from aliquot.control.views import Caller, Exit, Submission
from aliquot.control.watching import Eyes, Pace
from aliquot.core.errors import AliquotError
from aliquot.core.ids import JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.settings import Settings
from aliquot.core.world import World
from aliquot.ports import Clock, Journal


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
    `eyes`: what can be seen of the cards, None for nothing; `end` ends an attempt for a reason.
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
    eyes: Eyes | None = None
    end: Callable[[JobId, int, str], None] = lambda job, attempt, reason: None
    pace: Pace = Pace()
    user_of_pid: Callable[[int], str] = lambda pid: ""
