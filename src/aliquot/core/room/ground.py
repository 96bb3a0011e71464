"""Rows with what is free on them, the jobs that might be stopped there, and the cheapest way to fit one more.

A job on several nodes is stopped whole: what it holds is given back on all its rows at once. One that can go
on narrower may give up a part (`tenants.Tenant`); whoever takes a part takes those before it. Sets of victims
are compared by the worst rank among them, then by cost in whole card-minutes (nobody leaves a second node to
save a second), by their number, by cards cleared beyond need, and by exact cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from aliquot.core.placement.cells import I64, Cells
from aliquot.core.room.plot import ALIKE_MS, PARTS, Branch, Plot
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.tenants import Pool
from aliquot.core.room.vacancy import Pick, Vacancy, Wish, lacking

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

    def __init__(self, cells: Cells, pool: Pool, pick: Pick, claim: Claim | None) -> None:
        self.cells, self.tenants = cells, pool.tenants
        self._all = pool.tenants.all
        self.claim, self.pick = claim, pick
        self.taken: dict[int, None] = {}
        self.barred: set[int] = set()
        self.was_cut = False  # a search within a row ran out of its bound
        self.rank: list[int] = pool.rank.tolist()
        self._right: list[int] = pool.right.tolist()
        self._on: dict[int, list[int]] = {}
        self._rooms: dict[int, Vacancy] = {}

    @property
    def candidates(self) -> list[int]:
        """All who were to be had when nobody was taken."""
        return [at for at, rank in enumerate(self.rank) if rank >= 0]

    @property
    def changed(self) -> list[int]:
        """Rows that may not be as they were any more."""
        return list(self._rooms)

    def entries(self) -> tuple[I64, I64, I64]:
        """(row, tenant, cards there) of those who could still be taken."""
        row, at, cards = self.tenants.entries
        is_open = np.array(self.rank) >= 0
        is_open[[*self.taken, *self.barred]] = False
        keep = is_open[at]
        return row[keep], at[keep], cards[keep]

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
                self.taken[at] = None
        return refused

    def may_take(self, at: int) -> bool:
        """Note in the claim that one more is stopped; False where that is not allowed any more.

        Of a job in parts it is asked whether all that it then has given up might be taken at once.
        """
        one, before = self._all[at], self.tenants.before[at]
        if self.claim is None:
            return True
        if before < 0:
            return self.claim.take(one.leaf, one.charge, Right(self._right[at]))
        mark = self.claim.mark()
        self.claim.give_back(one.leaf, self._all[before].charge)
        if self.claim.take(one.leaf, one.charge, Right(self._right[at])):
            return True
        self.claim.rollback(mark)
        return False

    def with_those_before(self, at: int) -> tuple[int, ...]:
        """`at` and the parts of its job to be taken before it, in order; none where one can't be."""
        found: list[int] = []
        while at >= 0 and at not in self.taken:
            if self.rank[at] < 0 or at in self.barred:
                return ()
            found.append(at)
            at = self.tenants.before[at]
        return tuple(reversed(found))

    def is_held(self, at: int) -> bool:
        """Whether a part that comes after `at` is taken, so that it can't be spared."""
        return at + 1 in self.taken and self.tenants.before[at + 1] == at

    def spare(self, at: int) -> None:
        """A victim is not stopped after all."""
        del self.taken[at]
        self.give(at, back=True)
        if self.claim is not None:
            self.claim.give_back(self._all[at].leaf, self._all[at].given)

    def restop(self, at: int) -> None:
        """It is stopped nevertheless."""
        self.taken[at] = None
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
        worst = max((self.rank[at] for at in victims), default=-1)
        return (worst, cost // ALIKE_MS, self.jobs_of(victims), beyond, cost)

    def jobs_of(self, victims: Iterable[int]) -> int:
        """Jobs of which something is taken."""
        return sum(self.tenants.before[at] < 0 for at in victims)

    def clear_one(self, row: int, wish: Wish, members: int) -> Clearance | None:
        """The cheapest set that lets `members` in all fit on `row`, where fewer do now; None where none does.

        In order of rank and cost until they fit, then whoever turns out to be unneeded is spared, then better
        sets are looked for within a bound. The room is left as it was.
        """
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
            self._on[row] = [at for at in self.tenants.on(row) if self.rank[at] >= 0]
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
