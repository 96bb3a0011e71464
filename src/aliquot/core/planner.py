"""The planner: waiting jobs in, one plan out. Pure, and the same in every engine.

A pass in numbers:
    1. waiting jobs in the order of their queues, under quota (`turns`);
    2. whoever waits for others to end, for room in its array or for its next try has no turn;
    3. whose quota is used up may take back what others borrowed, or waits;
    4. the others are placed whole on a draft, or not at all: as asked, after one move, or split over nodes;
    5. room that is kept for one job is closed to others, unless they are over before it is needed;
    6. who does not fit may stop others for it; what they hold is then kept for it until it starts;
    7. who has waited long gets a reservation at the earliest moment it could start;
    8. else it waits, and in a strict queue so does everything behind it;
    9. what is left is shared out among elastic jobs, where a change pays;
    10. now and then running slices are tidied, under a budget.
`Memo` holds caches only: a plan with a warm memo equals a plan with an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from aliquot.core.budget import has_stops
from aliquot.core.charging import at_least
from aliquot.core.gating import as_borrower, find_releasing, look_closer, with_own_gate
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.memo import Memo
from aliquot.core.nearness import wait_for_nearness
from aliquot.core.never import find_never
from aliquot.core.passing import Pass
from aliquot.core.readiness import hold_back
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.restarting import with_restarts
from aliquot.core.seating import largest_first
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.steps import Gate, Lack, Plan, Reason, Wait, Withdraw
from aliquot.core.turning import line_up
from aliquot.core.turns import TreeTurns, Turns
from aliquot.core.windows import is_watched

__all__ = ["Memo", "explain_wait", "plan"]


def plan(world: Frozen, settings: Settings, now: int, memo: Memo, *, explained: JobId | None = None) -> Plan:
    """What to do now. Steps are in order and each assumes those before it.

    The placement of the job `explained` names its runner-up, which costs a second look at every node.
    """
    elastic, idle = world.elastic and settings.elastic, world.idle and settings.idling
    if not (world.pending or elastic or idle or is_watched(world.closures, now) or has_stops(settings)):
        return Plan(world.version)
    return with_restarts(Pass(world, settings, now, memo, explained).run(), settings)


def explain_wait(
    world: Frozen, settings: Settings, job_id: JobId, memo: Memo, now: int | None = None
) -> Wait:
    """Why `job_id` does not start on the world as it is, with reasons whose counts add up to the nodes.

    Without `now` only room is looked at; with it also what the queue, other jobs and time have to say.
    """
    record, said, turns = world.jobs[job_id], None, None
    if now is not None:
        held = hold_back(record, world, now)
        if held is not None:
            return _as_wait(held)
        made = plan(world, settings, now, memo, explained=job_id)
        said, turns = _said_of(job_id, made), memo.standing.turns(world, settings, now)
        if said is not None and said.gate is Gate.ORDER:
            return _behind(world, record, turns, now)
        if said is not None and said.gate is Gate.RELEASE and not said.others:
            return replace(said, others=_ending_for(world, job_id))
        if said is not None and said.gate is not Gate.FIT:
            return with_own_gate(said, record, turns)
        if said is None and (unasked := _without_turn(world, record, made, turns, now)) is not None:
            return unasked
    desk = Desk(world, settings, memo)
    job = at_least(record.job)
    mark = desk.mark()
    seated, missing, reasons = _seat_all_that_fit(desk, job)
    if missing is not None:
        gate, short = look_closer(desk, job, missing, seated, reasons)
        desk.rollback(mark)
        if (never := find_never(desk, record.job)) is not None:
            what = None if never.near is not None else never
            return Wait(job_id, Gate.NEVER, reasons, near=never.near, never=what)
        if releasing := find_releasing(desk, job, largest_first(job.members)):
            return Wait(job_id, Gate.RELEASE, reasons, others=releasing)
        full = said or Wait(job_id, Gate.FIT)
        loan = as_borrower(full, record, turns)
        return loan or replace(full, gate=gate, reasons=reasons, short=short)
    desk.rollback(mark)
    near = wait_for_nearness(desk, job, None if said is None else said.until_ms)
    if near is not None:
        return near
    if said is None or said.gate is not Gate.FIT:
        return Wait(job_id, Gate.ORDER)
    others = dict.fromkeys(kept.job for kept in world.kept if kept.job != job_id)
    return Wait(job_id, Gate.RESERVATION, others=tuple(others))


def _without_turn(world: Frozen, record: JobRecord, made: Plan, turns: Turns, now: int) -> Wait | None:
    """The wait of a job that was not looked at: behind the first of a strict queue, or one like it."""
    if turns.is_strict(record):
        return _behind(world, record, turns, now)
    lacks = _lack_of_its_like(world, record, made, turns)
    return None if lacks is None else with_own_gate(lacks, record, turns)


def _behind(world: Frozen, record: JobRecord, turns: Turns, now: int) -> Wait:
    """The wait of a job behind the first of its strict queue that nothing but room or quota holds."""
    before: Iterable[JobId] = line_up(turns) if not isinstance(turns, TreeTurns) else turns.queue_of(record)
    first = next((job for job in before if hold_back(world.jobs[job], world, now) is None), record.job.id)
    return Wait(record.job.id, Gate.ORDER, others=() if first == record.job.id else (first,))


def _ending_for(world: Frozen, job_id: JobId) -> tuple[JobId, ...]:
    """Who is being stopped for the job, or narrowed, and has not ended yet."""
    ending = ((job, record.evicting or record.resizing) for job, record in sorted(world.jobs.items()))
    return tuple(job for job, event in ending if event is not None and event.for_job == job_id)


def _seat_all_that_fit(desk: Desk, job: Job) -> tuple[int, Request | None, tuple[Reason, ...]]:
    """How many members find room, the largest first; the first that finds none, and why."""
    seated, missing, reasons = 0, None, tuple[Reason, ...]()
    for at in largest_first(job.members):
        if desk.seat(job.members[at]) is not None:
            seated += 1
        elif missing is None:
            missing = job.members[at]
            reasons = desk.reasons(missing)
    return seated, missing, reasons


def _said_of(job_id: JobId, made: Plan) -> Wait | None:
    """What a plan says of a waiting job; None where it was not looked at, or starts."""
    return next((step for step in made.steps if isinstance(step, Wait) and step.job == job_id), None)


def _lack_of_its_like(world: Frozen, record: JobRecord, made: Plan, turns: Turns) -> Wait | None:
    """The lack of quota that holds `record`: its own, or what one like it before it in its queue was told."""
    lack = turns.flavour(record)
    if isinstance(lack, Lack):
        return Wait(record.job.id, Gate.QUOTA, lack=lack)
    if not isinstance(turns, TreeTurns):
        return None
    queue, likeness = turns.queue_of(record), turns.likeness(record)
    before = set(queue[: queue.index(record.job.id)])
    lacks = (step for step in made.steps if isinstance(step, Wait) and step.lack and step.job in before)
    like = (step for step in lacks if turns.likeness(world.jobs[step.job]) == likeness)
    return next((replace(step, job=record.job.id) for step in like), None)


def _as_wait(held: Wait | Withdraw) -> Wait:
    if isinstance(held, Withdraw):
        return Wait(held.job, Gate.DEPENDENCY, others=held.others)
    return held
