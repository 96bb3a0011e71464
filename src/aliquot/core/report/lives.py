"""Every job's life as the meter follows it: when it was submitted, started and ended, how often it moved.

A job that is over leaves only three numbers behind, so millions may pass. Phases follow the one table of
`lifecycle`: late and repeated news changes nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from aliquot.core import lifecycle
from aliquot.core.ids import JobId
from aliquot.core.inventory import Profile
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import News, Phase
from aliquot.core.report.machines import Hold, Share

CPU_ONLY = "cpu"
SHARED = "shared"


class ClassKey(NamedTuple):
    """What a job is counted under: stage, queue, and width (`cpu`, `shared`, or whole cards in all)."""

    stage: str
    queue: str
    width: str


class Piece:
    """So many whole cards of one kind on one node; one object for all that are equal."""

    __slots__ = ("cards", "profile")

    def __init__(self, cards: int, profile: Profile) -> None:
        self.cards, self.profile = cards, profile


class Cell:
    """All jobs of one class: counts, what they hold, and the times of those that started and finished."""

    __slots__ = (
        "attempts", "cancelled", "failed", "finished", "key", "lost", "moved", "placed", "refused", "runs",
        "share", "started", "submitted", "turnarounds", "waits", "withdrawn",
    )  # fmt: skip  # one list, not one name a line

    def __init__(self, key: ClassKey, at: int) -> None:
        self.key = key
        self.share = Share(at)
        self.submitted = self.placed = self.started = self.finished = self.failed = 0
        self.cancelled = self.withdrawn = 0  # given up while holding; while waiting
        self.attempts = self.lost = self.refused = self.moved = 0
        self.waits = array("q")  # first start - submission, ms, of every job that started
        self.runs = array("q")  # of every job that succeeded: ms its last attempt ran
        self.turnarounds = array("q")  # and end - submission, in the same order


class Life:
    """One job that is not over."""

    __slots__ = (
        "attempt",
        "cancelled",
        "cell",
        "granted_ms",
        "holds",
        "job",
        "moves",
        "phase",
        "pieces",
        "placed",
        "since_ms",
        "started_ms",
        "worked_ms",
    )  # fmt: skip  # one list, not one name a line

    def __init__(self, job: Job, cell: Cell) -> None:
        self.job = job
        self.cell = cell
        self.phase = Phase.PENDING
        self.attempt = 1
        self.cancelled = False
        self.placed = False
        self.started_ms: int | None = None  # first start of all
        self.granted_ms: int | None = None  # this attempt
        self.since_ms: int | None = None  # this attempt's start
        self.worked_ms: int | None = None  # how long this attempt ran, once its work is over
        self.moves = 0
        self.holds: list[Hold] = []
        self.pieces: tuple[Piece, ...] = ()

    def request_of(self, member: int, members: int) -> Request:
        """What the member of an attempt in `members` parts asked for; a scattered job's parts ask alike."""
        asked = self.job.members
        return asked[member] if members == len(asked) else asked[0]


class Lives:
    """All jobs that are not over, by id, and all classes."""

    def __init__(self, at: int) -> None:
        self.cells: dict[ClassKey, Cell] = {}
        self.open: dict[JobId, Life] = {}
        self._over: set[JobId] = set()
        self._pieces: dict[tuple[int, Profile], Piece] = {}
        self._start = at

    def submit(self, job: Job) -> Life | None:
        """A new life, or None where the job is known already."""
        if job.id in self.open or job.id in self._over:
            return None
        key = class_of(job)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(key, self._start)
        cell.submitted += 1
        life = self.open[job.id] = Life(job, cell)
        life.pieces = self._pieces_of(job)
        return life

    def _pieces_of(self, job: Job) -> tuple[Piece, ...]:
        """The members that need whole cards, each kind once: what scattered free cards can block."""
        return tuple(dict.fromkeys(self._piece(request) for request in job.members if request.whole))

    def _piece(self, request: Request) -> Piece:
        key = (request.cards, request.profile)
        piece = self._pieces.get(key)
        if piece is None:
            piece = self._pieces[key] = Piece(*key)
        return piece

    def turn(self, job: JobId, attempt: int, news: News) -> tuple[Life, Phase, Phase] | None:
        """The life with its phase before and after, or None where the table has no such move."""
        life = self.open.get(job)
        if life is None or life.attempt != attempt:
            return None
        before = life.phase
        after = lifecycle.next_phase(before, news)
        if after is None:
            return None
        if after is Phase.PENDING and life.cancelled:
            after = Phase.CANCELLED
        life.phase = after
        return life, before, after

    def grant(self, life: Life, at: int) -> None:
        """An attempt was granted."""
        life.cell.attempts += 1
        life.granted_ms = at
        if not life.placed:
            life.placed = True
            life.cell.placed += 1

    def start(self, life: Life, at: int) -> None:
        """An attempt runs; the first one of a job ends its wait."""
        life.since_ms = at
        if life.started_ms is None:
            life.started_ms = at
            life.cell.started += 1
            life.cell.waits.append(at - life.job.submitted_ms)

    def stop(self, life: Life, at: int) -> None:
        """The work of an attempt is over; its processes may not be."""
        if life.worked_ms is None and life.since_ms is not None:
            life.worked_ms = at - life.since_ms

    def requeue(self, life: Life, news: News) -> None:
        """Back to waiting as a new attempt."""
        life.attempt += 1
        life.granted_ms = life.since_ms = life.worked_ms = None
        if news is News.REFUSED:
            life.cell.refused += 1
        else:
            life.cell.lost += 1

    def close(self, life: Life, after: Phase, at: int) -> None:
        """A job is over; what it leaves behind goes into its class."""
        cell = life.cell
        if after is Phase.SUCCEEDED:
            cell.finished += 1
            cell.runs.append(life.worked_ms or 0)
            cell.turnarounds.append(at - life.job.submitted_ms)
        elif after is Phase.FAILED and not life.cancelled:
            cell.failed += 1
        elif life.placed:
            cell.cancelled += 1
        else:
            cell.withdrawn += 1
        del self.open[life.job.id]
        self._over.add(life.job.id)

    def waiting(self) -> Iterator[Life]:
        """Jobs that wait now, in order of submission to the meter."""
        return (life for life in self.open.values() if life.phase is Phase.PENDING)


def class_of(job: Job) -> ClassKey:
    """The class of a job."""
    return ClassKey(job.stage.value, job.queue, width_of(job))


def width_of(job: Job) -> str:
    """`cpu`, `shared`, or the number of whole cards of all members."""
    cards = sum(request.cards for request in job.members)
    if not cards:
        return CPU_ONLY
    if any(request.cards and not request.whole for request in job.members):
        return SHARED
    return str(cards)
