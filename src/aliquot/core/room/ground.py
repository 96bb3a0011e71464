"""Rows with what is free on them, the jobs that might be stopped there, and the cheapest way to fit one more.

A job on several nodes is stopped whole: what it holds is given back on all its rows at once. One that can go
on narrower may give up a part (`tenants.Tenant`); whoever takes a part takes those before it. Sets of victims
are compared by the worst rank among them, then by cost in whole card-minutes (nobody leaves a second node to
save a second), by their number, by cards cleared beyond need, and by exact cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.placement.cells import I32, I64, Bool, Cells
from aliquot.core.room.effort import CANDIDATE, LONG_WAY, Effort
from aliquot.core.room.plot import ALIKE_MS, PARTS, Branch, Plot
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.tenants import Pool
from aliquot.core.room.vacancy import Pick, Vacancy, Wish, lacking

if TYPE_CHECKING:
    from aliquot.core.room.quick import Quick

Key = tuple[int, int, int, int, int]
"""(worst rank, cost in minutes, jobs, cards beyond need, cost) of a set of victims."""


Place = tuple[int, int, int, int, int, int, int]
"""A key with tenants before its last part, then the row: rows with few left to take are emptied first."""


class Clearance(NamedTuple):
    """Stop `victims` (numbers of tenants, in this order) and at least one more member fits on `row`."""

    key: Key
    row: int
    victims: tuple[int, ...]
    tenants: int  # of the row, those who could be taken

    @property
    def place(self) -> Place:
        """What clearances of different rows are compared by."""
        return (*self.key[:4], self.tenants, self.key[4], self.row)


class Ground:
    """The rows as they are once the victims taken so far are gone."""

    def __init__(
        self,
        cells: Cells,
        pool: Pool,
        pick: Pick,
        claim: Claim | None,
        effort: Effort,
        *,
        compiled: bool = False,
    ) -> None:
        self.cells, self.tenants = cells, pool.tenants
        self._all = pool.tenants
        self.claim, self.pick, self.effort, self.compiled = claim, pick, effort, compiled
        self.taken: dict[int, None] = {}
        self.barred: set[int] = set()
        self.was_cut = False  # a search within a row ran out of its bound
        self._rank, self._right = pool.rank, pool.right_of
        self._on: dict[int, list[int]] = {}
        self._rooms: dict[int, Vacancy] = {}
        self._quick: Quick | None = None
        if compiled:
            from aliquot.core.room.quick import Quick

            self._quick = Quick(self, pool.rank, pool.right_of)

    @property
    def candidates(self) -> list[int]:
        """All who were to be had when nobody was taken."""
        found: list[int] = np.flatnonzero(self._rank >= 0).tolist()
        return found

    @property
    def changed(self) -> list[int]:
        """Rows that may not be as they were any more."""
        return list(self._rooms)

    @property
    def open(self) -> Bool:
        """[tenants] whether each could still be taken."""
        found: Bool = self._rank >= 0
        found[[*self.taken, *self.barred]] = False
        return found

    def entries(self) -> tuple[I64, I64, I64]:
        """(row, tenant, cards there) of those."""
        return self.tenants.entries(self.open)

    def rank_of(self, at: int) -> int:
        """Of a tenant; the smaller goes first, -1: not to be had."""
        return int(self._rank[at])

    def ranks(self, at: I64 | slice) -> I64:
        """Of several."""
        found: I64 = self._rank[at]
        return found

    def place_of(self, at: int) -> tuple[int, int]:
        """The first row where a tenant holds something, and its place among those there."""
        row = min(seat.row for seat in self._all[at].seats)
        return row, self.tenants.on(row).index(at)

    def by_quota(self, groups: npt.NDArray[np.bool_]) -> Iterator[int]:
        """Candidates of `groups`, by rank and by cost per quota that they give back; the later first."""
        tenants = self.tenants
        (found,) = np.nonzero((self._rank >= 0) & np.append(groups[tenants.group_of], False)[tenants.kind])
        return tenants.by_quota(found, self._rank[found])

    def open_on(self, row: int) -> list[int]:
        """Who could still be taken on `row`."""
        return [at for at in self._had_on(row) if at not in self.taken and at not in self.barred]

    def room(self, row: int) -> Vacancy:
        """What is free on `row`."""
        if row not in self._rooms:
            self._rooms[row] = Vacancy(self.cells, row)
        return self._rooms[row]

    def take(self, victims: Iterable[int]) -> int | None:
        """Stop all of `victims`, or none: then the first that may not be stopped any more."""
        victims = tuple(victims)
        refused = self._claimed(victims)
        if refused is None:
            for at in victims:
                self.give(at)
                self._note(at)
        return refused

    def bar(self, at: int) -> None:
        """A tenant is not to be had any more."""
        self.barred.add(at)
        if self._quick is not None:
            self._quick.shut(at)

    def bare(self, row: int) -> tuple[I64, I32]:
        """[usable, idle, cpu, host] of a row, and what is left on its cards."""
        room, cells = self._rooms.get(row), self.cells
        if room is None:
            bare = [cells.usable[row], cells.idle[row], cells.cpu[row], cells.host[row]]
            return np.array(bare, np.int64), cells.left[row]
        bare = [room.usable, room.idle, room.cpu, room.host]
        return np.array(bare, np.int64), np.array(room.left, np.int32)

    def may_take(self, at: int) -> bool:
        """Note in the claim that one more is stopped; False where that is not allowed any more.

        Of a job in parts it is asked whether all that it then has given up might be taken at once.
        """
        one, before = self._all[at], self.tenants.before.get(at, -1)
        if self.claim is None:
            return True
        right = Right(int(self._right[self.tenants.kind[at]]))
        if before < 0:
            return self.claim.take(one.leaf, one.charge, right)
        mark = self.claim.mark()
        self.claim.give_back(one.leaf, self._all[before].charge)
        if self.claim.take(one.leaf, one.charge, right):
            return True
        self.claim.rollback(mark)
        return False

    def with_those_before(self, at: int) -> tuple[int, ...]:
        """`at` and the parts of its job to be taken before it, in order; none where one can't be."""
        found: list[int] = []
        while at >= 0 and at not in self.taken:
            if self.rank_of(at) < 0 or at in self.barred:
                return ()
            found.append(at)
            at = self.tenants.before.get(at, -1)
        return tuple(reversed(found))

    def is_held(self, at: int) -> bool:
        """Whether a part that comes after `at` is taken, so that it can't be spared."""
        return self.tenants.has_parts and self.tenants.after(at) in self.taken

    def spare(self, at: int) -> None:
        """A victim is not stopped after all."""
        del self.taken[at]
        if self._quick is not None:
            self._quick.shut(at, is_open=at not in self.barred)
        self.give(at, back=True)
        if self.claim is not None:
            self.claim.give_back(self._all[at].leaf, self._all[at].given)

    def restop(self, at: int) -> None:
        """It is stopped nevertheless."""
        self._note(at)
        self.give(at)
        if self.claim is not None:
            self.claim.book.remove(self._all[at].leaf, self._all[at].given)

    def give(self, at: int, *, back: bool = False) -> None:
        """Free all seats of a tenant on the rooms, or take them again."""
        for seat in self._all[at].seats:
            room = self.room(seat.row)
            (room.take if back else room.give)(seat)

    def permits(self, victims: Iterable[int]) -> bool:
        """Whether all of `victims` may be stopped, one after the other."""
        if self.claim is None:
            return True
        mark = self.claim.mark()
        refused = self._claimed(victims)
        self.claim.rollback(mark)
        return refused is None

    def key(self, victims: Sequence[int], lack: int) -> Key:
        """What `victims` are compared by, where `lack` cards have to be cleared."""
        cost = sum(self._all[at].cost for at in victims)
        beyond = max(0, sum(seat.mask.bit_count() for at in victims for seat in self._all[at].seats) - lack)
        worst = max((self.rank_of(at) for at in victims), default=-1)
        return (worst, cost // ALIKE_MS, self.jobs_of(victims), beyond, cost)

    def jobs_of(self, victims: Iterable[int]) -> int:
        """Jobs of which something is taken."""
        return sum(at not in self.tenants.before for at in victims)

    def clear_one(self, row: int, wish: Wish, members: int) -> Clearance | None:
        """The cheapest set that lets `members` in all fit on `row`, where fewer do now; None where none does.

        In order of rank and cost until they fit, then whoever turns out to be unneeded is spared, then better
        sets are looked for within a bound. The room is left as it was.
        """
        many = LONG_WAY if wish.linked or self.tenants.has_parts else 1
        self.effort.spend(1 + CANDIDATE * many * int(self.tenants.roll.count[row]))
        if self._quick is not None and not wish.linked:
            known = self._quick.clear(self, row, wish, members)
            if known is not None:
                return self._clearance(row, wish, members, *known)
        room, lack = self.room(row), lacking(self.room(row), wish, members)
        case = Plot(self, row, room, wish, members)
        pool = self._pool(case, row, lack)
        chosen = case.first_fit(pool)
        if chosen is None:
            return None
        worst = max(case.rank(at) for at in chosen)
        pool = [at for at in pool if case.rank(at) <= worst]
        if len(pool) > len(chosen):
            branch = Branch(case, pool, chosen, lack)
            chosen = branch.best
            self.was_cut |= branch.left == 0
        victims = case.victims(chosen)
        return Clearance(self.key(victims, lack), row, victims, len(self.open_on(row)))

    def _note(self, at: int) -> None:
        self.taken[at] = None
        if self._quick is not None:
            self._quick.shut(at)

    def _clearance(
        self, row: int, wish: Wish, members: int, victims: tuple[int, ...], was_cut: bool
    ) -> Clearance | None:
        if not victims:
            return None
        self.was_cut |= was_cut
        lack = lacking(self._rooms.get(row) or Vacancy(self.cells, row), wish, members)
        return Clearance(self.key(victims, lack), row, victims, len(self.open_on(row)))

    def shift(self, at: int, row: int, sign: int) -> None:
        """Free (1) or take again (-1) what a tenant holds on one row."""
        room = self.room(row)
        for seat in self._all[at].seats:
            if seat.row == row:
                (room.give if sign > 0 else room.take)(seat)

    def cards_on(self, at: int, row: int) -> int:
        """Cards of `row` that a tenant holds, wholly or in part; at least 1."""
        return sum(seat.mask.bit_count() for seat in self._all[at].seats if seat.row == row) or 1

    def rows_of(self, victims: Iterable[int]) -> list[int]:
        """Where they hold something."""
        return list(dict.fromkeys(seat.row for at in victims for seat in self._all[at].seats))

    def _had_on(self, row: int) -> list[int]:
        if row not in self._on:
            self._on[row] = [at for at in self.tenants.on(row) if self.rank_of(at) >= 0]
        return self._on[row]

    def _pool(self, case: Plot, row: int, lack: int) -> list[int]:
        def place(at: int) -> tuple[object, ...]:
            one = self._all[at]
            needed = min(lack, self.cards_on(at, row))
            late = (-one.submitted[0], -one.submitted[1], one.job)
            return (case.rank(at), case.cost(at) * PARTS // needed, *late)

        return case.in_order(sorted(case.items(), key=place))

    def _claimed(self, victims: Iterable[int]) -> int | None:
        """Stop `victims` in the claim; the first that is refused, with the claim as before."""
        if self.claim is None:
            return None
        mark = self.claim.mark()
        for at in victims:
            if not self.may_take(at):
                self.claim.rollback(mark)
                return at
        return None
