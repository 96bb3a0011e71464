"""Defragmentation: running jobs moved together so that a wide job starts, and for no other end.

A job is blocked by fragmentation when the site has as many free cards as it asks for, but no node has. Then
the node is looked for that costs least to clear: every movable job on it that is in the way must find room on
other nodes that are in use already, one after the other, each into space that is free at that moment. The
moves are made only where they let the named job start in the same plan, stay within a budget per hour, and
cost less card-time than the job has already lost by waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aliquot.core.grants import Grant
from aliquot.core.ids import GrantId, JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import JobRecord
from aliquot.core.settings import HOUR_MS, Defrag
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Move

ROWS_TRIED = 16
Fixed = Callable[[JobId], bool]


class Gathered(NamedTuple):
    """The moves, in the order they must be made, and the seat they make room for."""

    moves: tuple[Move, ...]
    seat: Seated


class _Row(NamedTuple):
    """A node that could be cleared: what it costs at least, in card-ms, and who is in the way."""

    cost: int
    row: int
    movers: tuple[Grant, ...]


def gather(desk: Desk, record: JobRecord, now: int, planned: int, is_fixed: Fixed) -> Gathered | None:
    """Moves that let the job of `record` start, booked on the draft; None if none do, the draft as before.

    `planned` moves are in this plan already; `is_fixed` jobs stay where they are.
    """
    rules, job = desk.settings.defrag, record.job
    if rules is None or len(job.members) != 1 or job.members[0].cards < 2 or not job.members[0].whole:
        return None
    since = max(job.submitted_ms, record.since_ms)
    budget = rules.moves_an_hour - planned - moved_lately(desk, now)
    if budget < 1 or now - since < rules.after_ms:
        return None
    _, shape = desk.memo.options(job.members[0])[0]
    if _free(desk, shape) < shape.cards:
        return None
    worth = shape.cards * (now - since)
    for row in sorted(_rows(desk, shape, rules, is_fixed))[:ROWS_TRIED]:
        if row.cost > worth:
            break
        found = _clear(desk, record, shape, row, budget)
        if found is not None:
            return found
    return None


def moved_lately(desk: Desk, now: int) -> int:
    """Moves of the last hour."""
    return sum(at > now - HOUR_MS for at in desk.world.tally.moves_ms)


def _free(desk: Desk, shape: Shape) -> int:
    """Idle cards of the site that may serve `shape`."""
    free = 0
    for chunk in desk.draft.chunks:
        for kind, idle in zip(chunk.kind.tolist(), (chunk.idle & chunk.usable).tolist(), strict=True):
            free += (idle & shape.eligible[kind]).bit_count() if kind >= 0 else 0
    return free


def _rows(desk: Desk, shape: Shape, rules: Defrag, is_fixed: Fixed) -> list[_Row]:
    found = []
    world = desk.world
    for row in sorted(world.residents):
        if row in world.strained:
            continue
        chunk, place = desk.draft.ledger.readable(row)
        eligible = shape.eligible[int(chunk.kind[place])] & int(chunk.usable[place])
        lacking = shape.cards - (eligible & int(chunk.idle[place])).bit_count()
        if lacking <= 0 or eligible.bit_count() < shape.cards:
            continue
        movers = [
            grant
            for held in world.residents[row]
            if not is_fixed(held.job) and (grant := _movable(desk, held)) is not None
        ]
        movers.sort(key=lambda grant: (len(grant.placement.cards), grant.id))
        cost, chosen = 0, []
        for grant in movers:
            if lacking <= 0:
                break
            chosen.append(grant)
            lacking -= len(grant.placement.cards)
            pause = rules.pause_ms + world.jobs[grant.id.job].job.stop.restart_ms
            cost += len(grant.placement.cards) * pause
        if lacking <= 0:
            found.append(_Row(cost, row, tuple(chosen)))
    return found


def _movable(desk: Desk, held: GrantId) -> Grant | None:
    """The grant of a running movable job of one member with whole cards, or None."""
    record = desk.world.jobs[held.job]
    grant = desk.world.grants[held.job][held.member]
    fine = record.phase is Phase.RUNNING and record.job.movable and len(record.job.members) == 1
    if not fine or grant.seat is None or not grant.placement.whole or not grant.placement.cards:
        return None
    return grant if desk.draft.can_release(grant.seat) else None


def _clear(desk: Desk, record: JobRecord, shape: Shape, row: _Row, budget: int) -> Gathered | None:
    if len(row.movers) > budget:
        return None
    mark = desk.mark()
    moves = []
    for grant in row.movers:
        assert grant.seat is not None
        request = desk.world.jobs[grant.id.job].job.members[0]
        desk.release(grant.seat)
        seat = desk.seat_elsewhere(request, row.row)
        if seat is None:
            desk.rollback(mark)
            return None
        placement = desk.placement(seat.seat)
        moves.append(Move(grant.id.job, grant.id.attempt, grant.id.member, placement, record.job.id))
    request = record.job.members[0]
    option, _ = desk.memo.options(request)[0]
    chunk, place = desk.draft.ledger.readable(row.row)
    kind = int(chunk.kind[place])
    free = shape.eligible[kind] & int(chunk.usable[place]) & int(chunk.idle[place])
    mask = desk.choose_cards(kind, free, shape.cards, need_of(request)) if free else 0
    taken = desk.seat_at(option, shape, row.row, mask) if mask else None
    if taken is None or not desk.draft.fits(taken):
        desk.rollback(mark)
        return None
    desk.book(taken)
    return Gathered(tuple(moves), Seated(taken, 0.0, ()))
