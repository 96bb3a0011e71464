"""Room made for a waiting job by stopping others: who they are, what it costs, and where the job then sits.

It answers and changes nothing: the draft is as before, and what it finds is booked and kept by the planner.
Within one plan nobody is offered twice. Whoever is being stopped already counts as gone, from its queue and
from its cards, as far as these are not kept for somebody: nobody else is stopped for what comes free anyway.

Spot work may be stopped for anybody but spot work, which stops nobody. Without quotas strictly lower priority
decides, anywhere. With them it decides inside a queue, and between queues the rules of `room.reclaim` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aliquot.core.census import Accounts, Census, Flavours
from aliquot.core.charging import Flavour, narrowed
from aliquot.core.gangs import domains_to_clear
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.linking import Need
from aliquot.core.pace import width_of
from aliquot.core.placement.cells import I32, Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.queueing.quota import Book, Charge
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.effort import AT_ONCE, SEAT, UNLIMITED, Effort
from aliquot.core.room.lodgers import Tenant
from aliquot.core.room.reclaim import Claim
from aliquot.core.room.tenants import Offers, Pool, Tenants, is_any, offers_of, open_pool
from aliquot.core.room.vacancy import Wish
from aliquot.core.room.victims import Found, search
from aliquot.core.seating import seat_all
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Cause, Evict, Resize


class Cleared(NamedTuple):
    """Stop `victims`, or let them go on narrower, and the members sit on `seats`.

    `alternatives` sets were worked out, this one included; the best other would have cost `next_cost` (None:
    there was no other, or none was worked out). `is_bounded`: a bound of the search was reached.
    """

    victims: tuple[Evict | Resize, ...]
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

    `flavours` are the ways to charge a waiting job, where somebody knows them already.

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
        flavours: Flavours | None = None,
    ) -> None:
        self._desk, self._rules, self._now = desk, rules, now
        self._accounts = None if tree is None or book is None else Accounts(desk, tree, book, flavours)
        self._world = world
        self._gone: set[JobId] = set()
        self._in_vain: set[tuple[object, ...]] = set()
        self._taken: Census | None = None
        self._effort, self._was_cut = Effort(0), False

    @property
    def _census(self) -> Census:
        """Who is there to be stopped; worked out when it is first asked."""
        if self._taken is None:
            self._taken = Census(self._desk, self._world, self._rules, self._accounts, self._now)
        return self._taken

    def bar(self, job: JobId) -> None:
        """`job` is not to be stopped in this plan: it was moved, and sits where the world does not know."""
        self._gone.add(job)

    def is_taken(self, job: JobId) -> bool:
        """Whether `job` is stopped in this plan, or barred: it should not be moved or resized then."""
        return job in self._gone

    @property
    def work(self) -> int:
        """What the last `clear` cost."""
        return self._effort.spent

    @property
    def was_cut(self) -> bool:
        """Whether it was not looked at all that might have let in the last job, for lack of work left."""
        return self._was_cut

    def is_ruled_out(self, job: Job) -> bool:
        """Whether quota forbids `job` to start and plainly nobody may be had for it, so a search is needless.

        Costs next to nothing. True is sure, False is not.
        """
        accounts, book = self._accounts, self._census.book
        if accounts is None or book is None:
            return False
        leaf, rules, tenants = accounts.leaf(job.queue), self._rules, self._census.tenants
        priority = job.priority if self._desk.settings.by_priority else None
        for flavour in accounts.flavours(job):
            claim = Claim(book, leaf, flavour.charge, reclaim=rules.reclaim)
            if claim.is_met():
                return False
            if not job.spot and is_any(tenants, rules, priority=priority, claim=claim):
                return False
        return True

    def clear(
        self, record: JobRecord, flavour: Flavour | None = None, work: int = UNLIMITED
    ) -> Cleared | None:
        """How to let the job of `record` start, charged as `flavour`; None: it can't.

        Without a `flavour` the first does by which it can. No victims where there is room, or will be as soon
        as those are gone who are being stopped anyway. When `work` is used up, what was found has to do.
        """
        self._effort, self._was_cut = Effort(work), False
        if flavour is not None:
            return self._clear(record, flavour)
        flavours = (Flavour("", ()),) if self._accounts is None else self._accounts.flavours(record.job)
        found = (self._clear(record, flavour) for flavour in flavours)
        return next((cleared for cleared in found if cleared is not None), None)

    def _clear(self, record: JobRecord, flavour: Flavour) -> Cleared | None:
        job = _least(narrowed(record.job, flavour.model))
        claim = self._claim(job, flavour.charge)
        is_met = claim is None or claim.is_met()
        if not is_met and self._is_in_vain(job, flavour):
            return None
        self._effort.spend(1)
        pool = None if is_met else self._pool(job, claim)
        if not is_met and (pool is None or pool.is_empty):
            self._note_vain(job, flavour)
            return None
        mark = self._desk.mark()
        self._effort.spend(self._census.foresee(record.job.id) * SEAT)
        try:
            return self._clear_foreseen(record, job, flavour, claim, pool)
        finally:
            self._desk.rollback(mark)

    def _clear_foreseen(
        self, record: JobRecord, job: Job, flavour: Flavour, claim: Claim | None, pool: Pool | None
    ) -> Cleared | None:
        """`pool` is None where quota allows the start."""
        bench = _Bench(self._desk, job)
        if pool is None:
            if bench.seats(()):
                if self._census.is_anybody_ending:
                    self._census.promise(record.job.id, tuple(seat.seat for seat in bench.seated))
                return Cleared((), bench.seated)
            if self._is_in_vain(job, flavour):
                return None
            pool = self._pool(job, claim)
        found = None if pool is None or pool.is_empty else self._search(job, claim, bench, pool)
        if found is None:
            self._note_vain(job, flavour)
            return None
        return self._cleared(record, found, bench)

    def _note_vain(self, job: Job, flavour: Flavour) -> None:
        """Nobody was found; it need not be looked again in this plan, unless it was cut short."""
        if not self._was_cut:
            self._in_vain.add((*alike(job), flavour))

    def _is_in_vain(self, job: Job, flavour: Flavour) -> bool:
        """Whether nobody is stopped for `job`, or was found for one like it."""
        return job.spot or (*alike(job), flavour) in self._in_vain

    def _pool(self, job: Job, claim: Claim | None) -> Pool | None:
        """Whom `job` may have; None where it is plain that there is nobody."""
        tenants = self._census.tenants
        priority = job.priority if self._desk.settings.by_priority else None
        self._effort.spend(len(tenants.count) + len(self._gone))
        compiled = self._desk.placer.compiled
        offers = offers_of(tenants, self._rules, priority=priority, claim=claim, compiled=compiled)
        gone = [at for one in self._gone for at in tenants.numbers(one)]
        if (offers.rank < 0).all() or not _may_meet(claim, tenants, offers, gone):
            return None
        return open_pool(tenants, offers, gone)

    def _search(self, job: Job, claim: Claim | None, bench: _Bench, pool: Pool) -> Found | None:
        members = job.members[: job.least]
        limits = (1, None) if job.spread and len(members) > 1 else (None,)
        best: Found | None = None
        for number, rows in enumerate(domains_to_clear(self._desk, job)):
            chosen = bench.narrow(pool, rows)
            for each in limits if not chosen.is_empty else ():
                if self._effort.is_used_up and (best is not None or number):
                    self._was_cut = True
                    break
                self._effort.spend((len(pool.tenants) + bench.rows) // AT_ONCE)
                found = search(
                    members,
                    chosen,
                    bench,
                    claim=claim,
                    most=self._rules.most_victims,
                    each=each,
                    effort=self._effort,
                )
                self._was_cut |= found is None and self._effort.is_used_up
                if found is None:
                    continue
                if best is None or (found.worst, found.cost) < (best.worst, best.cost):
                    best = found
                break
        bench.narrow(pool, None)
        return best

    def _cleared(self, record: JobRecord, found: Found, bench: _Bench) -> Cleared:
        seated = bench.seated if bench.seats(found.victims) else []
        assert seated, "the search has seated them"
        parts: dict[JobId, list[Tenant]] = {}
        for one in found.victims:
            parts.setdefault(one.job, []).append(one)
        victims = tuple(self._victim(record.job, given) for given in parts.values())
        self._census.promise(record.job.id, tuple(seat.seat for seat in seated))
        return Cleared(victims, seated, found.compared, found.next_cost, found.is_bounded)

    def _victim(self, beneficiary: Job, parts: Sequence[Tenant]) -> Evict | Resize:
        """The step for one job that gives up `parts`: it goes on at the width of the last, or is stopped."""
        one, census = parts[-1], self._census
        victim = self._world.jobs[one.job]
        self._gone.add(one.job)
        cost = sum(part.cost for part in parts)
        seats = [seat for part in parts for seat in part.seats]
        if one.keep:
            census.shrink(one, seats)
            was = width_of(victim.job, [grant.placement for grant in self._world.grants[one.job]])
            narrowed = census.narrowed(one)
            return Resize(one.job, victim.attempt, narrowed, beneficiary.id, was, one.keep, cost)
        census.leave(victim.job.queue, victim.asked, seats)
        cause, grace = _cause(one, self._accounts, beneficiary, self._rules), self._rules.grace_ms
        return Evict(one.job, victim.attempt, cause, beneficiary.id, grace, cost)

    def _claim(self, job: Job, charge: Charge) -> Claim | None:
        """The accounts as they are without all who are being stopped."""
        book, accounts = self._census.book, self._accounts
        if book is None or accounts is None:
            return None
        return Claim(book, accounts.leaf(job.queue), charge, reclaim=self._rules.reclaim)


class _Bench:
    """The draft with one job to be seated on it; `seated` is where it last was."""

    def __init__(self, desk: Desk, job: Job) -> None:
        self._desk, self._job = desk, job
        self._last: tuple[tuple[JobId, int], ...] | None = None
        self._rows: I32 | None = None
        self.seated: list[Seated] = []

    @property
    def cells(self) -> Cells:
        """What is free now, on the rows that count."""
        cells = self._desk.placer.board.cells
        if self._rows is None:
            return cells
        inside = np.zeros(cells.kind.shape[0], np.int64)
        inside[self._rows] = 1
        return cells._replace(
            usable=cells.usable * inside.astype(np.uint32),
            idle=cells.idle * inside.astype(np.uint32),
            cpu=cells.cpu * inside,
            host=cells.host * inside,
        )

    def narrow(self, pool: Pool, rows: I32 | None) -> Pool:
        """From now on only `rows` count (None: all); and of `pool` those who hold something there."""
        self._rows = rows
        if rows is None:
            return pool
        return pool.narrowed(pool.tenants.holding_on(rows))

    @property
    def rows(self) -> int:
        """Rows in use."""
        return self._desk.draft.node_count

    @property
    def compiled(self) -> bool:
        """Whether the scorers are compiled, and so may this be."""
        return self._desk.placer.compiled

    def wish(self, request: Request) -> Wish:
        """The shapes that may stand for `request`."""
        return Wish(request, tuple(shape for _, shape in self._desk.memo.options(request)))

    def pick(self, kind: int, free: int, shape: Shape) -> int:
        """The cards that `shape` would take of `free`; wiring decides."""
        assert isinstance(shape.need, Need)
        return self._desk.choose_cards(kind, free, shape.cards, shape.need)

    def seats(self, victims: Sequence[Tenant]) -> bool:
        """Whether all members find seats once `victims` are gone; the draft is as before."""
        asked = tuple((one.job, one.keep) for one in victims)
        if asked == self._last:
            return bool(self.seated)
        mark = self._desk.mark()
        for one in victims:
            for seat in one.seats:
                self._desk.draft.release(seat)
        self._desk.catch_up()
        self.seated, self._last = seat_all(self._desk, self._job) or [], asked
        self._desk.rollback(mark)
        return bool(self.seated)


def _least(job: Job) -> Job:
    """An elastic job at its first width: nobody is stopped to make it faster."""
    return job if job.elastic is None else job.sized(job.elastic.widths[0])


def alike(job: Job) -> tuple[object, ...]:
    """Jobs for which this is equal need, and may have, the same."""
    sited = (job.groups, job.wish)
    return (job.queue, job.priority, job.spot, job.spread, job.minimum, job.members, sited, job.elastic)


def _may_meet(claim: Claim | None, tenants: Tenants, offers: Offers, gone: Sequence[int]) -> bool:
    """Whether quota could allow the start at all, were everybody stopped who is to be had."""
    lack = None if claim is None else claim.lack()
    if claim is None or lack is None:
        return True
    node, slot, missing = lack
    count = np.where(offers.rank >= 0, tenants.count, 0)
    kinds = tenants.kind[list(gone)]
    np.subtract.at(count, kinds[(kinds >= 0) & (offers.rank[kinds] >= 0)], 1)
    there = tenants.helping(claim, (node, slot))[tenants.group_of]
    given = tenants.law(claim.book.tree)[1][tenants.group_of, slot]
    return int((count * given)[there].sum()) >= missing


def _cause(one: Tenant, accounts: Accounts | None, beneficiary: Job, rules: Preemption) -> Cause:
    if one.spot and rules.spot:
        return Cause.SPOT
    if accounts is None or one.leaf == accounts.leaf(beneficiary.queue):
        return Cause.PRIORITY
    return Cause.RECLAIM
