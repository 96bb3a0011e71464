"""Who is stopped so that a job can start: the cheapest set found of which nobody could be spared.

One member goes on one row. Rows are compared by the worst rank among their victims, then by cost in whole
minutes of a card, by how many are stopped, by cards cleared beyond need, and by how few tenants that could be
stopped are left: single cards are taken from one node until it is empty. Several members take the cheapest
clearance next, wherever it is. In the end whoever turns out to be unneeded is spared, latest taken first.

Where a quota is lacking too, those who hold it are stopped, on whatever row they are.

It is a search with bounds, and what it has found when they are reached still is a valid set; `is_bounded`
says so. Whether a set truly lets all members in is asked of the `Bench`, which seats them by the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from aliquot.core.jobs import Request
from aliquot.core.placement.cells import Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.room.effort import Effort
from aliquot.core.room.gathering import Gathering
from aliquot.core.room.ground import Ground
from aliquot.core.room.lodgers import Tenant
from aliquot.core.room.plot import ALIKE_MS
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.tenants import Pool
from aliquot.core.room.vacancy import Wish

TRIES: Final = 64
"""How often members are seated for real to see who can be spared, where counting places can't tell."""

EXTRA: Final = 4
"""Places taken beyond what counting asks for, where the policy's own seats need more."""


class Bench(Protocol):
    """The draft, as far as the search needs it."""

    @property
    def cells(self) -> Cells:
        """What is free now."""

    @property
    def rows(self) -> int:
        """Rows in use."""

    @property
    def compiled(self) -> bool:
        """Whether compiled loops may be used."""

    def wish(self, request: Request) -> Wish:
        """The shapes that may stand for `request`."""

    def pick(self, kind: int, free: int, shape: Shape) -> int:
        """The cards of `free` that `shape` would take on a node of `kind`, 0 where none will do."""

    def seats(self, victims: Sequence[Tenant]) -> bool:
        """Whether all members find seats once `victims` are gone."""


class Found(NamedTuple):
    """`victims` as they were taken. `compared` sets were worked out; `next_cost`: of the best other."""

    victims: tuple[Tenant, ...]
    compared: int
    next_cost: int | None
    is_bounded: bool
    worst: int  # the largest rank among the victims, -1 where there are none

    @property
    def cost(self) -> int:
        """What is lost, in ms of one whole card."""
        return sum(one.cost for one in self.victims)


def search(
    members: Sequence[Request],
    pool: Pool,
    bench: Bench,
    *,
    claim: Claim | None = None,
    most: int = 512,
    each: int | None = None,
    effort: Effort | None = None,
) -> Found | None:
    """Victims out of `pool` that let all `members` start; None where no set of up to `most` was found.

    `claim` is the account of quotas, left as it is (None: there are none). `each`: members one row may take.
    `effort`: what may still be looked at; what was found when it is used up has to do.
    """
    narrow = None if claim is None else _helpful(pool, claim)
    for right in _rights(pool, claim):
        found: list[Found] = []
        for chosen in (pool,) if narrow is None else (narrow, pool):
            allowed = chosen.of_kinds(chosen.right_of <= right)
            if allowed.is_empty:
                continue
            account = None if claim is None else claim.up_to(right)
            mark = 0 if account is None else account.mark()
            attempt = _Attempt(members, allowed, bench, account, most, each, effort or Effort())
            if attempt.run():
                found.append(attempt.result())
            if account is not None:
                account.rollback(mark)
        if found:
            return _best_of(found)
    return None


_SPOT: Final = int(Right.SPOT)  # an enumerated number beside an array costs more than the comparison


def _rights(pool: Pool, claim: Claim | None) -> list[Right]:
    """By which rights victims are looked for; the last only where that could change anything."""
    if claim is None:
        return [Right.RANK]
    tenants = pool.tenants
    others = (tenants.leaf_of[tenants.group_of] != claim.leaf) & (pool.right_of != _SPOT)
    matters = np.append(others, False)[tenants.kind] & (pool.rank >= 0)
    return [Right.RANK, Right.LAST] if matters.any() else [Right.RANK]


def _best_of(found: Sequence[Found]) -> Found:
    """The best, with what the others show."""
    best = min(found, key=_order)
    others = [other.cost for other in found if other is not best and set(other.victims) != set(best.victims)]
    costs = [cost for cost in (best.next_cost, *others) if cost is not None]
    return best._replace(
        compared=sum(one.compared for one in found),
        next_cost=min(costs, default=None),
        is_bounded=any(one.is_bounded for one in found),
    )


def _helpful(pool: Pool, claim: Claim) -> Pool | None:
    """Those who hold the quota that is lacking; None where none is lacking, or all or nobody does."""
    lack = claim.lack()
    if lack is None:
        return None
    narrow = pool.of_kinds(pool.tenants.helping(claim, lack[:2])[pool.tenants.group_of])
    return None if narrow.is_empty or (narrow.rank == pool.rank).all() else narrow


