"""Every job's life as the meter follows it: when it was submitted, started and ended, how often it moved.

A job that is over leaves only a few numbers behind, so millions may pass. Phases follow the one table of
`lifecycle`: late and repeated news changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aliquot.core import lifecycle
from aliquot.core.edges import Edges
from aliquot.core.events import Evicting, Resizing
from aliquot.core.grants import Placement
from aliquot.core.ids import JobId
from aliquot.core.inventory import Profile
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import News, Phase
from aliquot.core.report.cells import Cell, ClassKey, asked_milli, class_of
from aliquot.core.report.claims import Ticket
from aliquot.core.report.machines import Hold
from aliquot.core.report.scatter import Piece
from aliquot.core.report.stats import rho_milli
from aliquot.core.report.toll import Attempt, Toll, toll_of


class Life:
    """One job that is not over."""

    __slots__ = (
        "asked", "attempt", "cancelled", "cell", "contention", "edges", "evicted_for_others", "evicting",
        "evictions", "gflops", "granted_ms", "hindered", "holds", "job", "lag", "lost", "milli", "moves",
        "over_held", "peak", "phase", "pieces", "placed", "ready_ms", "resumed", "saved_ms", "scattered",
        "since_ms", "since_ready_ms", "slowed", "started_ms", "ticket", "together", "waits_ms", "worked_ms",
    )  # fmt: skip  # one list, not one name a line

    def __init__(self, job: Job, cell: Cell) -> None:
        self.job = job
        self.cell = cell
        self.phase = Phase.PENDING
        self.attempt = 1
        self.cancelled = False
        self.placed = False
        self.asked = asked_milli(job)
        self.edges = 0  # jobs it still waits for
        self.ready_ms = job.submitted_ms  # nothing but its turn and room held it from then on
        self.contention: int | None = None  # the integral of contention when it was ready
        self.started_ms: int | None = None  # first start of all
        self.granted_ms: int | None = None  # this attempt
        self.since_ms: int | None = None  # this attempt's start
        self.worked_ms: int | None = None  # how long this attempt ran, once its work is over
        self.waits_ms = 0  # waits since
        self.since_ready_ms = 0  # and for nothing but its turn and room, inside the window, since
        self.milli = 0  # this attempt holds
        self.saved_ms = 0  # progress of earlier attempts that stays
        self.resumed = False  # an attempt before this one ran
        self.lost = False  # its last attempt was lost with its node
        self.evicting: Evicting | Resizing | None = None  # this attempt is being stopped, not for good
        self.evicted_for_others = False  # ... for a job of another queue
        self.evictions = 0
        self.moves = 0
        self.slowed = self.hindered = self.over_held = self.scattered = self.together = False  # counted
        self.gflops = self.peak = 0  # what it does and what its cards can do, where both are known
        self.lag = 0  # milli-cards' worth of speed that its neighbours cost it now
        self.ticket: Ticket | None = None  # what its queue is charged for now, or waits for
        self.holds: list[Hold] = []
        self.pieces: tuple[Piece, ...] = ()

    def request_of(self, member: int, members: int) -> Request:
        """What the member of an attempt in `members` parts asked for; a scattered job's parts ask alike."""
        asked = self.job.members
        return asked[0] if len(asked) == 1 or members > len(asked) else asked[member]

    def is_scattered(self, at: int) -> bool:
        """Whether this wait met scattered cards, and no earlier one was counted for it."""
        return not self.scattered and any(piece.blocks(self.since_ready_ms, at) for piece in self.pieces)

    def toll(self, at: int, start: int, *, stopped: bool = False) -> Toll:
        """What this attempt cost up to `at`; nothing where nothing was granted."""
        if self.granted_ms is None:
            return Toll(0, 0, 0, 0, 0)
        stop = self.job.stop
        restart = stop.restart_ms if self.resumed else 0
        attempt = Attempt(
            self.milli, self.granted_ms, self.since_ms, self.worked_ms, restart, stop.checkpoint_ms
        )
        return toll_of(attempt, at, start, stopped=stopped)


