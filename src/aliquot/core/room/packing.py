"""How many of several loads find room at once, each whole in one of several bins.

A load and a bin are vectors of amounts; what shares a bin adds up. All of them at once are looked for by
trying, the largest first and each in the bin that it fills most; bins that have the same left are one choice,
and a state that led nowhere is not tried again. The search is bounded: where it ends without an answer, all
are taken to find room, so that whoever says "never" is sure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, TypeAlias

Load: TypeAlias = tuple[int, ...]

MOST_STATES: Final = 2000


def count_packed(loads: Sequence[Load], bins: Sequence[Load]) -> int:
    """Of `loads` how many find room in `bins` at once: all, or as many as the smallest first come to.

    [(5,), (5,)] in [(8,), (4,)] are 1: 5 in the 8, and nowhere else. Where not all find room, less than there
    are, and no more than could be.
    """
    left = Counter(bins)
    search = _Search(sorted(loads, key=_size, reverse=True))
    if search.seats(0, left):
        return len(loads)
    return min(len(loads) - 1, _count_greedily(sorted(loads, key=_size), left))


class _Search:
    """Loads in the order they are tried, and the states that led nowhere."""

    def __init__(self, loads: list[Load]) -> None:
        self._loads = loads
        self._dead: set[tuple[int, frozenset[tuple[Load, int]]]] = set()

    def seats(self, at: int, left: Counter[Load]) -> bool:
        """Whether the loads from `at` on find room in what is left; True as well where that is not sure."""
        if at == len(self._loads) or len(self._dead) >= MOST_STATES:
            return True
        state = (at, frozenset(left.items()))
        if state in self._dead:
            return False
        load = self._loads[at]
        for room in _tightest(load, left):
            if self.seats(at + 1, _taken(left, room, load)):
                return True
        self._dead.add(state)
        return False


def _count_greedily(loads: list[Load], left: Counter[Load]) -> int:
    found = 0
    for load in loads:
        room = next(iter(_tightest(load, left)), None)
        if room is not None:
            left = _taken(left, room, load)
            found += 1
    return found


def _tightest(load: Load, left: Counter[Load]) -> list[Load]:
    """What bins have left that `load` finds room in, the least first."""
    fit = (room for room in left if all(need <= have for need, have in zip(load, room, strict=True)))
    return sorted(fit, key=lambda room: (_size(room), room))


def _taken(left: Counter[Load], room: Load, load: Load) -> Counter[Load]:
    """What is left once `load` is in one of those bins that have `room` left."""
    after = left.copy()
    after[room] -= 1
    if not after[room]:
        del after[room]
    after[tuple(have - need for need, have in zip(load, room, strict=True))] += 1
    return after


def _size(load: Load) -> tuple[int, Load]:
    """By its last amount, of which all loads take some, then by the sum of all."""
    return load[-1], (sum(load), *load)
