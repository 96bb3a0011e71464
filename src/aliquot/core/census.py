"""Who is there to be stopped, in one plan: those who run, those who are ending, and what is promised of both.

Worked out once for a plan. What a running job holds and is charged changes only when its grants do, so that
is remembered from plan to plan (`room.lodgers`); what stopping it costs is asked anew each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from aliquot.core.charging import Flavour, amounts_of, flavours_of, names_of
from aliquot.core.grants import Grant, GrantState, Placement, Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.quota import Book, Charge, charge_of
from aliquot.core.queueing.tree import QueueTree, home_of
from aliquot.core.records import Asked, Frozen, JobRecord, seat_of
from aliquot.core.room.lodgers import Level, Lodger
from aliquot.core.room.tenants import Tenant, Tenants, shrink_cost, victim_cost
from aliquot.core.settings import Preemption
from aliquot.core.shrinking import levels_of
from aliquot.core.siting import Desk

_HELD: Final = (GrantState.RUNNING, GrantState.BOUND, GrantState.ASSUMED)
_LATE: Final = 2
"""What has been ending for so many times the grace is not waited for any more."""


class Census:
    """What one plan may stop. Whoever is stopped in it `leaves`: his quota and cards count as free from then.

    `book` is the accounts without all who are being stopped; None where there are no quotas.
    """

    def __init__(
        self, desk: Desk, world: Frozen, rules: Preemption, accounts: Accounts | None, now: int
    ) -> None:
        self._desk, self._world, self._rules, self._now = desk, world, rules, now
        self._accounts = accounts
        self._book = None if accounts is None else accounts.book.copy()
        self._followed = 0 if accounts is None else accounts.book.mark()
        self.ending: list[Seat] = []  # what those hold who are being stopped
        self.promised: dict[JobId, tuple[Seat, ...]] = _firm_seats(world)
        self.tenants = Tenants(list(self._scan()))
        if self._book is not None:
            self._book.settle()

    @property
    def book(self) -> Book | None:
        """The accounts as they will be once all are gone who are being stopped."""
        if self._book is not None and self._accounts is not None:
            for node, charge in self._accounts.book.since(self._followed):
                self._book.add(node, charge)
            self._followed = self._accounts.book.mark()
            self._book.settle()
        return self._book

    def leave(self, queue: str, asked: tuple[Asked, ...], seats: Iterable[Seat]) -> None:
        """A job of `queue` is being stopped, which held `seats`."""
        self.ending += seats
        if self._book is not None and self._accounts is not None:
            self._book.remove(self._accounts.leaf(queue), self._accounts.charge(asked))
            self._book.settle()

    def shrink(self, one: Tenant, seats: Iterable[Seat]) -> None:
        """A job goes on narrower: `one` is the last part it gives up, `seats` what it held in all of them."""
        self.ending += seats
        if self._book is not None:
            self._book.remove(one.leaf, one.charge)
            self._book.settle()

    def narrowed(self, one: Tenant) -> tuple[Placement, ...]:
        """What the job of `one` holds once it has given that up."""
        record = self._world.jobs[one.job]
        levels = levels_of(self._desk, record, self._world.grants[one.job])
        return next(level.placements for level in levels if level.keep == one.keep)

    def foresee(self, job: JobId) -> None:
        """Make the draft what it will be once those are gone who are being stopped, less what is others'."""
        if not self.ending:
            return
        for seat in self.ending:
            self._desk.draft.release(seat)
        for holder, seats in self.promised.items():
            for seat in seats:
                rest = None if holder == job else _rest_of(self._desk, seat)
                if rest is not None:
                    self._desk.draft.book(rest)
        self._desk.catch_up()

    def _scan(self) -> Iterator[Tenant]:
        """All who may be stopped for somebody, in the order of rows."""
        memo = self._desk.memo.lodgers
        tree = None if self._accounts is None else self._accounts.tree
        known = memo.known(tree, (self._world.strained, self._world.company))
        fresh: dict[JobId, Lodger] = {}
        for record in _residents(self._world):
            job = record.job
            cost = victim_cost(record, self._now, self._rules)
            if cost is not None:
                grants = self._world.grants[job.id]
                lodger = known.get(job.id)
                if lodger is None or lodger.grants is not grants or lodger.asked is not record.asked:
                    lodger = self._lodger(record, grants)
                fresh[job.id] = lodger
                yield from self._parts(record, cost, lodger)
            elif record.phase is Phase.STOPPING:
                self._note_ending(record)
        memo.keep(fresh)

    def _parts(self, record: JobRecord, cost: int, lodger: Lodger) -> Iterator[Tenant]:
        """The job of `record` as what it would give up at each narrower width, and then altogether."""
        job, leaf = record.job, lodger.leaf
        when = (job.submitted_ms, job.seq)
        spent, charged, rest = 0, lodger.charge, lodger.seats
        for level in self._levels(record, lodger):
            total = shrink_cost(record, sum(part.milli for part in level.asked), self._now)
            if total >= cost:
                break
            left = () if self._accounts is None else self._accounts.charge(level.asked)
            yield Tenant(
                job.id,
                max(0, total - spent),
                level.freed,
                job.priority,
                job.spot,
                when,
                leaf,
                _less(lodger.charge, left),
                level.keep,
                _less(charged, left),
            )
            spent, charged, rest = max(spent, total), left, level.rest
        if rest:
            part = None if charged is lodger.charge else charged
            yield Tenant(
                job.id, cost - spent, rest, job.priority, job.spot, when, leaf, lodger.charge, 0, part
            )

    def _levels(self, record: JobRecord, lodger: Lodger) -> tuple[Level, ...]:
        job, rules = record.job, self._desk.settings.elastic
        if not self._rules.shrink:
            return ()
        if job.elastic is None:
            return lodger.levels
        if rules is not None and self._now - record.resized_ms < rules.dwell_ms:
            return ()
        return levels_of(self._desk, record, lodger.grants)

    def _lodger(self, record: JobRecord, grants: tuple[Grant, ...]) -> Lodger:
        seats = _seats_of(self._desk, grants, _HELD)
        accounts = self._accounts
        leaf = 0 if accounts is None else accounts.leaf(record.job.queue)
        charge: Charge = () if accounts is None else accounts.charge(record.asked)
        # at which cards a narrower job of one member would be depends on the moment: not remembered
        levels = () if record.job.elastic is not None else levels_of(self._desk, record, grants)
        return Lodger(grants, record.asked, seats or (), leaf, charge, levels)

    def _note_ending(self, record: JobRecord) -> None:
        late = self._now - record.since_ms > _LATE * max(self._rules.grace_ms, 1)
        grants = self._world.grants[record.job.id]
        seats = None if late else _seats_of(self._desk, grants, (GrantState.TERMINATING,))
        if record.evicting is not None:
            self.leave(record.job.queue, record.asked, seats or ())
        elif seats:
            self.ending += seats


