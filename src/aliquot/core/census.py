"""Who is there to be stopped, in one plan: those who run, those who are ending, and what is promised of both.

What a running job holds and is charged changes only when its record or its grants do, so that is kept from
plan to plan (`room.lodgers`), and only rows where something changed are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from aliquot.core.charging import Flavour, amounts_of, at_least, flavours_of, names_of
from aliquot.core.grants import Grant, GrantState, Placement, Seat
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.quota import Book, Charge, charge_of
from aliquot.core.queueing.tree import QueueTree, home_of
from aliquot.core.records import Asked, Frozen, JobRecord, seat_of
from aliquot.core.room.leaving import Seats, make_room
from aliquot.core.room.lodgers import Level, Lodger, LodgersMemo, Tenant, Terms
from aliquot.core.room.tenants import Tenants, may_ever_stop, shrink_cost, terms_of, victim_cost
from aliquot.core.settings import Preemption
from aliquot.core.shrinking import levels_of
from aliquot.core.siting import Desk

_HELD: Final = (GrantState.RUNNING, GrantState.BOUND, GrantState.ASSUMED)
_LATE: Final = 2
"""What has been ending for so many times the grace is not waited for any more."""

Flavours = Callable[[Job], tuple[Flavour, ...]]


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
        self._ending = Seats()  # what those hold who are being stopped
        self._promised: dict[JobId, tuple[Seat, ...]] = {}
        self._kept = Seats()  # all that is promised and can be given back
        for job, seats in _firm_seats(world).items():
            self.promise(job, seats)
        self._memo = desk.memo.lodgers
        self._read_all(self._memo)
        self.tenants = Tenants(self._memo.roll, now, rules)
        for job in sorted(self._memo.ending):
            self._note_ending(world.jobs[job])
        if self._book is not None:
            self._book.settle()

    @property
    def book(self) -> Book | None:
        """The accounts as they will be once all are gone who are being stopped."""
        book, accounts = self._book, self._accounts
        if book is not None and accounts is not None and accounts.book.mark() != self._followed:
            for node, charge in accounts.book.since(self._followed):
                book.add(node, charge)
            self._followed = accounts.book.mark()
            book.settle()
        return book

    def leave(self, queue: str, asked: tuple[Asked, ...], seats: Iterable[Seat]) -> None:
        """A job of `queue` is being stopped, which held `seats`."""
        self._ending.add(seats)
        if self._book is not None and self._accounts is not None:
            self._book.remove(self._accounts.leaf(queue), self._accounts.charge(asked))
            self._book.settle()

    def shrink(self, one: Tenant, seats: Iterable[Seat]) -> None:
        """A job goes on narrower: `one` is the last part it gives up, `seats` what it held in all of them."""
        self._ending.add(seats)
        if self._book is not None:
            self._book.remove(one.leaf, one.charge)
            self._book.settle()

    def narrowed(self, one: Tenant) -> tuple[Placement, ...]:
        """What the job of `one` holds once it has given that up."""
        record = self._world.jobs[one.job]
        levels = levels_of(self._desk, record, self._world.grants[one.job])
        return next(level.placements for level in levels if level.keep == one.keep)

    @property
    def is_anybody_ending(self) -> bool:
        """Whether somebody who is being stopped holds something."""
        return bool(self._ending.all)

    def promise(self, job: JobId, seats: tuple[Seat, ...]) -> None:
        """`seats` are kept for `job`, and for nobody else."""
        before = self._promised.get(job)
        self._promised[job] = seats
        if before is None:
            self._kept.add(seat for seat in seats if self._desk.draft.can_release(seat))
        else:
            self._kept = self._kept_but("")

    def _kept_but(self, job: str) -> Seats:
        """What is promised to others than `job`."""
        can = self._desk.draft.can_release
        return Seats(
            seat for holder, seats in self._promised.items() if holder != job for seat in seats if can(seat)
        )

    def foresee(self, job: JobId) -> int:
        """Make the draft what it will be once those are gone who are being stopped, less what is others'.

        How many seats that takes.
        """
        if not self.is_anybody_ending:
            return 0
        promised = self._kept_but(job) if job in self._promised else self._kept
        make_room(self._desk.draft, self._ending, promised, compiled=self._desk.placer.compiled)
        self._desk.catch_up()
        return len(self._ending.all) + len(self._promised)

    def _read_all(self, memo: LodgersMemo) -> None:
        """Bring what is remembered up to date."""
        world, settings = self._world, self._desk.settings
        tree = None if self._accounts is None else self._accounts.tree
        memo.know(tree, (self._rules, settings.elastic))
        roster = self._desk.memo.roster
        roster.follow(self._desk.world)
        rows = len(roster.residents)
        memo.roll.widen(rows)
        closed = memo.strained ^ world.strained
        if memo.nodes is not world.nodes:
            memo.records += [None] * (rows - len(memo.records))
            records = [*(world.nodes[node] for node in world.node_at), *[None] * (rows - world.rows)]
            known = enumerate(zip(memo.records, records, strict=True))
            closed |= {row for row, (was, new) in known if was is not new}
            memo.records, memo.nodes = [*records], world.nodes
        company = frozenset(world.company)
        again = set[JobId]()
        if memo.lodgers:  # else all are read anyway
            again = {held.job for row in closed for held in roster.residents[row]}
        again |= memo.company | company
        memo.strained, memo.company = world.strained, company
        for job in again:
            memo.lodgers.pop(job, None)
        memo.follow(roster, sorted(closed), sorted(again | set(memo.changing)), self._read)

    def _read(self, job: JobId) -> list[int]:
        """Take `job` in as it is now; the rows where what might be had of it is another than before."""
        memo, roll = self._memo, self._memo.roll
        record, grants = self._world.jobs.get(job), self._world.grants.get(job, ())
        known = memo.lodgers.get(job)
        if known is not None and known.record is record and known.grants is grants:
            if job not in memo.changing:
                return []
            parts = self._parts(record, grants)
            if _shape(parts) == known.shape:
                roll.reprice(job, (terms.fixed for _, terms in parts))
                return []
        else:
            parts = [] if record is None or not grants else self._parts(record, grants)
        rows = roll.drop(job)
        memo.ending.pop(job, None)
        if record is None or not grants:
            memo.lodgers.pop(job, None)
            memo.changing.pop(job, None)
            return rows
        if record.phase is Phase.STOPPING:
            memo.ending[job] = None
        memo.lodgers[job] = Lodger(record, grants, _shape(parts) if job in memo.changing else ())
        if not parts:
            return rows
        is_whole = len(parts) == 1 and not parts[0][0].keep
        seats = [seat for one, _ in parts for seat in one.seats]
        given = grants
        if is_whole and len(seats) < len(grants):
            given = tuple(
                grant for grant in grants if grant.seat and self._desk.draft.can_release(grant.seat)
            )
        number = self._desk.memo.roster.number
        roll.add(job, parts, [number(grant.id) for grant in given], is_whole=is_whole)
        return [*rows, *(seat.row for seat in seats)]

    def _parts(self, record: JobRecord, grants: tuple[Grant, ...]) -> list[tuple[Tenant, Terms]]:
        """The job of `record` as what it would give up at each narrower width, and then altogether."""
        job, accounts, memo = record.job, self._accounts, self._memo
        memo.changing.pop(job.id, None)
        if not may_ever_stop(record, self._rules):
            return []
        seats = _seats_of(self._desk, grants, _HELD) or ()
        leaf = 0 if accounts is None else accounts.leaf(job.queue)
        charge: Charge = () if accounts is None else accounts.charge(record.asked)
        when = (job.submitted_ms, job.seq)
        whole = Tenant(job.id, 0, seats, job.priority, job.spot, when, leaf, charge)
        if not self._may_shrink(record, grants):
            return [(whole, terms_of(record, self._rules))] if seats else []
        memo.changing[job.id] = None
        cost = victim_cost(record, self._now, self._rules)
        return [] if cost is None else list(self._narrower(record, grants, whole, cost))

    def _may_shrink(self, record: JobRecord, grants: tuple[Grant, ...]) -> bool:
        """Whether it has, or could come to have, narrower widths while its record is what it is."""
        if not self._rules.shrink:
            return False
        return record.job.elastic is not None or bool(levels_of(self._desk, record, grants))

    def _narrower(
        self, record: JobRecord, grants: tuple[Grant, ...], whole: Tenant, cost: int
    ) -> Iterator[tuple[Tenant, Terms]]:
        spent, charged, rest = 0, whole.charge, whole.seats
        in_place = self._desk.settings.resizes_in_place
        for level in self._levels(record, grants):
            left_milli = sum(part.milli for part in level.asked)
            total = shrink_cost(record, left_milli, self._now, in_place=in_place)
            if total > cost:  # at the same loss it is better to run on narrower
                break
            left = () if self._accounts is None else self._accounts.charge(level.asked)
            part = whole._replace(
                seats=level.freed,
                charge=_less(whole.charge, left),
                keep=level.keep,
                part=_less(charged, left),
            )
            yield part, terms_of(record, self._rules, max(0, total - spent))
            spent, charged, rest = max(spent, total), left, level.rest
        if rest:
            last = whole._replace(seats=rest, part=None if charged is whole.charge else charged)
            yield last, terms_of(record, self._rules, cost - spent)

    def _levels(self, record: JobRecord, grants: tuple[Grant, ...]) -> tuple[Level, ...]:
        rules = self._desk.settings.elastic
        rested = rules is None or self._now - record.resized_ms >= rules.dwell_ms
        return levels_of(self._desk, record, grants) if rested or record.job.elastic is None else ()

    def _note_ending(self, record: JobRecord) -> None:
        late = self._now - record.since_ms > _LATE * max(self._rules.grace_ms, 1)
        grants = self._world.grants[record.job.id]
        seats = None if late else _seats_of(self._desk, grants, (GrantState.TERMINATING,))
        if record.evicting is not None:
            self.leave(record.job.queue, record.asked, seats or ())
        elif seats:
            self._ending.add(seats)


class Accounts:
    """Queues and what their jobs are charged, in numbers of one tree."""

    def __init__(self, desk: Desk, tree: QueueTree, book: Book, flavours: Flavours | None = None) -> None:
        self.tree, self.book, self._known = tree, book, flavours
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
        if self._known is not None:
            return self._known(job)
        job = at_least(job)
        found = self._flavours.get(job.members)
        if found is None:
            found = flavours_of(job, self._kinds, self.tree, self._rates, self._names)
            self._flavours[job.members] = found
        return found


def _shape(parts: Sequence[tuple[Tenant, Terms]]) -> tuple[tuple[int, tuple[Seat, ...]], ...]:
    return tuple((one.keep, one.seats) for one, _ in parts)


def _less(charge: Charge, left: Charge) -> Charge:
    """`charge` without `left`, which is at most as much."""
    still = dict(left)
    less = ((slot, amount - still.get(slot, 0)) for slot, amount in charge)
    return tuple((slot, amount) for slot, amount in less if amount)


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
