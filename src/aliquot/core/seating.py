"""Seats for all members of one job at once, or none: the draft is then as before.

Members are seated largest first, so that parts of 3 and 5 cards find nodes with 3 and 5 whatever the order
they were written in. A gang with a minimum starts with as many as fit from there on. Gangs with groups or
wishes are the business of `gangs`.
"""

from __future__ import annotations

from aliquot.core.gangs import largest_first, seat_gang
from aliquot.core.jobs import Job, Request
from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk, Seated
from aliquot.core.spreading import Kin
from aliquot.core.steps import Place, Term

__all__ = ["largest_first", "place_of", "seat_all", "seat_scattered"]


def seat_all(desk: Desk, job: Job, *, explained: bool = False) -> list[Seated] | None:
    """Seats in the order of members: of all, or of the first so many where `job.minimum` allows that."""
    if job.is_sited:
        return seat_gang(desk, job)
    if job.spread and (len(job.members) > 1 or job.replica_of):
        return _seat_apart(desk, job, explained=explained and len(job.members) == 1)
    if len(job.members) == 1:
        seat = desk.seat(job.members[0], explained=explained)
        return None if seat is None else [seat]
    seats = _seat_first(desk, job.members)
    if seats is not None or job.least == len(job.members):
        return seats
    for count in range(len(job.members) - 1, job.least - 1, -1):
        seats = _seat_first(desk, job.members[:count])
        if seats is not None:
            return seats
    return None


def seat_scattered(desk: Desk, job: Job) -> list[Seated] | None:
    """Seats for the cards of a job of one member, split evenly over nodes, the widest parts that fit."""
    cards = job.members[0].cards
    for width in range(cards // 2, 0, -1):
        if cards % width == 0:
            parts = job.scattered(width)
            seats = seat_gang(desk, parts) if job.is_sited else _seat_first(desk, parts.members)
            if seats is not None:
                return seats
    return None


def place_of(desk: Desk, record: JobRecord, seated: list[Seated]) -> Place:
    """The step that grants `seated` to the job of `record`."""
    first = seated[0]
    return Place(
        record.job.id,
        record.attempt,
        tuple(desk.placement(seat.seat) for seat in seated),
        sum(seat.score for seat in seated),
        _summed(seated),
        first.runner_up,
    )


def _seat_first(desk: Desk, members: tuple[Request, ...]) -> list[Seated] | None:
    if len(members) == 1:
        seat = desk.seat(members[0])
        return None if seat is None else [seat]
    mark = desk.mark()
    seats: dict[int, Seated] = {}
    for member in largest_first(members):
        seat = desk.seat(members[member])
        if seat is None:
            desk.rollback(mark)
            return None
        seats[member] = seat
    return [seats[member] for member in range(len(members))]


def _summed(seated: list[Seated]) -> tuple[Term, ...]:
    """The terms of all members by name: they add up to the score of all."""
    if len(seated) == 1:
        return seated[0].terms
    found: dict[str, float] = {}
    for term in (term for seat in seated for term in seat.terms):
        found[term.name] = found.get(term.name, 0.0) + term.value
    return tuple(Term(name, value) for name, value in found.items())


def _seat_apart(desk: Desk, job: Job, *, explained: bool) -> list[Seated] | None:
    """Each member where fewest of the others are, and of the job's copies, whatever the policy prefers."""
    mark = desk.mark()
    copies = desk.copies_of(job.replica_of) if job.replica_of else ()
    seats: list[Seated] = []
    for request in job.members:
        kin = Kin(tuple(other.seat for other in seats), copies)
        seat = desk.seat_apart(request, kin, explained=explained)
        if seat is None:
            break
        seats.append(seat)
    if len(seats) < job.least:
        desk.rollback(mark)
        return None
    if job.replica_of:
        desk.note_copies(job.replica_of, (seat.seat for seat in seats))
    return seats
