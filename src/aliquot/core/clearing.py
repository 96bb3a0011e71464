"""Room made for a waiting job by stopping others: who they are, what it costs, and where the job then sits.

It answers and changes nothing: the draft is as before, and what it finds is booked and kept by the planner.
Within one plan nobody is offered twice. Whoever is being stopped already counts as gone, from its queue and
from its cards, as far as these are not kept for somebody: nobody else is stopped for what comes free anyway.

Spot work may be stopped for anybody but spot work, which stops nobody. Without quotas strictly lower priority
decides, anywhere. With them it decides inside a queue, and between queues the rules of `room.reclaim` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from aliquot.core.charging import Flavour, amounts_of, flavours_of, names_of, narrowed
from aliquot.core.grants import Grant, GrantState, Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import Phase
from aliquot.core.linking import Need
from aliquot.core.placement.cells import Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.queueing.quota import Book, Charge, charge_of
from aliquot.core.queueing.tree import QueueTree, home_of
from aliquot.core.records import Asked, Frozen, JobRecord, seat_of
from aliquot.core.room.reclaim import Claim
from aliquot.core.room.tenants import Tenant, Tenants, open_pool, victim_cost
from aliquot.core.room.vacancy import Wish
from aliquot.core.room.victims import Found, search
from aliquot.core.seating import seat_all
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Cause, Evict

_HELD: Final = (GrantState.RUNNING, GrantState.BOUND, GrantState.ASSUMED)
_LATE: Final = 2
"""What has been ending for so many times the grace is not waited for any more."""


class Cleared(NamedTuple):
    """Stop `victims`, and the members sit on `seats`.

    `alternatives` sets were worked out, this one included; the best other would have cost `next_cost` (None:
    there was no other, or none was worked out). `is_bounded`: a bound of the search was reached.
    """

    victims: tuple[Evict, ...]
    seats: list[Seated]
    alternatives: int = 1
    next_cost: int | None = None
    is_bounded: bool = False

    @property
    def cost_ms(self) -> int:
        """What is lost, in ms of one whole card."""
        return sum(victim.cost_ms for victim in self.victims)


class Clearing:
    """What one plan may stop. `tree` and `book` are None where there are no quotas.

    The planner adds what it clears room for to `book`, as if it had started; those who are stopped are still
    in it, and are left out here.
    """

    def __init__(
        self,
        desk: Desk,
        world: Frozen,
        rules: Preemption,
        tree: QueueTree | None,
        book: Book | None,
        now: int,
    ) -> None:
        self._desk, self._rules, self._now = desk, rules, now
        self._accounts = None if tree is None or book is None else _Accounts(desk, tree, book)
        self._world = world
        self._gone: set[JobId] = set()
        self._in_vain: set[tuple[object, ...]] = set()
        self._leaving: list[
            tuple[str, tuple[Asked, ...]]
        ] = []  # (queue, what it is charged) of who is stopped
        self._ending: list[Seat] = []  # what they hold
        self._promised: dict[JobId, tuple[Seat, ...]] = _firm_seats(world)
        self._scanned: Tenants | None = None

    def bar(self, job: JobId) -> None:
        """`job` is not to be stopped in this plan: it was moved, and sits where the world does not know."""
        self._gone.add(job)

    def is_taken(self, job: JobId) -> bool:
        """Whether `job` is stopped in this plan, or barred: it should not be moved or resized then."""
        return job in self._gone

    def clear(self, record: JobRecord, flavour: Flavour | None = None) -> Cleared | None:
        """How to let the job of `record` start, charged as `flavour`; None: it can't.

        Without a `flavour` the first does by which it can. No victims where there is room, or will be as soon
        as those are gone who are being stopped anyway.
        """
        tenants = self._tenants()
        mark = self._desk.mark()
        self._foresee(record.job.id)
        try:
            if flavour is not None:
                return self._clear(record, flavour, tenants)
            flavours = (Flavour("", ()),) if self._accounts is None else self._accounts.flavours(record.job)
            found = (self._clear(record, flavour, tenants) for flavour in flavours)
            return next((cleared for cleared in found if cleared is not None), None)
        finally:
            self._desk.rollback(mark)

    def _clear(self, record: JobRecord, flavour: Flavour, tenants: Tenants) -> Cleared | None:
        job = _least(narrowed(record.job, flavour.model))
        bench = _Bench(self._desk, job)
        claim = self._claim(job, flavour.charge)
        if (claim is None or claim.is_met()) and bench.seats(()):
            if self._ending:
                self._promised[record.job.id] = tuple(seat.seat for seat in bench.seated)
            return Cleared((), bench.seated)
        alike = (job.queue, job.priority, job.spot, job.spread, job.minimum, job.members, flavour)
        if job.spot or alike in self._in_vain:
            return None
        found = self._search(job, claim, bench, tenants)
        if found is None:
            self._in_vain.add(alike)
            return None
        return self._cleared(record, found, bench)

    def _search(self, job: Job, claim: Claim | None, bench: _Bench, tenants: Tenants) -> Found | None:
        priority = job.priority if self._desk.settings.by_priority else None
        gone = [at for at, one in enumerate(tenants.all) if one.job in self._gone] if self._gone else []
        pool = open_pool(tenants, self._rules, priority=priority, gone=gone, claim=claim)
        members = job.members[: job.least]
        limits = (1, None) if job.spread and len(members) > 1 else (None,)
        for each in limits if not pool.is_empty else ():
            found = search(members, pool, bench, claim=claim, most=self._rules.most_victims, each=each)
            if found is not None:
                return found
        return None

    def _cleared(self, record: JobRecord, found: Found, bench: _Bench) -> Cleared:
        seated = bench.seated if bench.seats(found.victims) else []
        assert seated, "the search has seated them"
        victims = []
        for one in found.victims:
            victim = self._world.jobs[one.job]
            self._gone.add(one.job)
            self._leave(victim, one.seats)
            cause = _cause(one, self._accounts, record.job, self._rules)
            grace = self._rules.grace_ms
            victims.append(Evict(one.job, victim.attempt, cause, record.job.id, grace, one.cost))
        self._promised[record.job.id] = tuple(seat.seat for seat in seated)
        return Cleared(tuple(victims), seated, found.compared, found.next_cost, found.is_bounded)

    def _claim(self, job: Job, charge: Charge) -> Claim | None:
        """The accounts as they are without all who are being stopped."""
        accounts = self._accounts
        if accounts is None:
            return None
        claim = Claim(accounts.book, accounts.leaf(job.queue), charge, reclaim=self._rules.reclaim)
        for queue, asked in self._leaving:
            claim.book.remove(accounts.leaf(queue), accounts.charge(asked))
        return claim

    def _foresee(self, job: JobId) -> None:
        """The draft as it will be once those are gone who are being stopped, less what is kept for others."""
        if not self._ending:
            return
        for seat in self._ending:
            self._desk.release(seat)
        for holder, seats in self._promised.items():
            for seat in seats:
                rest = None if holder == job else _rest_of(self._desk, seat)
                if rest is not None:
                    self._desk.book(rest)

    def _tenants(self) -> Tenants:
        """All who may be stopped for somebody, in the order of rows; worked out once."""
        if self._scanned is None:
            found = []
            for record in _residents(self._world):
                cost = victim_cost(record, self._now, self._rules)
                if cost is not None:
                    seats = _seats_of(self._desk, self._world.grants[record.job.id], _HELD)
                    if seats:
                        found.append(_tenant(record, cost, seats, self._accounts))
                elif record.phase is Phase.STOPPING:
                    self._note_ending(record)
            self._scanned = Tenants(found)
        return self._scanned

    def _note_ending(self, record: JobRecord) -> None:
        late = self._now - record.since_ms > _LATE * max(self._rules.grace_ms, 1)
        grants = self._world.grants[record.job.id]
        seats = None if late else _seats_of(self._desk, grants, (GrantState.TERMINATING,))
        if record.evicting is not None:
            self._leave(record, seats or ())
        elif seats:
            self._ending += seats

    def _leave(self, record: JobRecord, seats: tuple[Seat, ...]) -> None:
        self._leaving.append((record.job.queue, record.asked))
        self._ending += seats


class _Accounts:
    """Queues and what their jobs are charged, in numbers of one tree."""

    def __init__(self, desk: Desk, tree: QueueTree, book: Book) -> None:
        self.tree, self.book = tree, book
        self._rates, self._kinds = desk.settings.rates, desk.world.kinds
        self._names = names_of(self._kinds, tree)
        self._leaves: dict[str, int] = {}
        self._charges: dict[tuple[Asked, ...], Charge] = {}

    def leaf(self, queue: str) -> int:
        """The node that holds jobs of `queue`."""
        if queue not in self._leaves:
            self._leaves[queue] = home_of(self.tree, queue)
        return self._leaves[queue]

    def charge(self, asked: tuple[Asked, ...]) -> Charge:
        """What a running job is charged."""
        if asked not in self._charges:
            amounts = amounts_of(asked, self.tree, self._rates, self._names)
            self._charges[asked] = charge_of(self.tree, amounts)
        return self._charges[asked]

    def flavours(self, job: Job) -> tuple[Flavour, ...]:
        """The ways to charge a waiting job."""
        return flavours_of(job, self._kinds, self.tree, self._rates, self._names)


class _Bench:
    """The draft with one job to be seated on it; `seated` is where it last was."""

    def __init__(self, desk: Desk, job: Job) -> None:
        self._desk, self._job = desk, job
        self._last: tuple[JobId, ...] | None = None
        self.seated: list[Seated] = []

    @property
    def cells(self) -> Cells:
        """What is free now."""
        return self._desk.placer.board.cells

    @property
    def rows(self) -> int:
        """Rows in use."""
        return self._desk.draft.node_count

    def wish(self, request: Request) -> Wish:
        """The shapes that may stand for `request`."""
        return Wish(request, tuple(shape for _, shape in self._desk.memo.options(request)))

    def pick(self, kind: int, free: int, shape: Shape) -> int:
        """The cards that `shape` would take of `free`; wiring decides."""
        assert isinstance(shape.need, Need)
        return self._desk.choose_cards(kind, free, shape.cards, shape.need)

    def seats(self, victims: Sequence[Tenant]) -> bool:
        """Whether all members find seats once `victims` are gone; the draft is as before."""
        asked = tuple(one.job for one in victims)
        if asked == self._last:
            return bool(self.seated)
        mark = self._desk.mark()
        for one in victims:
            for seat in one.seats:
                self._desk.release(seat)
        self.seated, self._last = seat_all(self._desk, self._job) or [], asked
        self._desk.rollback(mark)
        return bool(self.seated)


def _tenant(record: JobRecord, cost: int, seats: tuple[Seat, ...], accounts: _Accounts | None) -> Tenant:
    job = record.job
    leaf = 0 if accounts is None else accounts.leaf(job.queue)
    charge: Charge = () if accounts is None else accounts.charge(record.asked)
    return Tenant(job.id, cost, seats, job.priority, job.spot, (job.submitted_ms, job.seq), leaf, charge)


def _least(job: Job) -> Job:
    """An elastic job at its first width: nobody is stopped to make it faster."""
    return job if job.elastic is None else job.sized(job.elastic.widths[0])


def _residents(world: Frozen) -> Iterator[JobRecord]:
    """Jobs that hold something, in the order of rows and of arrival there."""
    seen: set[JobId] = set()
    for row in range(world.rows):
        for held in world.residents.get(row, ()):
            if held.job not in seen:
                seen.add(held.job)
                yield world.jobs[held.job]


def _seats_of(desk: Desk, grants: Iterable[Grant], states: Sequence[GrantState]) -> tuple[Seat, ...] | None:
    """What would be free without `grants`; None where it is not sure that it would."""
    seats = []
    for grant in grants:
        if grant.seat is None or grant.state not in states:
            return None
        if desk.draft.can_release(grant.seat):
            seats.append(grant.seat)
    return tuple(seats)


def _firm_seats(world: Frozen) -> dict[JobId, tuple[Seat, ...]]:
    """What was cleared for others before."""
    found = {}
    for kept in world.kept:
        records = [world.nodes.get(placement.node) for placement in kept.placements]
        seats = [
            seat_of(placement, record)
            for placement, record in zip(kept.placements, records, strict=True)
            if record is not None
        ]
        if kept.firm:
            found[kept.job] = tuple(seat for seat in seats if seat is not None)
    return found


def _rest_of(desk: Desk, seat: Seat) -> Seat | None:
    """What of a kept `seat` is free on the draft, so not blocked there yet; of slices all or nothing."""
    if not desk.draft.can_release(seat):
        return None
    if not seat.whole:
        return seat if desk.draft.fits(seat) else None
    chunk, place = desk.draft.ledger.readable(seat.row)
    mask = seat.mask & int(chunk.idle[place]) & int(chunk.usable[place])
    cpu, host = min(seat.cpu, int(chunk.cpu[place])), min(seat.host, int(chunk.host[place]))
    return Seat(seat.row, mask, seat.vector, True, cpu, host) if mask else None


def _cause(one: Tenant, accounts: _Accounts | None, beneficiary: Job, rules: Preemption) -> Cause:
    if one.spot and rules.spot:
        return Cause.SPOT
    if accounts is None or one.leaf == accounts.leaf(beneficiary.queue):
        return Cause.PRIORITY
    return Cause.RECLAIM
