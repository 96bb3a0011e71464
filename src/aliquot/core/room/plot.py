"""One row on which jobs could be stopped, and the cheapest set of them that lets members fit there.

In order of rank and cost until they fit; then whoever turns out to be unneeded is spared, and better sets are
looked for by branch and bound, within a bound of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from aliquot.core.room.vacancy import Vacancy, Wish, count_members, lacking

if TYPE_CHECKING:
    from aliquot.core.room.ground import Ground

ALIKE_MS: Final = 60_000
"""Costs within one such step are alike: a card for a minute."""

NODES: Final = 300
"""Partial sets looked at for one row before the best found so far has to do."""

PARTS: Final = 5040  # divisible by up to ten cards, so that costs per card compare as integers


class Plot:
    """One row and the members that are to fit on it.

    What may be taken on it are items: a tenant that holds something here, with those before it that do not.
    """

    def __init__(self, ground: Ground, row: int, room: Vacancy, wish: Wish, members: int) -> None:
        self.ground, self.row = ground, row
        self._room, self._wish, self._members = room, wish, members
        self._bundle: dict[int, tuple[int, ...]] = {}
        self.before: dict[int, int] = {}  # of an item: the one that has to be taken before it
        if ground.tenants.has_parts:
            self._find_bundles()

    @property
    def fits(self) -> bool:
        """Whether they do, as the room is."""
        return count_members(self._room, self._wish, self._members, self.ground.pick) >= self._members

    @property
    def lack(self) -> int:
        """Cards still to be cleared."""
        return lacking(self._room, self._wish, self._members)

    def items(self) -> list[int]:
        """Who may be taken here."""
        here = self.ground.open_on(self.row)
        return [at for at in here if at in self._bundle] if self.ground.tenants.has_parts else here

    def cost(self, item: int) -> int:
        """Of an item with those before it."""
        every = self.ground.tenants
        return sum(every[at].cost for at in self._bundle[item]) if self._bundle else every[item].cost

    def rank(self, item: int) -> int:
        """The worst of an item and all those before it."""
        rank = self.ground.rank_of
        if not self._bundle:
            return rank(item)
        worst = max(rank(at) for at in self._bundle[item])
        return max(worst, self.rank(self.before[item])) if item in self.before else worst

    def victims(self, items: Sequence[int]) -> tuple[int, ...]:
        """All that is taken with `items`, parts of one job in their order."""
        if not self._bundle:
            return tuple(items)
        return tuple(dict.fromkeys(at for item in items for at in self._bundle[item]))

    def in_order(self, items: Sequence[int]) -> list[int]:
        """`items` as they are, but none before the one that has to be taken before it."""
        if not self.before:
            return list(items)
        placed: dict[int, None] = {}
        for item in items:
            at, chain = item, []
            while at >= 0 and at not in placed:
                chain.append(at)
                at = self.before.get(at, -1)
            placed.update(dict.fromkeys(reversed(chain)))
        return list(placed)

    def free(self, at: int) -> None:
        """Without a tenant."""
        self.ground.shift(at, self.row, 1)

    def unfree(self, at: int) -> None:
        """With it again."""
        self.ground.shift(at, self.row, -1)

    def first_fit(self, pool: Sequence[int]) -> list[int] | None:
        """Of `pool` in order as many as it takes, less those not needed in the end."""
        claim = self.ground.claim
        chosen: list[int] = []
        mark = 0 if claim is None else claim.mark()
        fits = False
        for at in pool:
            if self.before.get(at, at) not in (at, *chosen) or not self._may_take(at):
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
            if self.before and any(self.before.get(other) == at for other in needed):
                continue
            self.unfree(at)
            if self.fits:
                needed.remove(at)
            else:
                self.free(at)
        return needed

    def _may_take(self, item: int) -> bool:
        ground, claim = self.ground, self.ground.claim
        if not self._bundle or claim is None:
            return ground.may_take(item)
        mark = claim.mark()
        for at in self._bundle[item]:
            if not ground.may_take(at):
                claim.rollback(mark)
                return False
        return True

    def _find_bundles(self) -> None:
        here = set(self.ground.open_on(self.row))
        for item in self.ground.open_on(self.row):
            parts = self.ground.with_those_before(item)
            if not parts:
                continue
            earlier = [at for at in parts[:-1] if at in here]
            if earlier:
                self.before[item] = earlier[-1]
                parts = parts[parts.index(earlier[-1]) + 1 :]
            self._bundle[item] = parts


class Branch:
    """Better sets than a first one on one row, by branch and bound."""

    def __init__(self, case: Plot, pool: Sequence[int], first: list[int], lack: int) -> None:
        self._case, self._ground, self._lack = case, case.ground, lack
        self._cost = {at: case.cost(at) for at in pool}
        self._cards = {at: self._ground.cards_on(at, case.row) for at in pool}
        self._pool = case.in_order(sorted(pool, key=self._each))
        self.best, self._key = first, self._ground.key(case.victims(first), lack)[1:]
        self.left = NODES
        self._descend(0, [], 0)

    def _each(self, at: int) -> int:
        return self._cost[at] * PARTS // self._cards[at]

    def _descend(self, at: int, chosen: list[int], cost: int) -> None:
        if self.left == 0:
            return
        self.left -= 1
        if chosen and self._case.fits:
            self._note(chosen)
            return
        if at == len(self._pool) or not self._promises(at, chosen, cost):
            return
        one = self._pool[at]
        if self._case.before.get(one, one) in (one, *chosen):
            self._case.free(one)
            self._descend(at + 1, [*chosen, one], cost + self._cost[one])
            self._case.unfree(one)
        self._descend(at + 1, chosen, cost)

    def _promises(self, at: int, chosen: list[int], cost: int) -> bool:
        """Whether a set that goes on from here could be better: cards at the least price that is left."""
        lack, rest = self._case.lack, self._pool[at:]
        if self._case.before:
            rest = sorted(rest, key=self._each)
            jobs = self._ground.jobs_of(self._case.victims(chosen))
        else:
            jobs = len(chosen) - (-lack // max(self._cards[one] for one in rest))
        for one in rest:
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
        victims = self._case.victims(needed)
        key = self._ground.key(victims, self._lack)[1:]
        if key < self._key and self._ground.permits(victims):
            self.best, self._key = needed, key
