"""Is the plan still true? Every step is checked again against the newest world.

A plan was made on a snapshot; meanwhile nodes may have gone and jobs ended. What still holds becomes events,
what does not is returned, and the rest of the plan stands: a Place is accepted whole or not at all.
"""

from __future__ import annotations

import msgspec

from aliquot.core.draft import Draft
from aliquot.core.events import (
    Event,
    Evicting,
    Granted,
    JobCancelled,
    Moved,
    Reserved,
    Resized,
    Tidied,
    Unreserved,
    Warned,
)
from aliquot.core.grants import GrantState, Placement, Seat
from aliquot.core.ids import CardId, GrantId, JobId, NodeId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import width_of
from aliquot.core.records import Frozen, JobRecord, seat_of
from aliquot.core.steps import (
    Evict,
    Kill,
    Move,
    Place,
    Plan,
    Reserve,
    Resize,
    Step,
    Tidy,
    Unreserve,
    Wait,
    Warn,
    Withdraw,
)

_MOVABLE = frozenset({Phase.STARTING, Phase.RUNNING})


class Refusal(msgspec.Struct, frozen=True):
    """A step that no longer holds, and why."""

    step: Step
    reason: str


class Verdict(msgspec.Struct, frozen=True):
    """What became of a plan."""

    events: tuple[Event, ...]
    refused: tuple[Refusal, ...] = ()


def check(plan: Plan, world: Frozen, at: int) -> Verdict:
    """Accept the steps of `plan` that are still true of `world`, in order; each sees those before it.

    Every accepted set keeps all sums within capacity (I1). A Move made for a job that is then refused
    still stands: it harms nobody.
    """
    bench = _Bench(world, Draft(world))
    events: list[Event] = []
    refused: list[Refusal] = []
    for step in plan.steps:
        reason = _check(step, bench)
        if reason is not None:
            refused.append(Refusal(step, reason))
            continue
        event = _event_of(step, at)
        if event is not None:
            events.append(event)
    return Verdict(tuple(events), tuple(refused))


class _Bench:
    """What a check works on: the newest world, a draft of it, and what earlier steps of the plan did."""

    def __init__(self, world: Frozen, draft: Draft) -> None:
        self.world, self.draft = world, draft
        self.placed: set[JobId] = set()  # granted or withdrawn
        self.moved: dict[GrantId, Seat] = {}
        self.stopped: set[JobId] = set()
        self.firm: dict[tuple[NodeId, CardId], JobId] = {
            (placement.node, card): kept.job
            for kept in world.kept
            if kept.firm
            for placement in kept.placements
            for card in placement.cards
        }

    def keep(self, step: Reserve) -> None:
        """What the plan reserves firmly is closed to its later steps too."""
        self.open(step.job)
        if step.firm:
            for placement in step.placements:
                self.firm.update({(placement.node, card): step.job for card in placement.cards})

    def open(self, job: JobId) -> None:
        """Nothing is kept for `job` any more."""
        self.firm = {place: holder for place, holder in self.firm.items() if holder != job}


def _check(step: Step, bench: _Bench) -> str | None:
    """None where `step` is still true, and noted in `bench`; else why not."""
    match step:
        case Place():
            return _check_place(step, bench)
        case Move():
            return _check_move(step, bench)
        case Evict():
            return _check_evict(step, bench)
        case Resize():
            return _check_resize(step, bench)
        case Reserve():
            return _check_reserve(step, bench)
        case Unreserve():
            bench.open(step.job)
        case Withdraw():
            return _check_withdraw(step, bench)
        case Warn():
            return _check_running(step.job, step.attempt, bench)
        case Wait() | Kill() | Tidy():
            pass
    return None


def _event_of(step: Step, at: int) -> Event | None:
    """What is recorded of an accepted step."""
    match step:
        case Place():
            return Granted(at, step.job, step.attempt, step.placements)
        case Move():
            return Moved(at, step.job, step.attempt, step.member, step.placement)
        case Evict():
            return Evicting(at, step.job, step.attempt, step.cause, step.for_job, step.grace_ms)
        case Reserve():
            return Reserved(at, step.job, step.placements, step.from_ms, step.until_ms, step.firm)
        case Unreserve():
            return Unreserved(at, step.job)
        case Withdraw():
            return JobCancelled(at, step.job, step.reason)
        case Resize():
            return Resized(at, step.job, step.attempt, step.placements)
        case Warn():
            return Warned(at, step.job, step.attempt)
        case Tidy():
            return Tidied(at, step.asked_milli)
        case Wait() | Kill():
            return None


def _check_evict(step: Evict, bench: _Bench) -> str | None:
    """Only what runs, in the attempt that was weighed, is stopped; and once."""
    reason = _check_running(step.job, step.attempt, bench)
    if reason is None:
        bench.stopped.add(step.job)
    return reason


def _check_running(job: JobId, attempt: int, bench: _Bench) -> str | None:
    record = bench.world.jobs.get(job)
    if record is None or record.attempt != attempt or record.phase not in _MOVABLE:
        return f"job {job} does not run any more"
    return f"job {job} is being stopped already" if job in bench.stopped else None


