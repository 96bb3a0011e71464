"""What is free on one row, in plain integers that may be scribbled on, and how many members fit there.

A what-if of one row: seats are given back and taken, and the members that then fit are counted, without a
draft and without scores. It says whether there is room, not where a scorer would go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aliquot.core.grants import Seat, bits
from aliquot.core.jobs import Link, Request
from aliquot.core.placement.cells import Cells
from aliquot.core.placement.shapes import Shape
from aliquot.core.units import FULL

Pick = Callable[[int, int, Shape], int]
"""(kind, free cards, shape) -> the cards it would take, 0 where no set of them will do."""


class Wish(NamedTuple):
    """What one member asks, as the shapes that may stand for it."""

    request: Request
    shapes: tuple[Shape, ...]

    @property
    def linked(self) -> bool:
        """Whether enough free cards may still be no set that will do."""
        return self.request.link is Link.REQUIRED and self.request.cards > 1


class Vacancy:
    """One row. `give` and `take` undo each other."""

    __slots__ = ("cpu", "host", "idle", "kind", "left", "usable")

    def __init__(self, cells: Cells, row: int) -> None:
        self.kind = int(cells.kind[row])
        self.usable = int(cells.usable[row])
        self.idle = int(cells.idle[row])
        self.cpu = int(cells.cpu[row])
        self.host = int(cells.host[row])
        self.left: list[list[int]] = cells.left[row].tolist()

    def give(self, seat: Seat) -> None:
        """`seat` is free again."""
        self._shift(seat, 1)

    def take(self, seat: Seat) -> None:
        """`seat` is taken."""
        self._shift(seat, -1)

    def _shift(self, seat: Seat, sign: int) -> None:
        self.cpu += sign * seat.cpu
        self.host += sign * seat.host
        compute, memory, bandwidth = seat.vector
        for card in bits(seat.mask):
            have = self.left[card]
            have[0] += sign * compute
            have[1] += sign * memory
            have[2] += sign * bandwidth
            if have[0] == FULL:
                self.idle |= 1 << card
            else:
                self.idle &= ~(1 << card)


def count_members(room: Vacancy, wish: Wish, most: int, pick: Pick) -> int:
    """How many members fit, at most `most`, all of the same one of the wish's shapes."""
    return max(_count(room, shape, most, pick if wish.linked else None) for shape in wish.shapes)


def lacking(room: Vacancy, wish: Wish, members: int) -> int:
    """Cards that at least have to be cleared, wholly or in part, before `members` fit; at least 1."""
    return max(1, min(_lacking(room, shape, members) for shape in wish.shapes))


def sit(room: Vacancy, wish: Wish, pick: Pick) -> bool:
    """Take a place for one member; False where there is none."""
    for shape in wish.shapes:
        if _count(room, shape, 1, pick if wish.linked else None):
            _take(room, shape, _cards_for(room, shape, pick if wish.linked else None))
            return True
    return False


def _cards_for(room: Vacancy, shape: Shape, pick: Pick | None) -> int:
    """A single slice on the tightest card; several on those that could serve most, so that others fit too."""
    if not shape.cards:
        return 0
    slots = _slots(room, shape)
    free = [card for card, count in enumerate(slots) if count]
    if pick is not None:
        return pick(room.kind, sum(1 << card for card in free), shape)
    if shape.cards == 1:
        return 1 << min(free, key=lambda card: (room.left[card], card))
    return sum(1 << card for card in sorted(free, key=lambda card: (-slots[card], card))[: shape.cards])


def _take(room: Vacancy, shape: Shape, mask: int) -> None:
    ask = shape.ask[room.kind]
    for card in bits(mask):
        have = room.left[card]
        room.left[card] = [
            0 if shape.whole else left - wanted for left, wanted in zip(have, ask, strict=True)
        ]
    room.idle &= ~mask
    room.cpu -= shape.cpu
    room.host -= shape.host


def _count(room: Vacancy, shape: Shape, most: int, pick: Pick | None) -> int:
    kind = room.kind
    if kind < 0 or not shape.eligible[kind]:
        return 0
    if shape.cpu:
        most = min(most, room.cpu // shape.cpu)
    if shape.host:
        most = min(most, room.host // shape.host)
    if most <= 0 or not shape.cards:
        return max(0, most)
    if pick is None and shape.whole:
        return min(most, (shape.eligible[kind] & room.usable & room.idle).bit_count() // shape.cards)
    slots = _slots(room, shape)
    if pick is not None:
        return _count_linked(room, shape, most, slots, pick)
    # members on distinct cards: m of them fit as soon as the cards offer m x cards places, at most m each
    for members in range(min(most, sum(slots) // shape.cards), 0, -1):
        if sum(min(count, members) for count in slots) >= members * shape.cards:
            return members
    return 0


def _count_linked(room: Vacancy, shape: Shape, most: int, slots: list[int], pick: Pick) -> int:
    for members in range(most):
        free = sum(1 << card for card, count in enumerate(slots) if count)
        mask = pick(room.kind, free, shape) if free.bit_count() >= shape.cards else 0
        if not mask:
            return members
        for card in bits(mask):
            slots[card] -= 1
    return most


def _slots(room: Vacancy, shape: Shape) -> list[int]:
    """Per card how many members it could serve."""
    allowed = shape.eligible[room.kind] & room.usable
    if shape.whole:
        free = allowed & room.idle
        return [free >> card & 1 for card in range(len(room.left))]
    ask = shape.ask[room.kind]
    slots = []
    for card, have in enumerate(room.left):
        counts = [part // wanted for part, wanted in zip(have, ask, strict=True) if wanted]
        slots.append(min(counts, default=FULL) if allowed >> card & 1 else 0)
    return slots


def _lacking(room: Vacancy, shape: Shape, members: int) -> int:
    if not shape.cards or room.kind < 0:
        return 0
    slots = _slots(room, shape)
    if shape.whole:
        return shape.cards * members - sum(slots)
    return shape.cards - sum(count > 0 for count in slots)
