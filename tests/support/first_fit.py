"""The plainest planner there is: jobs in the queue's order, each member on the first node that has room.

It is a stand-in for tests of what lies below the planner; it knows no scores, links or moves.
"""

from __future__ import annotations

from aliquot.core.draft import Draft
from aliquot.core.grants import Placement, Seat, bits
from aliquot.core.inventory import accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.numa import split_host
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.slices import Vector, resolve_ask
from aliquot.core.steps import Gate, Place, Plan, Step, Wait


def first_fit(world: Frozen, now: int) -> Plan:
    """A Place for each waiting job that fits whole, a Wait for each other."""
    draft = Draft(world)
    steps: list[Step] = []
    for *_, job_id in world.pending:
        record = world.jobs[job_id]
        if record.not_before_ms > now:
            steps.append(Wait(job_id, Gate.BACKOFF))
            continue
        placements = _place(record.job, draft)
        steps.append(Place(job_id, record.attempt, placements) if placements else Wait(job_id, Gate.FIT))
    return Plan(world.version, tuple(steps))


def seats_for(request: Request, record: NodeRecord, draft: Draft) -> Seat | None:
    """The first seat for `request` on one node of the draft, or None."""
    node, kind = record.node, draft.world.kinds[record.kind]
    chunk, place = draft.ledger.readable(record.row)
    for vector in _vectors(request, record):
        mask = 0
        for at, card in enumerate(node.cards):
            if mask.bit_count() == request.cards:
                break
            if not accepts(request.profile, card.model):
                continue
            if resolve_ask(request.ask, card.model.usable_mib) != vector:
                continue
            if draft.fits(Seat(record.row, 1 << at, vector, request.whole)):
                mask |= 1 << at
        numa = split_host(chunk, place, kind, mask, request.cpu_milli, request.host_mib)
        edges = _edges(request, record, mask)
        seat = Seat(record.row, mask, vector, request.whole, request.cpu_milli, request.host_mib, numa, edges)
        if mask.bit_count() == request.cards and draft.fits(seat):
            return seat
    return None


def as_placement(seat: Seat, record: NodeRecord) -> Placement:
    """`seat` in identities."""
    cards = tuple(record.node.cards[at].uuid for at in bits(seat.mask))
    return Placement(
        record.node.id, cards, seat.vector, seat.whole, seat.cpu, seat.host, seat.numa, seat.edges
    )


def _place(job: Job, draft: Draft) -> tuple[Placement, ...] | None:
    mark = draft.mark()
    placements = []
    for request in job.members:
        for row in range(draft.world.rows):
            record = draft.world.nodes[draft.world.node_at[row]]
            seat = seats_for(request, record, draft) if record.up else None
            if seat is not None:
                draft.book(seat)
                placements.append(as_placement(seat, record))
                break
        else:
            draft.rollback(mark)
            return None
    return tuple(placements)


def _vectors(request: Request, record: NodeRecord) -> list[Vector]:
    """The vectors the request may book on this node's cards, first card first."""
    if request.cards == 0:
        return [Vector(0, 0, 0)]
    found = (resolve_ask(request.ask, card.model.usable_mib) for card in record.node.cards)
    return list(dict.fromkeys(vector for vector in found if vector is not None))


def _edges(request: Request, record: NodeRecord, mask: int) -> tuple[tuple[int, int], ...]:
    if record.node.wiring is None or not request.traffic_mbs:
        return ()
    shared = ((at, (edge.cards & mask).bit_count()) for at, edge in enumerate(record.node.wiring.edges))
    return tuple((at, count * request.traffic_mbs) for at, count in shared if count)
