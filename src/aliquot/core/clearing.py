"""Room made for a waiting job by stopping others: who they are, what it costs, and where the job then sits.

It answers and changes nothing: the draft is as before, and what it finds is booked and kept by the planner.
Within one plan nobody is offered twice, and whoever is being stopped already counts as gone from its queue.

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
from aliquot.core.linking import Need
from aliquot.core.placement.cells import Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.queueing.quota import Book, Charge, charge_of
from aliquot.core.queueing.tree import QueueTree, home_of
from aliquot.core.records import Asked, Frozen, JobRecord
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.vacancy import Wish
from aliquot.core.room.victims import Candidate, Found, rank_of, search, victim_cost
from aliquot.core.seating import seat_all
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Cause, Evict

_HELD: Final = (GrantState.RUNNING, GrantState.BOUND, GrantState.ASSUMED)


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
        self._tenants: list[_Tenant] | None = None
        self._leaving: list[
            tuple[str, tuple[Asked, ...]]
        ] = []  # (queue, what it is charged) of who is stopped
        self._gone: set[JobId] = set()
        self._in_vain: set[tuple[object, ...]] = set()

    def bar(self, job: JobId) -> None:
        """`job` is not to be stopped in this plan: it was moved, and sits where the world does not know."""
        self._gone.add(job)

    def clear(self, record: JobRecord, flavour: Flavour | None = None) -> Cleared | None:
        """How to let the job of `record` start, charged as `flavour`; None: it can't.

        Without a `flavour` the first does by which it can. No victims where there is room already.
        """
        if flavour is not None:
            return self._clear(record, flavour)
        flavours = (Flavour("", ()),) if self._accounts is None else self._accounts.flavours(record.job)
        found = (self._clear(record, flavour) for flavour in flavours)
        return next((cleared for cleared in found if cleared is not None), None)

    def _clear(self, record: JobRecord, flavour: Flavour) -> Cleared | None:
        job = narrowed(record.job, flavour.model)
        bench = _Bench(self._desk, job)
        claim = self._claim(job, flavour.charge)
        if (claim is None or claim.is_met()) and bench.seats(()):
            return Cleared((), bench.seated)
        alike = (job.queue, job.priority, job.spot, job.spread, job.minimum, job.members, flavour)
        if job.spot or alike in self._in_vain:
            return None
        found = self._search(job, claim, bench)
        if found is None:
            self._in_vain.add(alike)
            return None
        return self._cleared(record, found, bench)

    def _search(self, job: Job, claim: Claim | None, bench: _Bench) -> Found | None:
        candidates = self._candidates(job, claim)
        if not candidates:
            return None
        members = job.members[: job.least]
        limits = (1, None) if job.spread and len(members) > 1 else (None,)
        for each in limits:
            found = search(members, candidates, bench, claim=claim, most=self._rules.most_victims, each=each)
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
            self._leaving.append((victim.job.queue, victim.asked))
            cause = _cause(one, self._accounts, record.job)
            victims.append(
                Evict(one.job, victim.attempt, cause, record.job.id, self._rules.grace_ms, one.cost)
            )
        return Cleared(tuple(victims), seated, found.compared, found.next_cost, found.is_bounded)

    def _claim(self, job: Job, charge: Charge) -> Claim | None:
        """The accounts as they are without all who are being stopped."""
        if self._accounts is None:
            return None
        self._scan()
        claim = Claim(
            self._accounts.book, self._accounts.leaf(job.queue), charge, reclaim=self._rules.reclaim
        )
        for queue, asked in self._leaving:
            claim.book.remove(self._accounts.leaf(queue), self._accounts.charge(asked))
        return claim

    def _candidates(self, job: Job, claim: Claim | None) -> list[Candidate]:
        """Who may be stopped for `job`, in a fixed order."""
        found = []
        rights: dict[tuple[int, Charge], tuple[Right, int] | None] = {}
        own = -1 if self._accounts is None else self._accounts.leaf(job.queue)
        by_priority = self._rules.lower_priority and self._desk.settings.by_priority
        for one in self._scan():
            if one.job in self._gone:
                continue
            right, share = None, 0
            if one.spot and self._rules.spot:
                right = Right.SPOT
            elif claim is None or one.leaf == own:
                right = Right.RANK if by_priority and one.priority < job.priority else None
            else:
                key = (one.leaf, one.charge)
                if key not in rights:
                    rights[key] = claim.right(*key)
                if (known := rights[key]) is not None:
                    right, share = known
            if right is not None:
                rank = rank_of(right, share, one.priority)
                found.append(
                    Candidate(one.job, rank, one.cost, one.seats, one.leaf, one.charge, right, one.submitted)
                )
        return found

    def _scan(self) -> list[_Tenant]:
        """All who may be stopped for somebody, in the order of rows; worked out once."""
        if self._tenants is None:
            self._tenants = []
            for job_id in _residents(self._world):
                record = self._world.jobs[job_id]
                if record.evicting is not None:
                    self._leaving.append((record.job.queue, record.asked))
                    continue
                cost = victim_cost(record, self._now, self._rules)
                seats = None if cost is None else _free_seats(self._desk, self._world.grants[job_id])
                if cost is not None and seats:
                    self._tenants.append(_tenant(record, cost, seats, self._accounts))
        return self._tenants


class _Tenant(NamedTuple):
    """A running job that somebody could stop."""

    job: JobId
    cost: int
    seats: tuple[Seat, ...]
    spot: bool
    priority: int
    submitted: tuple[int, int]
    leaf: int
    charge: Charge


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

    def seats(self, victims: Sequence[Candidate]) -> bool:
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


def _tenant(record: JobRecord, cost: int, seats: tuple[Seat, ...], accounts: _Accounts | None) -> _Tenant:
    job = record.job
    leaf = 0 if accounts is None else accounts.leaf(job.queue)
    charge: Charge = () if accounts is None else accounts.charge(record.asked)
    return _Tenant(job.id, cost, seats, job.spot, job.priority, (job.submitted_ms, job.seq), leaf, charge)


def _residents(world: Frozen) -> Iterator[JobId]:
    """Jobs that hold something, in the order of rows and of arrival there."""
    seen: set[JobId] = set()
    for row in range(world.rows):
        for held in world.residents.get(row, ()):
            if held.job not in seen:
                seen.add(held.job)
                yield held.job


def _free_seats(desk: Desk, grants: Iterable[Grant]) -> tuple[Seat, ...] | None:
    """What would be free without `grants`; None where it is not sure that they would be."""
    seats = []
    for grant in grants:
        if grant.seat is None or grant.state not in _HELD:
            return None
        if desk.draft.can_release(grant.seat):
            seats.append(grant.seat)
    return tuple(seats)


def _cause(one: Candidate, accounts: _Accounts | None, beneficiary: Job) -> Cause:
    if one.right is Right.SPOT:
        return Cause.SPOT
    if accounts is None or one.leaf == accounts.leaf(beneficiary.queue):
        return Cause.PRIORITY
    return Cause.RECLAIM