def _check_resize(step: Resize, bench: _Bench) -> str | None:
    """What an elastic job holds is exchanged as a whole, or not at all; moves of this plan come before."""
    world, draft = bench.world, bench.draft
    record, grants = world.jobs.get(step.job), world.grants.get(step.job, ())
    if record is None or record.attempt != step.attempt or record.phase is not Phase.RUNNING:
        return f"job {step.job} does not run any more"
    widths = () if record.job.elastic is None else record.job.elastic.widths
    if step.job in bench.stopped or width_of(record.job, step.placements) not in widths:
        return f"the width of job {step.job} can't be changed"
    seats = [bench.moved.get(grant.id, grant.seat) for grant in grants]
    held = [seat for seat in seats if seat is not None and draft.can_release(seat)]
    if len(held) < len(seats):
        return f"what {step.job} holds can't be moved now"
    mark = draft.mark()
    for seat in held:
        draft.release(seat)
    for placement in step.placements:
        reason = _kept_for_others(placement, step.job, bench) or _book(placement, world, draft)
        if reason is not None:
            draft.rollback(mark)
            return reason
    bench.stopped.add(step.job)  # and nothing else happens to it in this plan
    return None


def _check_reserve(step: Reserve, bench: _Bench) -> str | None:
    """For a job that waits, on cards that are there."""
    if _waiting(step.job, bench) is None:
        return f"job {step.job} is not waiting any more"
    for placement in step.placements:
        if _seat(placement, bench.world) is None:
            return f"node {placement.node} or one of its cards is gone"
    bench.keep(step)
    return None


def _check_withdraw(step: Withdraw, bench: _Bench) -> str | None:
    """A job that waits, or one that runs, in no other way changed by this plan."""
    record = bench.world.jobs.get(step.job)
    running = record is not None and record.phase in _MOVABLE and step.job not in bench.stopped
    if _waiting(step.job, bench) is None and not running:
        return f"job {step.job} neither waits nor runs any more"
    bench.placed.add(step.job)
    bench.stopped.add(step.job)
    return None


def _waiting(job: JobId, bench: _Bench) -> JobRecord | None:
    record = bench.world.jobs.get(job)
    waits = record is not None and record.phase is Phase.PENDING and job not in bench.placed
    return record if waits else None


def _check_place(step: Place, bench: _Bench) -> str | None:
    """None where the whole Place is booked in the draft; else why not, with the draft as before."""
    record = _waiting(step.job, bench)
    if record is None:
        return f"job {step.job} is not waiting any more"
    if record.attempt != step.attempt:
        return f"attempt {step.attempt} is over, {record.attempt} is due"
    if not _covers(step.placements, record.job):
        return f"{len(step.placements)} placements for {len(record.job.members)} members"
    reason = _book_all(step, bench)
    if reason is None:
        bench.placed.add(step.job)
        if bench.firm:
            bench.open(step.job)
    return reason


def _book_all(step: Place, bench: _Bench) -> str | None:
    mark = bench.draft.mark() if len(step.placements) > 1 else None
    for placement in step.placements:
        reason = _kept_for_others(placement, step.job, bench) or _book(placement, bench.world, bench.draft)
        if reason is not None:
            if mark is not None:
                bench.draft.rollback(mark)
            return reason
    return None


def _kept_for_others(placement: Placement, job: JobId, bench: _Bench) -> str | None:
    if bench.firm:
        for card in placement.cards:
            holder = bench.firm.get((placement.node, card), job)
            if holder != job:
                return f"a card of {placement.node} is kept for job {holder}"
    return None


def _covers(placements: tuple[Placement, ...], job: Job) -> bool:
    """One placement per member, from the minimum on (I5); a job of one that may scatter comes in pieces."""
    if len(job.members) == 1 < len(placements):
        return job.scatter
    return job.least <= len(placements) <= len(job.members)


def _check_move(step: Move, bench: _Bench) -> str | None:
    """As `_check_place`. What is stopping stays: its processes are still where they were."""
    world, draft, moved = bench.world, bench.draft, bench.moved
    record, grants = world.jobs.get(step.job), world.grants.get(step.job, ())
    held = GrantId(step.job, step.attempt, step.member)
    grant = next((grant for grant in grants if grant.id == held), None)
    stopping = step.job in bench.stopped
    if record is None or grant is None or record.phase not in _MOVABLE or stopping:
        return f"job {step.job} does not hold what was to be moved"
    seat = moved.get(held, grant.seat)
    if seat is None or grant.state is GrantState.ORPHANED or not draft.can_release(seat):
        return f"what {step.job} holds can't be moved now"
    mark = draft.mark()
    draft.release(seat)
    reason = _kept_for_others(step.placement, step.job, bench) or _book(step.placement, world, draft)
    if reason is not None:
        draft.rollback(mark)
        return reason
    there = _seat(step.placement, world)
    assert there is not None  # it has just been booked
    moved[held] = there
    return None


def _book(placement: Placement, world: Frozen, draft: Draft) -> str | None:
    seat = _seat(placement, world)
    if seat is None:
        return f"node {placement.node} or one of its cards is gone"
    if not draft.fits(seat):
        return f"node {placement.node} has no room for it any more"
    draft.book(seat)
    return None


def _seat(placement: Placement, world: Frozen) -> Seat | None:
    record = world.nodes.get(placement.node)
    return None if record is None or not record.up or record.drained else seat_of(placement, record)