class Accounts:
    """Queues and what their jobs are charged, in numbers of one tree."""

    def __init__(self, desk: Desk, tree: QueueTree, book: Book) -> None:
        self.tree, self.book = tree, book
        self._rates, self._kinds = desk.settings.rates, desk.world.kinds
        self._names = names_of(self._kinds, tree)
        self._leaves: dict[str, int] = {}
        self._charges: dict[tuple[Asked, ...], Charge] = {}
        self._flavours: dict[object, tuple[Flavour, ...]] = {}

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
        found = self._flavours.get(job.members)
        if found is None:
            found = flavours_of(job, self._kinds, self.tree, self._rates, self._names)
            self._flavours[job.members] = found
        return found


def _less(charge: Charge, left: Charge) -> Charge:
    """`charge` without `left`, which is at most as much."""
    still = dict(left)
    less = ((slot, amount - still.get(slot, 0)) for slot, amount in charge)
    return tuple((slot, amount) for slot, amount in less if amount)


def _residents(world: Frozen) -> Iterator[JobRecord]:
    """Jobs that hold something, in the order of rows and of arrival there."""
    seen: set[JobId] = set()
    jobs, residents = world.jobs, world.residents
    for row in range(world.rows):
        for held in residents.get(row, ()):
            if held.job not in seen:
                seen.add(held.job)
                yield jobs[held.job]


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
        if not kept.firm:
            continue
        records = [world.nodes.get(placement.node) for placement in kept.placements]
        seats = [
            seat_of(placement, record)
            for placement, record in zip(kept.placements, records, strict=True)
            if record is not None
        ]
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
