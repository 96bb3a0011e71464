"""Room for one member, or for several alike on as many rows as it takes, by stopping others.

Members alike meet only through rows, so a set of victims is enough as soon as the rows together have places
for all of them. Rows are cleared member by member, the cheapest next; a row once begun has fewer tenants left
and is preferred among equals, so whole nodes are emptied and not single cards all over the site.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

import numpy as np

from aliquot.core.room.ground import Clearance, Ground
from aliquot.core.room.prospects import count_places, find_prospects, open_rows
from aliquot.core.room.vacancy import Wish, count_members, sit

COMPARED: Final = 16
"""Rows worked out for one member even where the first is surely the best, to say what others cost."""

ROWS: Final = 512
"""Rows worked out for one member, those that promise most first; then the best so far has to do."""

GANG_ROWS: Final = 4096
"""Rows worked out for a gang."""

_PARTS: Final = 5040


class _Offer(NamedTuple):
    """A clearance and how many places it gives, in all rows; offers sort by price."""

    price: tuple[int, ...]
    clearance: Clearance
    gained: int


class Gathering:
    """Places for `wanted` members of `wish` on `ground`, at most `each` of them on one row."""

    def __init__(self, ground: Ground, rows: int, wish: Wish, wanted: int, each: int) -> None:
        self._ground, self._rows, self._wish = ground, rows, wish
        self.wanted, self._cap, self._each = wanted, each, min(each, wanted)
        self.was_cut = False
        # sets that were worked out, and what the next best costs; of several members, parts of sets, and the
        # set with its dearest part swapped for the next best
        self.compared = 0
        self.rival: int | None = None
        self._places: dict[int, int] = {}
        self.places = 0
        self._is_sure = False  # as all were there when nobody had been taken, they are whoever is
        self._count_all()

    @property
    def is_done(self) -> bool:
        """Whether all members have a place."""
        return self.places >= self.wanted

    def run(self, most: int) -> bool:
        """Take victims until all members have a place; False where they never will, or with over `most`."""
        if self.is_done:
            return True
        most_rows = ROWS if self.wanted == 1 else GANG_ROWS
        found = find_prospects(self._ground, self._rows, self._wish, most_rows + 1)
        if self.wanted == 1:
            return self._clear_best([(place[:-1], place[-1]) for place in found], most)
        return self._clear_many([place[-1] for place in found], most)

    def more(self, most: int) -> bool:
        """One place more than was thought to be enough."""
        self.wanted += 1
        self._each = min(self._cap, self.wanted)
        self._count_all()
        return self.run(most)

    def recount(self, at: int) -> None:
        """Count the places again where tenant `at` holds something."""
        if self._is_sure:
            return
        for row in self._ground.rows_of([at]):
            self._recount(row)

    def settle(self) -> None:
        """Take the places for the members, cleared rows first, so that others see what is left."""
        left = self.wanted
        cleared = self._ground.rows_of(self._ground.taken)
        others = sorted(row for row, count in self._places.items() if count and row not in cleared)
        for row in (*cleared, *others):
            for _ in range(min(left, self._places.get(row, 0))):
                left -= sit(self._ground.room(row), self._wish, self._ground.pick)

    def _count_all(self) -> None:
        """Places on all rows: at one go as they were, singly where something was taken or given since.

        Where nothing was, no more are counted than are wanted: whoever is stopped, these stay.
        """
        ground = self._ground
        enough = self._rows * self._each if ground.changed else self.wanted
        how = (self._rows, self._wish, self._each, enough)
        counts = count_places(ground.cells, *how, compiled=ground.compiled)
        if counts is None:
            rows = dict.fromkeys((*open_rows(ground.cells, self._rows, self._wish), *self._places))
        else:
            found = np.flatnonzero(counts)
            self._places = dict(zip(found.tolist(), counts[found].tolist(), strict=True))
            self.places = sum(self._places.values())
            rows = {}
        changed = ground.changed
        for row in (*rows, *changed):
            self._recount(row)
        self._is_sure = self.is_done and not changed

    def _clear_best(self, found: list[tuple[tuple[int, ...], int]], most: int) -> bool:
        """For one member: the best row; those further down the list can't be better."""
        best: Clearance | None = None
        rivals: dict[frozenset[int], int] = {}
        for number, (least, row) in enumerate(found):
            if best is not None and number >= COMPARED and (*least, row) >= best.place:
                break
            if number == ROWS or (number >= COMPARED and self._ground.effort.is_used_up):
                self.was_cut = True
                break
            clearance = self._ground.clear_one(row, self._wish, 1)
            if clearance is None or len(clearance.victims) > most:
                continue
            rivals.setdefault(frozenset(clearance.victims), clearance.key[4])
            if best is None or clearance.place < best.place:
                best = clearance
        if best is None:
            return False
        self.compared = len(rivals)
        del rivals[frozenset(best.victims)]
        self.rival = min(rivals.values(), default=None)
        self._ground.take(best.victims)
        self._count_again(best.victims)
        return self.is_done

    def _is_over(self) -> bool:
        """As `is_done`, which may have changed since it was last asked."""
        return self.is_done

    def _clear_many(self, found: list[int], most: int) -> bool:
        """For several: the clearance with the least cost per member, again and again."""
        self.was_cut |= len(found) > GANG_ROWS
        heap: list[_Offer] = []
        for row in found[:GANG_ROWS]:
            if self._ground.effort.is_used_up and len(heap) >= 2 * self.wanted + COMPARED:
                self.was_cut = True
                break
            offer = self._offer(row)
            if offer is not None:
                heap.append(offer)
        heapify(heap)
        newest = {offer.clearance.row: offer for offer in heap}
        parts: list[int] = []
        while not self.is_done and heap:
            offer = heappop(heap)
            row, victims = offer.clearance.row, offer.clearance.victims
            if newest.get(row) is not offer:
                continue
            changed = [row]
            if self._price(offer.clearance, offer.gained) > offer.price:
                pass  # fewer places are left to fill than it gives
            elif not any(at in self._ground.taken or at in self._ground.barred for at in victims):
                if len(self._ground.taken) + len(victims) > most:
                    return False
                refused = self._ground.take(victims)
                if refused is None:
                    parts.append(offer.clearance.key[4])
                    changed = self._count_again(victims)
                else:
                    self._ground.bar(refused)
            for at in changed:
                newest.pop(at, None)
                again = None if self._is_over() else self._offer(at)
                if again is not None:
                    newest[at] = again
                    heappush(heap, again)
        spare = min((offer for offer in heap if newest.get(offer.clearance.row) is offer), default=None)
        if spare is not None and parts:
            self.rival = sum(parts) - max(parts) + spare.clearance.key[4]
        return self.is_done

    def _offer(self, row: int) -> _Offer | None:
        """The next clearance of `row`."""
        places = self._places_on(row)
        if places >= self._each:
            return None
        clearance = self._ground.clear_one(row, self._wish, places + 1)
        if clearance is None:
            return None
        self.compared += 1
        gained = self._gained(clearance)
        return _Offer(self._price(clearance, gained), clearance, gained)

    def _price(self, clearance: Clearance, gained: int) -> tuple[int, ...]:
        """What it costs per member that gains a place, as it sorts."""
        used = max(1, min(gained, self.wanted - self.places))
        worst, minutes, jobs, beyond, tenants, cost, row = clearance.place
        each = (part * _PARTS // used for part in (minutes, jobs, beyond))
        return (worst, *each, tenants, cost, row)

    def _gained(self, clearance: Clearance) -> int:
        """Places that come free, on all rows where the victims hold something; at least 1."""
        rows = self._ground.rows_of(clearance.victims)
        if len(rows) == 1 and self._each == 1:
            return 1
        before = sum(self._places_on(row) for row in rows)
        for at in clearance.victims:
            self._ground.give(at)
        gained = sum(self._fitting(row) for row in rows) - before
        for at in clearance.victims:
            self._ground.give(at, back=True)
        return max(1, gained)

    def _count_again(self, victims: tuple[int, ...]) -> list[int]:
        rows = self._ground.rows_of(victims)
        for row in rows:
            self._recount(row)
        return rows

    def _places_on(self, row: int) -> int:
        if row not in self._places:
            self._recount(row)
        return self._places[row]

    def _recount(self, row: int) -> None:
        now = self._fitting(row)
        self.places += now - self._places.get(row, 0)
        self._places[row] = now

    def _fitting(self, row: int) -> int:
        return count_members(self._ground.room(row), self._wish, self._each, self._ground.pick)
