"""The planner: waiting jobs in, one plan out. Pure, and the same in every engine.

A pass in numbers:
    1. waiting jobs in the queue's order;
    2. each is placed whole (all members) on a draft, or not at all;
    3. one that does not fit may be rescued by moving one movable slice, or split over nodes, if policy lets;
    4. else it waits, and under strict FIFO so does everything behind it;
    5. now and then running slices are tidied, under a budget.
`Memo` holds caches only: a plan with a warm memo equals a plan with an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator

from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.memo import Memo
from aliquot.core.moving import Mover
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Discipline, Settings
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Gate, Place, Plan, Step, Wait

__all__ = ["Memo", "explain_wait", "plan"]


def plan(world: Frozen, settings: Settings, now: int, memo: Memo, *, explained: JobId | None = None) -> Plan:
    """What to do now. Steps are in order and each assumes those before it.

    The placement of the job `explained` names its runner-up, which costs a second look at every node.
    """
    if not world.pending:
        return Plan(world.version)
    desk = Desk(world, settings, memo)
    mover = Mover(desk)
    steps: list[Step] = []
    blocked = False
    wake: int | None = None
    # 1. in the queue's order
    for job_id in _ordered(world, settings):
        record = world.jobs[job_id]
        if record.not_before_ms > now:
            steps.append(Wait(job_id, Gate.BACKOFF))
            wake = record.not_before_ms if wake is None else min(wake, record.not_before_ms)
        elif blocked:
            steps.append(Wait(job_id, Gate.ORDER))
        elif _site(desk, mover, record, steps, explained=job_id == explained):
            mover.count_placed()
        else:
            # 4. it waits
            steps.append(Wait(job_id, Gate.FIT))
            blocked = settings.discipline is Discipline.STRICT
    # 5. tidy
    steps.extend(mover.tidy())
    return Plan(world.version, tuple(steps), wake)


def explain_wait(
    world: Frozen, settings: Settings, job_id: JobId, memo: Memo, now: int | None = None
) -> Wait:
    """Why `job_id` does not start on the world as it is, with reasons whose counts add up to the nodes."""
    record = world.jobs[job_id]
    if now is not None and record.not_before_ms > now:
        return Wait(job_id, Gate.BACKOFF)
    desk = Desk(world, settings, memo)
    for request in _largest_first(record.job):
        if desk.seat(request) is None:
            reasons = desk.reasons(request)
            gate = Gate.NEVER if desk.never(request) or _outgrows(desk, record.job) else Gate.FIT
            return Wait(job_id, gate, reasons)
    return Wait(job_id, Gate.ORDER)


def _outgrows(desk: Desk, job: Job) -> bool:
    """Whether the members together ask for more whole cards than the site has for any of them."""
    whole = [request for request in job.members if request.whole]
    asked = sum(request.cards for request in whole)
    return asked > max((desk.cards_for(request) for request in whole), default=asked)


def _ordered(world: Frozen, settings: Settings) -> Iterator[JobId]:
    if settings.by_priority:
        return (key[3] for key in world.pending)
    return (key[3] for key in sorted(world.pending, key=lambda key: key[1:]))


def _site(desk: Desk, mover: Mover, record: JobRecord, steps: list[Step], *, explained: bool) -> bool:
    """Place the job of `record` on the draft, and the steps that does to `steps`; False where it can't be."""
    job = record.job
    # 2. whole, as asked
    seated = _seat_all(desk, job, explained=explained)
    if seated is not None:
        steps.append(_place(desk, record, seated))
        return True
    # 3. by one move, or split over nodes
    rescued = mover.rescue(record)
    if rescued is not None:
        move, seat = rescued
        steps.append(move)
        steps.append(_place(desk, record, [seat]))
        return True
    if desk.settings.scatter and job.scatter and len(job.members) == 1:
        for width in range(job.members[0].cards // 2, 0, -1):
            if job.members[0].cards % width == 0:
                seated = _seat_all(desk, job.scattered(width))
                if seated is not None:
                    steps.append(_place(desk, record, seated))
                    return True
    return False


def _seat_all(desk: Desk, job: Job, *, explained: bool = False) -> list[Seated] | None:
    """Seats for all members in the members' order, or None with the draft as before.

    Larger members are seated first, so that parts of 3 and 5 cards find nodes with 3 and 5 whatever
    the order they were written in.
    """
    if len(job.members) == 1:
        seat = desk.seat(job.members[0], explained=explained)
        return None if seat is None else [seat]
    mark = desk.mark()
    seats: dict[int, Seated] = {}
    for member in sorted(range(len(job.members)), key=lambda at: _size(job.members[at]), reverse=True):
        seat = desk.seat(job.members[member])
        if seat is None:
            desk.rollback(mark)
            return None
        seats[member] = seat
    return [seats[member] for member in range(len(job.members))]


def _largest_first(job: Job) -> list[Request]:
    return sorted(job.members, key=_size, reverse=True)


def _size(request: Request) -> tuple[int, int, int]:
    """Sorts stably: members of one size keep their order."""
    return (request.cards, request.cpu_milli, request.host_mib)


def _place(desk: Desk, record: JobRecord, seated: list[Seated]) -> Place:
    first = seated[0]
    return Place(
        record.job.id,
        record.attempt,
        tuple(desk.placement(seat.seat) for seat in seated),
        sum(seat.score for seat in seated),
        first.terms,
        first.runner_up,
    )
