"""Is the plan still true? Every step is checked again against the newest world.

A plan was made on a snapshot; meanwhile nodes may have gone and jobs ended. What still holds becomes events,
what does not is returned, and the rest of the plan stands: a Place is accepted whole or not at all.
"""

from __future__ import annotations

import msgspec

from aliquot.core.draft import Draft
from aliquot.core.events import Event, Granted, Moved, Tidied
from aliquot.core.grants import GrantState, Placement, Seat
from aliquot.core.ids import GrantId, JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.records import Frozen, seat_of
from aliquot.core.steps import Kill, Move, Place, Plan, Step, Tidy, Wait

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
    draft = Draft(world)
    events: list[Event] = []
    refused: list[Refusal] = []
    placed: set[JobId] = set()
    moved: dict[GrantId, Seat] = {}
    for step in plan.steps:
        match step:
            case Place():
                reason = _check_place(step, world, draft, placed)
                if reason is None:
                    placed.add(step.job)
                    events.append(Granted(at, step.job, step.attempt, step.placements))
            case Move():
                reason = _check_move(step, world, draft, moved)
                if reason is None:
                    events.append(Moved(at, step.job, step.attempt, step.member, step.placement))
            case Tidy():
                reason = None
                events.append(Tidied(at, step.asked_milli))
            case Wait() | Kill():
                reason = None
        if reason is not None:
            refused.append(Refusal(step, reason))
    return Verdict(tuple(events), tuple(refused))


def _check_place(step: Place, world: Frozen, draft: Draft, placed: set[JobId]) -> str | None:
    """None where the whole Place is booked in `draft`; else why not, with `draft` as before."""
    record = world.jobs.get(step.job)
    if record is None or record.phase is not Phase.PENDING or step.job in placed:
        return f"job {step.job} is not waiting any more"
    if record.attempt != step.attempt:
        return f"attempt {step.attempt} is over, {record.attempt} is due"
    if not _covers(step.placements, record.job):
        return f"{len(step.placements)} placements for {len(record.job.members)} members"
    if len(step.placements) == 1:
        return _book(step.placements[0], world, draft)
    mark = draft.mark()
    for placement in step.placements:
        reason = _book(placement, world, draft)
        if reason is not None:
            draft.rollback(mark)
            return reason
    return None


def _covers(placements: tuple[Placement, ...], job: Job) -> bool:
    """One placement per member (I5); a job of one that may scatter can come in several pieces."""
    return len(placements) == len(job.members) or (job.scatter and len(job.members) == 1 < len(placements))


def _check_move(step: Move, world: Frozen, draft: Draft, moved: dict[GrantId, Seat]) -> str | None:
    """As `_check_place`. `moved`: where earlier moves of this plan have put things.

    What is stopping stays: its processes are still where they were.
    """
    record, grants = world.jobs.get(step.job), world.grants.get(step.job, ())
    held = GrantId(step.job, step.attempt, step.member)
    grant = next((grant for grant in grants if grant.id == held), None)
    if record is None or grant is None or record.phase not in _MOVABLE:
        return f"job {step.job} does not hold what was to be moved"
    seat = moved.get(held, grant.seat)
    if seat is None or grant.state is GrantState.ORPHANED or not draft.can_release(seat):
        return f"what {step.job} holds can't be moved now"
    mark = draft.mark()
    draft.release(seat)
    reason = _book(step.placement, world, draft)
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