def _order(found: Found) -> tuple[int, ...]:
    return (found.worst, found.cost // ALIKE_MS, len({one.job for one in found.victims}), found.cost)


class _Attempt:
    """One search among given candidates."""

    def __init__(
        self,
        members: Sequence[Request],
        pool: Pool,
        bench: Bench,
        claim: Claim | None,
        most: int,
        each: int | None,
        effort: Effort,
    ) -> None:
        self._bench, self._claim, self._most = bench, claim, most
        self._start = 0 if claim is None else claim.mark()
        self._ground = Ground(bench.cells, pool, bench.pick, claim, effort, compiled=bench.compiled)
        self._groups = _groups(members)
        self._each = len(members) + EXTRA if each is None else each
        self._gatherings: list[Gathering] = []
        self._was_cut = False

    def run(self) -> bool:
        """Whether a set was found."""
        counted = self._gather()
        if not counted and not self._take_all():
            return False
        if not self._meet_quota():
            return False
        counted = counted and len(self._groups) == 1
        if counted:
            self._spare(self._counts)
        if not self._seat_truly(counted=counted) or len(self._ground.taken) > self._most:
            return False
        return self._claim is None or self._is_lasting(self._claim)

    def result(self) -> Found:
        """The set, once `run` has found one."""
        compared = sum(gathering.compared for gathering in self._gatherings)
        next_cost = self._gatherings[0].rival if len(self._gatherings) == 1 else None
        cut = self._was_cut or self._ground.was_cut or any(one.was_cut for one in self._gatherings)
        worst = max((self._ground.rank_of(at) for at in self._ground.taken), default=-1)
        return Found(tuple(self._victims()), max(compared, 1), next_cost, cut, worst)

    def _victims(self) -> list[Tenant]:
        return [self._ground.tenants[at] for at in self._ground.taken]

    def _gather(self) -> bool:
        """Places for all members, the largest first."""
        for at, (request, count) in enumerate(self._groups):
            gathering = Gathering(
                self._ground, self._bench.rows, self._bench.wish(request), count, self._each
            )
            self._gatherings.append(gathering)
            if not gathering.run(self._most):
                return False
            if at + 1 < len(self._groups):
                gathering.settle()
        return True

    def _meet_quota(self) -> bool:
        """Stop further jobs, on whatever row, until the quota allows the start."""
        claim, ground = self._claim, self._ground
        lack = None if claim is None else claim.lack()
        while claim is not None and lack is not None:
            before, lack = lack, self._give_quota(claim, lack)
            if lack is not None and lack[:2] == before[:2]:
                return False
        return len(ground.taken) <= self._most

    def _give_quota(self, claim: Claim, lack: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """Stop those who hold some of `lack`, until it is something else that is lacking; what is, then."""
        ground, now = self._ground, lack
        for at in ground.by_quota(ground.tenants.helping(claim, lack[:2])):
            one = ground.tenants[at]
            parts = ground.with_those_before(at)
            if not parts or not claim.helps(one.leaf, one.given) or ground.take(parts) is not None:
                continue
            for part in parts:
                self._recount(part)
            found = claim.lack()
            if found is None or found[:2] != lack[:2]:
                return found
            now = found
        return now

    def _spare(self, is_enough: Callable[[], bool], tries: int | None = None) -> None:
        """Spare whoever is not needed, latest taken first; with `tries` at most so many are asked about."""
        for number, at in enumerate(reversed(list(self._ground.taken))):
            if number == tries:
                self._was_cut = True
                return
            if self._ground.is_held(at):
                continue
            self._ground.spare(at)
            self._recount(at)
            if not is_enough():
                self._ground.restop(at)
                self._recount(at)

    def _counts(self) -> bool:
        return self._gatherings[0].is_done and (self._claim is None or self._claim.is_met())

    def _seats(self) -> bool:
        return (self._claim is None or self._claim.is_met()) and self._bench.seats(self._victims())

    def _recount(self, at: int) -> None:
        for gathering in self._gatherings:
            gathering.recount(at)

    def _seat_truly(self, *, counted: bool) -> bool:
        """Seat the members by the policy; where counting promised too much, clear a little more."""
        seated = self._bench.seats(self._victims())
        exact = seated and counted
        for _ in range(EXTRA):
            if seated or not all(gathering.more(self._most) for gathering in self._gatherings):
                break
            seated = self._bench.seats(self._victims())
        if not seated and self._take_all():
            seated = self._bench.seats(self._victims())
        if seated and not exact:
            self._spare(self._seats, TRIES)
        return seated

    def _take_all(self) -> bool:
        """Take all who may be stopped, so that seats decide who has to be; False where they are many."""
        ground = self._ground
        if len(ground.candidates) > TRIES:
            return False
        for at in sorted(ground.candidates, key=lambda at: (ground.rank_of(at), ground.place_of(at))):
            parts = self._ground.with_those_before(at)
            if parts and self._ground.take(parts) is None:
                for part in parts:
                    self._recount(part)
        return True

    def _is_lasting(self, claim: Claim) -> bool:
        """Whether all may be stopped without those spared since, and none could take back what it lost.

        Those nearest in the tree go first: they decide whether the beneficiary's side borrows at all.
        """
        claim.rollback(self._start)
        for at in sorted(self._ground.taken, key=lambda at: claim.distance(self._ground.tenants[at].leaf)):
            if not self._ground.may_take(at):
                return False
        asked = {(one.leaf, one.charge) for one in self._victims() if not one.spot and not one.keep}
        return not any(claim.returns(leaf, charge) for leaf, charge in sorted(asked))


def _groups(members: Sequence[Request]) -> list[tuple[Request, int]]:
    """Members alike with their number, the largest first; those alike in size keep their order."""
    counts: dict[Request, int] = {}
    for request in members:
        counts[request] = counts.get(request, 0) + 1
    return sorted(counts.items(), key=lambda entry: _size(entry[0]), reverse=True)


def _size(request: Request) -> tuple[int, int, int]:
    return (request.cards, request.cpu_milli, request.host_mib)
