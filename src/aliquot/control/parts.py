"""What a service is put together from: the engine's parts, by what they must do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TypedDict

from aliquot.control.experience import Pupil
from aliquot.control.intake import Machine
from aliquot.control.loop import Observer
from aliquot.control.reservation_views import Reservation
from aliquot.control.views import Caller, Configuration, Exit, Submission
from aliquot.control.watching import Eyes, Pace
from aliquot.core.decay import HALF_LIFE_MS
from aliquot.core.errors import AliquotError, SpecError
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job
from aliquot.core.settings import Settings
from aliquot.core.windows import Window
from aliquot.core.world import World
from aliquot.ports import Clock, Journal


class Record(Journal, Protocol):
    """A journal that keeps bodies beside jobs and can begin again from what it holds."""

    def resume(self, *, half_life_ms: int = 0, quantile_milli: int = 0, pupil: Pupil | None = None) -> World:
        """The world after everything recorded, folded as `Rules.folding` says; `pupil` learns on the way."""
        ...

    def note_guesses(self, guesses: bytes) -> None:
        """Keep what was said of newcomers, for a pupil to hear; from any thread."""
        ...

    def keep_documents(self, body: bytes) -> None:
        """Keep what the settings follow from."""
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

    def save(self, world: World, learnt: bytes = b"") -> None:
        """Keep a snapshot, and what was `learnt` by then."""
        ...


class Folding(TypedDict):
    """What the fold of a record depends on: half-life of past usage, quantile of learnt run times."""

    half_life_ms: int
    quantile_milli: int


class Rules(NamedTuple):
    """What a service goes by: a policy with its queues, and the documents it follows from."""

    policy: str
    settings: Settings
    configuration: Configuration = Configuration()
    notes: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()

    @property
    def folding(self) -> Folding:
        """What the fold of the record depends on, as `resume` takes it.

        Past usage is kept whether it counts or not, since that may change.
        """
        settings = self.settings
        return {
            "half_life_ms": settings.order.half_life_ms or HALF_LIFE_MS,
            "quantile_milli": settings.estimates.learnt_milli,
        }


class Wanted(NamedTuple):
    """A submission, read: one job without an id, or one for each of its array, by index.

    All have the one `payload`, which is the engine's as JSON.
    """

    jobs: tuple[Job, ...]
    payload: bytes
    indices: tuple[int, ...] = ()


def settle_nothing(configuration: Configuration) -> Rules:
    """Of a service that cannot read documents."""
    raise SpecError("this service takes no documents", field="files")


def reserve_nothing(asked: Reservation, settings: Settings) -> Window:
    """Of a service that cannot read reservations."""
    raise SpecError("this service takes no reservations", field="name")


class Parts(NamedTuple):
    """What a service is put together from.

    `read` makes jobs of a submission under the given settings, or raises SpecError; `settle` makes rules of
    documents, or raises it too, and `reserve` a window of what somebody asks for. `exits` and `output` are
    the engine's for an attempt and for a member of one.
    `passing`: errors of the record that may pass. `eyes`: what can be seen of the cards, None for nothing;
    `end` ends an attempt for a reason; `unenforced`: what this host does not enforce of what a job was
    granted. `say`: tell whoever watches the service. `keep_kernels`: say where compiled kernels are kept,
    before any is loaded. `lack`: why the record can take no new work now, "" where it can.
    """

    machine: Machine
    clock: Clock
    record: Record
    rules: Rules
    nodes: tuple[Node, ...]
    read: Callable[[Submission, Caller, Settings], Wanted]
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
    is_user: Callable[[str], bool] = lambda name: True  # whether anybody here is called so
    settle: Callable[[Configuration], Rules] = settle_nothing
    reserve: Callable[[Reservation, Settings], Window] = reserve_nothing
    unenforced: Callable[[JobId, tuple[Placement, ...]], tuple[str, ...]] = lambda job, placements: ()
    say: Callable[[str], None] = lambda text: None
    keep_kernels: Callable[[], object] = lambda: None
    lack: Callable[[], str] = lambda: ""
