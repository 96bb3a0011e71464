"""Who shares whole cards with whom, and how the booking of a card is divided among them.

Jobs that share are on exactly the same cards: never one card more or less, so a company is one set of jobs on
one set of cards. A job alone books its cards whole. In company the same booking is divided: compute and
bandwidth evenly, which is each one's right and no prediction, memory as each has declared, and the eldest
keeps the rest. So the sum over a company is always the whole card: the ledger is never overbooked, and nobody
else finds room in between, on whose speed no one has a word. Who leaves gives its part to those who stay, at
once; the last one holds the cards whole again, and nothing has to move.

The division follows from the members, their order and what they declared, so every fold comes to the same
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import immutables
from msgspec.structs import replace

from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.slices import Vector

Groups = immutables.Map[JobId, tuple[JobId, ...]]
"""Job -> all who share its cards, itself included, eldest first. A job alone is not in it."""

Held = Mapping[JobId, tuple[Placement, ...]]
"""What each member holds, one placement for each of its own members, eldest job first."""

CardSet = tuple[NodeId, frozenset[CardId]]


class Companies:
    """The groups of one world. `groups` is a snapshot at any time."""

    def __init__(self, groups: Iterable[tuple[JobId, ...]] = ()) -> None:
        self.groups: Groups = immutables.Map({job: group for group in groups for job in group})

    def of(self, job: JobId) -> tuple[JobId, ...]:
        """All on its cards; itself alone where there is nobody else."""
        return self.groups.get(job, (job,))

    def join(self, job: JobId, beside: tuple[JobId, ...]) -> None:
        """`job` comes to those who are there, who are all of a company."""
        self._set((*beside, job))

    def leave(self, job: JobId) -> tuple[JobId, ...]:
        """`job` holds nothing any more; who stays."""
        group = self.groups.get(job)
        if group is None:
            return ()
        self.groups = self.groups.delete(job)
        rest = tuple(other for other in group if other != job)
        self._set(rest)
        return rest

    def listed(self) -> tuple[tuple[JobId, ...], ...]:
        """Every group once, in the order of ids."""
        return tuple(sorted(set(self.groups.values())))

    def _set(self, group: tuple[JobId, ...]) -> None:
        with self.groups.mutate() as groups:
            for job in group:
                if len(group) > 1:
                    groups[job] = group
                elif job in groups:
                    del groups[job]
            self.groups = groups.finish()


def card_set(placement: Placement) -> CardSet:
    """What is compared: the same cards in any order are the same place."""
    return placement.node, frozenset(placement.cards)


def split_card(total: Vector, memories: Sequence[int]) -> tuple[Vector, ...]:
    """`total` of one card for members that declared `memories`, eldest first.

    Worked: 81,559 MiB for 20,000 and 30,000 declared are 51,559 and 30,000, with 500 milli each.
    """
    count = len(memories)
    later = [Vector(total.compute // count, memory, total.bandwidth // count) for memory in memories[1:]]
    taken = [sum(part) for part in zip(*later, strict=True)] or [0, 0, 0]
    eldest = Vector(*(have - gone for have, gone in zip(total, taken, strict=True)))
    return (eldest, *later)


def divide(held: Held, memories: Mapping[JobId, int], left_behind: Iterable[Placement] = ()) -> Held:
    """The placements of all of `held` once its cards' booking is divided among exactly them.

    The booking is what they hold now, a newcomer nothing, and what was `left_behind` by one who went.
    """
    totals: dict[CardSet, Vector] = {}
    for placement in [*(place for places in held.values() for place in places), *left_behind]:
        key = card_set(placement)
        before = totals.get(key, (0, 0, 0))
        totals[key] = Vector(*(have + more for have, more in zip(before, placement.vector, strict=True)))
    alone = len(held) == 1
    parts = {
        key: dict(zip(held, split_card(total, [memories[job] for job in held]), strict=True))
        for key, total in totals.items()
    }
    return {
        job: tuple(replace(place, vector=parts[card_set(place)][job], whole=alone) for place in places)
        for job, places in held.items()
    }
