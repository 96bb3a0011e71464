"""Rows with what is free on them, the jobs that might be stopped there, and the cheapest way to fit one more.

A job on several nodes is stopped whole: what it holds is given back on all its rows at once. Sets of victims
are compared by the worst rank among them, then by cost in whole card-minutes (nobody leaves a second node to
save a second), by their number, by cards cleared beyond need, and by exact cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.placement.cells import I64, Cells
from aliquot.core.room.reclaim import Claim, Right
from aliquot.core.room.tenants import Pool
from aliquot.core.room.vacancy import Pick, Vacancy, Wish, count_members, lacking

ALIKE_MS: Final = 60_000
"""Costs within one such step are alike: a card for a minute."""

NODES: Final = 300
"""Partial sets looked at for one row before the best found so far has to do."""

_PARTS: Final = 5040  # divisible by up to ten cards, so that costs per card compare as integers

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
        """Note in the claim that one more is stopped; False where that is not allowed any more."""
        one = self._all[at]
        return self.claim is None or self.claim.take(one.leaf, one.charge, Right(self._right[at]))

    def spare(self, at: int) -> None:
        """A victim is not stopped after all."""
        del self.taken[at]
        self.give(at, back=True)
        if self.claim is not None:
            self.claim.give_back(self._all[at].leaf, self._all[at].charge)

    def restop(self, at: int) -> None:
        """It is stopped nevertheless."""
        self.taken[at] = None
        self.give(at)
        if self.claim is not None:
            self.claim.book.remove(self._all[at].leaf, self._all[at].charge)

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
        return (worst, cost // ALIKE_MS, len(victims), beyond, cost)

    def clear_one(self, row: int, wish: Wish, members: int) -> Clearance | None:
        """The cheapest set that lets `members` in all fit on `row`, where fewer do now; None where none does.

        In order of rank and cost until they fit, then whoever turns out to be unneeded is spared, then better
        sets are looked for within a bound. The room is left as it was.
        """
        room, lack = self.room(row), lacking(self.room(row), wish, members)
        pool = self._pool(row, lack)
        case = _Row(self, row, room, wish, members)
        chosen = case.first_fit(pool)
        if chosen is None:
            return None
        worst = max(self.rank[at] for at in chosen)
        pool = [at for at in pool if self.rank[at] <= worst]
        if len(pool) > len(chosen):
            branch = _Branch(case, pool, chosen, lack)
            chosen = branch.best
            self.was_cut |= branch.left == 0
        return Clearance(self.key(chosen, lack), row, tuple(chosen), len(self.open_on(row)))

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

    def _pool(self, row: int, lack: int) -> list[int]:
        def place(at: int) -> tuple[object, ...]:
            one = self._all[at]
            needed = min(lack, self.cards_on(at, row))
            late = (-one.submitted[0], -one.submitted[1], one.job)
            return (self.rank[at], one.cost * _PARTS // needed, *late)

        return sorted(self.open_on(row), key=place)

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


class _Row:
    """One row and the members that are to fit on it."""

    def __init__(self, ground: Ground, row: int, room: Vacancy, wish: Wish, members: int) -> None:
        self.ground, self.row = ground, row
        self._room, self._wish, self._members = room, wish, members

    @property
    def fits(self) -> bool:
        """Whether they do, as the room is."""
        return count_members(self._room, self._wish, self._members, self.ground.pick) >= self._members

    @property
    def lack(self) -> int:
        """Cards still to be cleared."""
        return lacking(self._room, self._wish, self._members)

    def free(self, at: int) -> None:
        """Without a tenant."""
        self.ground.shift(at, self.row, 1)

    def unfree(self, at: int) -> None:
        """With it again."""
        self.ground.shift(at, self.row, -1)

    def first_fit(self, pool: Sequence[int]) -> list[int] | None:
        """Of `pool` in order as many as it takes, less those not needed in the end."""
        claim, chosen = self.ground.claim, []
        mark = 0 if claim is None else claim.mark()
        fits = False
        for at in pool:
            if not self.ground.may_take(at):
                continue
            self.free(at)
            chosen.append(at)
            fits = self.fits
            if fits:
                break
        if claim is not None:
            claim.rollback(mark)
        needed = self.fill_back(chosen) if fits else chosen
        for at in needed:
            self.unfree(at)
        return needed if fits else None

    def fill_back(self, chosen: Sequence[int]) -> list[int]:
        """`chosen`, all freed and enough, less those not needed; latest first. The others stay freed."""
        needed = list(chosen)
        for at in reversed(chosen):
            self.unfree(at)
            if self.fits:
                needed.remove(at)
            else:
                self.free(at)
        return needed


class _Branch:
    """Better sets than a first one on one row, by branch and bound."""

    def __init__(self, case: _Row, pool: Sequence[int], first: list[int], lack: int) -> None:
        self._case, self._ground, self._lack = case, case.ground, lack
        self._cost = {at: self._ground.tenants.all[at].cost for at in pool}
        self._cards = {at: self._ground.cards_on(at, case.row) for at in pool}
        self._pool = sorted(pool, key=lambda at: self._cost[at] * _PARTS // self._cards[at])
        self.best, self._key = first, self._ground.key(first, lack)[1:]
        self.left = NODES
        self._descend(0, [], 0)

    def _descend(self, at: int, chosen: list[int], cost: int) -> None:
        if self.left == 0:
            return
        self.left -= 1
        if chosen and self._case.fits:
            self._note(chosen)
            return
        if at == len(self._pool) or not self._promises(at, len(chosen), cost):
            return
        one = self._pool[at]
        self._case.free(one)
        self._descend(at + 1, [*chosen, one], cost + self._cost[one])
        self._case.unfree(one)
        self._descend(at + 1, chosen, cost)

    def _promises(self, at: int, jobs: int, cost: int) -> bool:
        """Whether a set that goes on from here could be better: cards at the least price that is left."""
        lack = self._case.lack
        largest = max(self._cards[one] for one in self._pool[at:])
        jobs += -(-lack // largest)
        for one in self._pool[at:]:
            used = min(lack, self._cards[one])
            cost += self._cost[one] * used // self._cards[one]
            lack -= used
            if not lack:
                return (cost // ALIKE_MS, jobs, 0, cost) < self._key
        return False

    def _note(self, chosen: list[int]) -> None:
        needed = self._case.fill_back(chosen)
        for at in chosen:
            if at not in needed:
                self._case.free(at)
        key = self._ground.key(needed, self._lack)[1:]
        if key < self._key and self._ground.permits(needed):
            self.best, self._key = needed, key