class Lives:
    """All jobs that are not over, by id, and all classes. `start` is that of the window."""

    def __init__(self, start: int) -> None:
        self.cells: dict[ClassKey, Cell] = {}
        self.open: dict[JobId, Life] = {}
        self.start = start
        self._edges = Edges()
        self._pieces: dict[tuple[int, Profile], Piece] = {}

    def submit(self, job: Job) -> Life | None:
        """A new life, or None where the job is known already."""
        if job.id in self.open or job.id in self._edges.over:
            return None
        key = class_of(job)
        cell = self.cells.get(key)
        if cell is None:
            cell = self.cells[key] = Cell(key, self.start)
        cell.submitted += 1
        life = self.open[job.id] = Life(job, cell)
        life.pieces = self._pieces_of(job)
        if job.after:
            life.edges = len(self._edges.add(job)[0])
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
        if life.evicting is not None and after is Phase.FAILED:
            after = Phase.PENDING  # it was stopped for others, it did not fail
        if after is Phase.PENDING and life.cancelled:
            after = Phase.CANCELLED
        life.phase = after
        return life, before, after

    def grant(self, life: Life, at: int, placements: Iterable[Placement]) -> None:
        """An attempt was granted `placements`."""
        life.cell.attempts += 1
        life.granted_ms = at
        life.milli = _milli(placements)
        life.edges = 0  # whatever it waited for
        if not life.placed:
            life.placed = True
            life.cell.placed += 1

    def resize(self, life: Life, at: int, placements: Iterable[Placement]) -> None:
        """A running attempt goes on with `placements` after a restart; nothing of its work is lost."""
        self._add_toll(life, life.toll(at, self.start))
        life.granted_ms = life.since_ms = at
        life.resumed, life.milli = True, _milli(placements)
        life.cell.resized += 1

    def share(self, life: Life, at: int, placements: Iterable[Placement]) -> None:
        """A job goes on with another part of the same cards, since others came or went; it is not stopped."""
        self._add_toll(life, life.toll(at, self.start))
        life.granted_ms, life.milli, life.resumed = at, _milli(placements), False
        life.since_ms = None if life.since_ms is None else at

    def start_attempt(self, life: Life, at: int) -> None:
        """An attempt runs; the first one of a job ends its wait, a later one that since it was stopped."""
        life.since_ms = at
        cell = life.cell
        life.resumed = life.started_ms is not None
        if life.resumed:
            waited = at - life.waits_ms
            cell.waits_again.append(waited)
            if life.lost:
                cell.recoveries.append(waited)
            return
        life.started_ms = at
        cell.started += 1
        cell.waits.append(at - life.job.submitted_ms)
        due = life.job.bound.start_by_ms
        if due is not None:
            cell.start_met += at <= due
            cell.start_missed += at > due

    def stop(self, life: Life, at: int) -> None:
        """The work of an attempt is over; its processes may not be."""
        if life.worked_ms is None and life.since_ms is not None:
            life.worked_ms = at - life.since_ms

    def end(self, life: Life, after: Phase, at: int) -> None:
        """An attempt is over, or a job without one: add up what it held. `stop` comes first."""
        if life.granted_ms is None:
            return
        if life.evicting is not None and after is Phase.SUCCEEDED and life.since_ms is not None:
            life.worked_ms = at - life.since_ms  # it was done before its grace was over
        resized = isinstance(life.evicting, Resizing) and life.job.elastic is not None
        stopped = after is Phase.PENDING and not resized  # an elastic job saves its work when it is warned
        self._add_toll(life, life.toll(at, self.start, stopped=stopped))

    def _add_toll(self, life: Life, toll: Toll) -> None:
        cell = life.cell
        cell.held += toll.held
        cell.unready += toll.unready
        cell.restart += toll.restart
        cell.lost_work += toll.lost_work
        life.saved_ms += toll.saved_ms

    def requeue(self, life: Life, news: News, at: int) -> None:
        """Back to waiting as a new attempt."""
        cell = life.cell
        life.lost = life.evicting is None and news is News.LOST
        if life.evicting is not None:
            self._evicted(life, life.evicting)
        elif news is News.REFUSED:
            cell.refused += 1
        else:
            cell.lost += 1
        life.attempt += 1
        life.granted_ms = life.since_ms = life.worked_ms = life.evicting = None
        life.waits_ms = at

    def _evicted(self, life: Life, event: Evicting | Resizing) -> None:
        cell = life.cell
        if isinstance(event, Resizing):
            cell.resized += 1
            return
        cell.evicted[event.cause] = cell.evicted.get(event.cause, 0) + 1
        cell.evicted_for_others += life.evicted_for_others
        life.evictions += 1
        if life.evictions == 2:
            cell.evicted_again += 1

    def close(self, life: Life, after: Phase, at: int, contention: int, exclusive: int | None) -> list[Life]:
        """A job is over; what it leaves behind goes into its class. Who waited only for it is given back.

        `contention`: in thousandths, over its life. `exclusive`: its run time at full speed, where known.
        """
        cell, job = life.cell, life.job
        due = job.bound.finish_by_ms
        if after is Phase.SUCCEEDED:
            cell.finished += 1
            cell.runs.append(life.saved_ms)
            cell.turnarounds.append(at - job.submitted_ms)
            alone = life.saved_ms if exclusive is None else exclusive
            cell.rhos.append(rho_milli(at - life.ready_ms, alone, contention))
        elif after is Phase.FAILED and not life.cancelled:
            cell.failed += 1
        elif life.placed:
            cell.cancelled += 1
            due = None
        else:
            cell.withdrawn += 1
            due = None
        if due is not None:
            met = after is Phase.SUCCEEDED and at <= due
            cell.finish_met += met
            cell.finish_missed += not met
        del self.open[job.id]
        return self._let_go(job.id, after)

    def _let_go(self, over: JobId, after: Phase) -> list[Life]:
        """One thing less to wait for; who has nothing left to wait for is given back."""
        freed = []
        for edge in self._edges.end(over, succeeded=after is Phase.SUCCEEDED):
            life = self.open.get(edge.job)
            if life is not None and life.edges and not edge.doomed:
                life.edges -= 1
                if not life.edges and life.phase is Phase.PENDING:
                    freed.append(life)
        return freed

    def waiting(self) -> Iterator[Life]:
        """Jobs that wait now, in order of submission to the meter."""
        return (life for life in self.open.values() if life.phase is Phase.PENDING)


def _milli(placements: Iterable[Placement]) -> int:
    return sum(place.vector.compute * len(place.cards) for place in placements)
