"""Which nodes the cards of resized jobs are on: who keeps its size keeps its cards, the others sit together.

Cards of a node are alike here and counted, not named. A changed job goes on one node where it fits, on the
one where least is left; a wider one on whole empty nodes first, beginning with its own; what is left over is
scattered over the nodes with most free cards, which is slow but better than waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.core.errors import SpecError

Seats = tuple[tuple[int, int], ...]
"""(node, cards) of a job, nodes rising."""


def seat_jobs(capacity: Sequence[int], held: Sequence[Seats], cards: Sequence[int]) -> tuple[Seats, ...]:
    """Seats of every job with `cards` (0: none) on nodes of `capacity`, given what each job has `held`.

    Raises SpecError where more cards are given out than there are.
    """
    if sum(cards) > sum(capacity):
        raise SpecError("more cards given out than there are", field="cards", value=sum(cards))
    free = list(capacity)
    seats: list[Seats] = [()] * len(cards)
    changed = []
    for at, (old, count) in enumerate(zip(held, cards, strict=True)):
        if count and sum(part for _, part in old) == count:
            seats[at] = old
            for node, part in old:
                free[node] -= part
        elif count:
            changed.append(at)
    for at in sorted(changed, key=lambda at: (-cards[at], at)):
        seats[at] = _sit(free, capacity, cards[at], {node for node, _ in held[at]})
    return tuple(seats)


def _sit(free: list[int], capacity: Sequence[int], count: int, own: set[int]) -> Seats:
    taken: dict[int, int] = {}
    while count:
        fits = [node for node, room in enumerate(free) if room >= count]
        whole = [node for node, room in enumerate(free) if 0 < room == capacity[node]]
        if fits:
            node = min(fits, key=lambda node: (free[node], node not in own, node))
        elif whole:
            node = min(whole, key=lambda node: (-free[node], node not in own, node))
        else:
            node = min(range(len(free)), key=lambda node: (-free[node], node not in own, node))
        part = min(free[node], count)
        taken[node] = part
        free[node] -= part
        count -= part
    return tuple(sorted(taken.items()))
