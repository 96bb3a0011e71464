"""Is the plan still true? Every step is checked again against the newest world.

A plan was made on a snapshot; meanwhile nodes may have gone and jobs ended. What still holds becomes events,
what does not is returned, and the rest of the plan stands: a Place is accepted whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aliquot.core.closing import is_closed
from aliquot.core.draft import Draft
from aliquot.core.events import Event
from aliquot.core.grants import Grant, GrantState, Placement, Seat, beyond
from aliquot.core.hosting import invite, without_cards
from aliquot.core.ids import CardId, GrantId, JobId, NodeId
from aliquot.core.intents import intent_of
from aliquot.core.jobs import Job
from aliquot.core.lengths import must_end
from aliquot.core.lifecycle import Phase
from aliquot.core.pace import width_of, widths_of
from aliquot.core.records import Frozen, JobRecord, Kept, seat_of
from aliquot.core.steps import (
    Evict,
    Kill,
    Move,
    Place,
    Plan,
    Reserve,
    Resize,
    Search,
    Step,
    Tidy,
    Unreserve,
    Wait,
    Warn,
    Withdraw,
)
from aliquot.core.wishes import find_breach

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
    bench = _Bench(world, Draft(world), plan.version, at)
    events: list[Event] = []
    refused: list[Refusal] = []
    for step in plan.steps:
        if type(step) is Wait:  # most of them are, and there is nothing to check
            continue
        reason = _check(step, bench)
        if reason is not None:
            refused.append(Refusal(step, reason))
            continue
        event = intent_of(step, at)
        if event is not None:
            events.append(event)
    return Verdict(tuple(events), tuple(refused))


class _Bench:
    """What a check works on: the newest world, a draft of it, and what earlier steps of the plan did."""

    def __init__(self, world: Frozen, draft: Draft, version: int, at: int) -> None:
        self.world, self.draft, self.at = world, draft, at
        self.closures = [
            one
            for one in world.closures
            if one.window.end_ms > at and (one.window.start_ms <= at or one.made > version)
        ]
        self.placed: set[JobId] = set()  # granted or withdrawn
        self.moved: dict[GrantId, Seat] = {}
        self.stopped: set[JobId] = set()
        self._knew = version == world.version  # then room beside a slice that is kept was seen by the plan
        self.firm: dict[tuple[NodeId, CardId], JobId] = {}
        self._holders: set[JobId] = set()
        for kept in world.kept:
            self.keep(kept)

    def closed_by(self, placement: Placement, job: JobId, *, afresh: bool) -> str | None:
        """The window that keeps `job` from there, of those that last now or that the plan could not know.

        `afresh`: it is started there anew, wherever it is now.
        """
        record = self.world.jobs[job]
        length = must_end(record, lambda record: record.job.estimate_ms)
        over = None if length is None else self.at + max(1, length)
        mine = [] if afresh else [grant.placement for grant in self.world.grants.get(job, ())]
        mine = [held for held in mine if held.node == placement.node]
        fresh = set(placement.cards).difference(*(held.cards for held in mine))  # who is there may stay
        for closure in self.closures:
            taken = any(
                part.node == placement.node and (not mine if part.whole else not fresh.isdisjoint(part.cards))
                for part in closure.parts
            )
            if taken and is_closed(closure.window, record, self.at, over):
                return closure.window.name
        return None

    def keep(self, kept: Reserve | Kept) -> None:
        """What is reserved firmly is closed to others, and what the plan reserves to its later steps too."""
        for placement in kept.placements if kept.firm else ():
            if placement.whole or not self._knew:
                self._holders.add(kept.job)
                self.firm.update({(placement.node, card): kept.job for card in placement.cards})

    def open(self, job: JobId) -> None:
        """Nothing is kept for `job` any more."""
        if job in self._holders:
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
        case Wait() | Kill() | Tidy() | Search():
            pass
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
    """What an elastic job holds is exchanged as a whole, or not at all; moves of this plan come before.

    By restart it holds what it has until it has ended, and what it goes on with is closed to others.
    """
    world, draft = bench.world, bench.draft
    record, grants = world.jobs.get(step.job), world.grants.get(step.job, ())
    if record is None or record.attempt != step.attempt or record.phase is not Phase.RUNNING:
        return f"job {step.job} does not run any more"
    widths = widths_of(record.job, len(grants))
    if step.job in bench.stopped or width_of(record.job, step.placements) not in widths:
        return f"the width of job {step.job} can't be changed"
    seats = [bench.moved.get(grant.id, grant.seat) for grant in grants]
    held = [seat for seat in seats if seat is not None and draft.can_release(seat)]
    if len(held) < len(seats):
        return f"what {step.job} holds can't be moved now"
    breach = _breach(record.job, step.placements, world)
    if breach is not None:
        return breach
    mark = draft.mark()
    for seat in held:
        draft.release(seat)
    for placement in step.placements:
        reason = _kept_for_others(placement, step.job, bench, afresh=step.restart)
        reason = reason or _book(placement, world, draft)
        if reason is not None:
            draft.rollback(mark)
            return reason
    if step.restart:
        draft.rollback(mark)
        there = [_seat(placement, world) for placement in step.placements]
        for more in beyond([seat for seat in there if seat is not None], held):
            draft.book(more)
        bench.keep(Kept(step.job, step.placements, bench.at, bench.at, firm=True))
    bench.stopped.add(step.job)  # and nothing else happens to it in this plan
    return None


def _check_reserve(step: Reserve, bench: _Bench) -> str | None:
    """For a job that waits, on cards that are there."""
    if _waiting(step.job, bench) is None:
        return f"job {step.job} is not waiting any more"
    for placement in step.placements:
        if _seat(placement, bench.world) is None:
            return f"node {placement.node} or one of its cards is gone"
    bench.open(step.job)
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
    book = _book_all if step.company is None else _book_beside
    reason = _breach(record.job, step.placements, bench.world) or book(step, bench)
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


def _book_beside(step: Place, bench: _Bench) -> str | None:
    """Onto the cards of others, who are still there, all of them, and in no other way changed by this plan.

    Each gets the part that is its own now; the cards stay booked as they are, only the machines give more.
    """
    world, draft = bench.world, bench.draft
    assert step.company is not None
    hosts = step.company.jobs[:-1]
    moved = {held.job for held in bench.moved}
    if not hosts or any(host not in world.jobs or host in bench.stopped or host in moved for host in hosts):
        return f"who was to share with {step.job} is not there any more"
    parts = invite(world, hosts, world.jobs[step.job].job)
    asked = tuple((place.node, frozenset(place.cards), place.vector) for place in step.placements)
    if parts is None or asked != tuple((part.node, frozenset(part.cards), part.vector) for part in parts):
        return f"{step.job} can't have a part of these cards any more"
    mark = draft.mark()
    for placement in step.placements:
        seat = _seat(placement, world)
        kept = _kept_for_others(placement, step.job, bench)
        if kept is not None or seat is None or placement.whole or not draft.fits(without_cards(seat)):
            draft.rollback(mark)
            return kept or f"node {placement.node} has no room for it any more"
        draft.book(without_cards(seat))
    bench.stopped.update(hosts)  # and nothing else happens to them in this plan
    return None


def _kept_for_others(placement: Placement, job: JobId, bench: _Bench, *, afresh: bool = False) -> str | None:
    closed = bench.closed_by(placement, job, afresh=afresh) if bench.closures else None
    if closed is not None:
        return f"node {placement.node} is closed to it by reservation {closed}"
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


def _breach(job: Job, placements: Sequence[Placement], world: Frozen) -> str | None:
    """What of the job's groups and wishes would be broken by `placements`; None: nothing, or it has none."""
    if not job.is_sited:
        return None
    records = [world.nodes.get(placement.node) for placement in placements]
    homes = [record.node for record in records if record is not None]
    if len(homes) < len(records):
        return "a node of it is gone"
    return find_breach(job.wish, job.groups, homes)


def _breach_of_move(step: Move, job: Job, grants: Sequence[Grant], bench: _Bench) -> str | None:
    """As `_breach`, where one member goes and the others are where moves of this plan have put them."""
    if not job.is_sited:
        return None
    placements = []
    for grant in grants:
        seat = bench.moved.get(grant.id)
        node = grant.placement.node if seat is None else bench.world.node_at[seat.row]
        placements.append(step.placement if grant.id.member == step.member else Placement(node))
    return _breach(job, placements, bench.world)


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
    breach = _breach_of_move(step, record.job, grants, bench)
    if breach is not None:
        return breach
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
