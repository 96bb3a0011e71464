"""Defragmentation: running jobs moved together so that a wide job or a gang starts, and for no other end.

A job is blocked by fragmentation when the site has as many free cards as it asks for, but no nodes have them
together. Its members first get the places there are. For each one left over the node is looked for that
costs least to clear: every movable job on it that is in the way must find room on other nodes that are in
use already, one after the other, each into space that is free at that moment. Several gangs are helped in
one plan, one after the other.

The moves are made only where they let the named job start in the same plan, stay within a budget per hour,
and cost less card-time than the job has already lost by waiting. Nothing moves twice in a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.grants import Grant
from aliquot.core.ids import GrantId, JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.placement.cells import I32
from aliquot.core.placement.shapes import Shape
from aliquot.core.records import JobRecord
from aliquot.core.seating import largest_first
from aliquot.core.settings import HOUR_MS, Defrag
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Move

ROWS_TRIED: Final = 16
"""Nodes that may turn out not to be clearable, for one group of members."""

Fixed = Callable[[JobId], bool]


class Gathered(NamedTuple):
    """The moves, in the order they must be made, and the seats they make room for, by member."""

    moves: tuple[Move, ...]
    seats: list[Seated]


class _Offer(NamedTuple):
    """A node that could be cleared for one more member: what it costs, in card-ms, and who is in the way."""

    cost: int
    moves: int
    row: int
    movers: tuple[Grant, ...]


def gather(desk: Desk, record: JobRecord, now: int, planned: int, is_fixed: Fixed) -> Gathered | None:
    """Moves that let the job of `record` start, booked on the draft; None if none do, the draft as before.

    `planned` moves are in this plan already; `is_fixed` jobs stay where they are.
    """
    rules, job = desk.settings.defrag, record.job
    if rules is None or not _is_movable_for(job):
        return None
    since = max(job.submitted_ms, record.since_ms)
    budget = rules.moves_an_hour - planned - moved_lately(desk, now)
    if budget < 1 or now - since < rules.after_ms:
        return None
    members = job.members[: job.least]
    asked = sum(request.cards for request in members)
    if _free(desk, members) < asked:
        return None
    mark = desk.mark()
    room = _Room(desk, record, rules, is_fixed, budget, asked * (now - since))
    seats: dict[int, Seated] = {}
    for number in largest_first(members):
        seat = room.seat(members[number])
        if seat is None:
            break
        seats[number] = seat
    if len(seats) < len(members) or not room.moves:
        desk.rollback(mark)
        return None
    return Gathered(tuple(room.moves), [seats[number] for number in range(len(members))])


def moved_lately(desk: Desk, now: int) -> int:
    """Moves of the last hour."""
    return sum(at > now - HOUR_MS for at in desk.world.tally.moves_ms)


def _is_movable_for(job: Job) -> bool:
    """Whether others may be moved for `job`: whole cards, more than one together, and nothing else wished."""
    if job.is_sited or job.spread or job.elastic is not None:
        return False
    members = job.members
    return all(request.whole for request in members if request.cards) and any(
        request.cards > 1 for request in members
    )


def _free(desk: Desk, members: Sequence[Request]) -> int:
    """Idle cards of the site that may serve `members`."""
    shapes = [desk.memo.options(request)[0][1] for request in dict.fromkeys(members)]
    masks = [0] * len(desk.world.kinds)
    for shape in shapes:
        masks = [mask | eligible for mask, eligible in zip(masks, shape.eligible, strict=True)]
    free = 0
    for chunk in desk.draft.chunks:
        for kind, idle in zip(chunk.kind.tolist(), (chunk.idle & chunk.usable).tolist(), strict=True):
            free += (idle & masks[kind]).bit_count() if kind >= 0 else 0
    return free


class _Room:
    """Places for the members of one job, the largest first; what is moved for them is in `moves`."""

    def __init__(
        self, desk: Desk, record: JobRecord, rules: Defrag, is_fixed: Fixed, budget: int, worth: int
    ) -> None:
        self._desk, self._record, self._rules, self._is_fixed = desk, record, rules, is_fixed
        self._budget, self._worth = budget, worth
        self.moves: list[Move] = []
        self._moved: set[GrantId] = set()
        self._cleared: set[int] = set()
        self._asked: Request | None = None
        self._offers: list[_Offer] = []
        self._failed = 0

    def seat(self, request: Request) -> Seated | None:
        """A seat where one is free, else on the node that is cleared at the least cost."""
        found = self._desk.seat(request)
        if found is not None:
            return found
        if request != self._asked:
            self._asked, self._offers, self._failed = request, self._find_offers(request), 0
        while self._offers and self._failed < ROWS_TRIED:
            offer = heappop(self._offers)
            now = self._offer(offer.row, request)
            if now is None:
                continue
            if now.cost > offer.cost:
                heappush(self._offers, now)
                continue
            if now.moves > self._budget or now.cost > self._worth:
                return None
            seat = self._clear(now, request)
            if seat is not None:
                again = self._offer(now.row, request)
                if again is not None:
                    heappush(self._offers, again)
                return seat
            self._failed += 1
        return None

    def _find_offers(self, request: Request) -> list[_Offer]:
        world = self._desk.world
        found = [
            offer
            for row in sorted(world.residents)
            if row not in world.strained and (offer := self._offer(row, request)) is not None
        ]
        heapify(found)
        return found

    def _offer(self, row: int, request: Request) -> _Offer | None:
        """What it takes for one more member on `row`; None where those who may move are not enough."""
        _, shape = self._desk.memo.options(request)[0]
        eligible, free = self._cards(row, shape)
        lacking = shape.cards - free.bit_count()
        if eligible.bit_count() < shape.cards:
            return None
        movers = [
            grant
            for held in self._desk.world.residents[row]
            if held not in self._moved
            and not self._is_fixed(held.job)
            and (grant := _movable(self._desk, held)) is not None
        ]
        chosen = _least_moves(movers, lacking)
        if not chosen:
            return None
        return _Offer(sum(self._cost(grant) for grant in chosen), len(chosen), row, chosen)

    def _cards(self, row: int, shape: Shape) -> tuple[int, int]:
        """(eligible, free of these) cards of `row`, as bits."""
        chunk, place = self._desk.draft.ledger.readable(row)
        eligible = shape.eligible[int(chunk.kind[place])] & int(chunk.usable[place])
        return eligible, eligible & int(chunk.idle[place])

    def _cost(self, grant: Grant) -> int:
        """All cards of the job stand still until it has restarted."""
        held = self._desk.world.grants[grant.id.job]
        pause = self._rules.pause_ms + self._desk.world.jobs[grant.id.job].job.stop.restart_ms
        return sum(len(other.placement.cards) for other in held) * pause

    def _clear(self, offer: _Offer, request: Request) -> Seated | None:
        desk = self._desk
        mark = desk.mark()
        barred = {*self._cleared, offer.row}
        moves = []
        for grant in offer.movers:
            assert grant.seat is not None
            asked = desk.world.jobs[grant.id.job].job.members[grant.id.member]
            desk.release(grant.seat)
            found = desk.seat_within(asked, self._used_rows(barred))
            if found is None:
                desk.rollback(mark)
                return None
            placement = desk.placement(found.seat)
            moves.append(
                Move(grant.id.job, grant.id.attempt, grant.id.member, placement, self._record.job.id)
            )
        seat = self._take(offer.row, request)
        if seat is None:
            desk.rollback(mark)
            return None
        self._cleared.add(offer.row)
        self._moved.update(grant.id for grant in offer.movers)
        self.moves += moves
        self._budget -= offer.moves
        self._worth -= offer.cost
        return seat

    def _used_rows(self, barred: set[int]) -> I32:
        """Rows on which something runs, but for `barred`: no wholly idle node is begun by a move."""
        cells = self._desk.placer.board.cells
        rows = self._desk.draft.node_count
        used = cells.idle[:rows] != cells.usable[:rows]
        used[list(barred)] = False
        found: I32 = np.flatnonzero(used).astype(np.int32)
        return found

    def _take(self, row: int, request: Request) -> Seated | None:
        """The seat of one member on `row`; None where cpu, memory or links are lacking."""
        desk = self._desk
        option, shape = desk.memo.options(request)[0]
        _, free = self._cards(row, shape)
        chunk, place = desk.draft.ledger.readable(row)
        mask = desk.choose_cards(int(chunk.kind[place]), free, shape.cards, need_of(request)) if free else 0
        taken = desk.seat_at(option, shape, row, mask) if mask else None
        if taken is None or not desk.draft.fits(taken):
            return None
        desk.book(taken)
        return Seated(taken, 0.0, ())


def _movable(desk: Desk, held: GrantId) -> Grant | None:
    """The grant of a member of a running movable job, with whole cards, or None."""
    record = desk.world.jobs[held.job]
    grant = desk.world.grants[held.job][held.member]
    job = record.job
    if record.phase is not Phase.RUNNING or not job.movable or job.is_sited or job.spread:
        return None
    if len(job.members) == 1 < len(desk.world.grants[held.job]) or job.elastic is not None:
        return None  # in pieces, or of another width than written
    if grant.seat is None or not grant.placement.whole or not grant.placement.cards:
        return None
    return grant if desk.draft.can_release(grant.seat) else None


def _least_moves(movers: Sequence[Grant], lacking: int) -> tuple[Grant, ...]:
    """Of `movers` a few whose cards come to `lacking`; none where all together do not, or nothing lacks.

    The largest that are not too large first, then the smallest that does; whoever is not needed stays.
    """
    left, chosen = lacking, []
    pool = sorted(movers, key=lambda grant: (-len(grant.placement.cards), grant.id))
    for grant in pool:
        if 0 < len(grant.placement.cards) <= left:
            chosen.append(grant)
            left -= len(grant.placement.cards)
    if left > 0:
        rest = [grant for grant in pool if grant not in chosen and len(grant.placement.cards) >= left]
        if not rest:
            return ()
        chosen.append(rest[-1])
        left -= len(rest[-1].placement.cards)
    for grant in list(chosen):
        if len(grant.placement.cards) <= -left:
            chosen.remove(grant)
            left += len(grant.placement.cards)
    return tuple(chosen)
