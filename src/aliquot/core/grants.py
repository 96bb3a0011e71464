"""Where something is put, and who holds it.

A `Placement` speaks in identities and goes into steps and events; a `Seat` is the same in rows and bits, for
the columns, and never leaves the core.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache, reduce
from operator import or_
from typing import NamedTuple

import msgspec

from aliquot.core.ids import CardId, GrantId, NodeId
from aliquot.core.slices import Vector

NOTHING = Vector(0, 0, 0)


class Seat(NamedTuple):
    """A place in the columns: row, card bits, what each of those cards gives, host and edge bookings."""

    row: int
    mask: int = 0
    vector: Vector = NOTHING
    whole: bool = False
    cpu: int = 0
    host: int = 0
    numa: tuple[tuple[int, int, int], ...] = ()  # (numa node, milli-cores, MiB)
    edges: tuple[tuple[int, int], ...] = ()  # (edge of the wiring, MB/s)


class Placement(msgspec.Struct, frozen=True, gc=False):
    """What one member of a job gets: a node, cards by UUID, and what each of them gives."""

    node: NodeId
    cards: tuple[CardId, ...] = ()
    vector: Vector = NOTHING
    whole: bool = False
    cpu: int = 0
    host: int = 0
    numa: tuple[tuple[int, int, int], ...] = ()
    edges: tuple[tuple[int, int], ...] = ()


class GrantState(Enum):
    """The one state a grant is in."""

    EARMARKED = "earmarked"  # kept for its holder, not handed over yet
    ASSUMED = "assumed"  # recorded; the engine has not confirmed it
    BOUND = "bound"  # handed over, not yet running
    RUNNING = "running"
    TERMINATING = "terminating"  # its processes are still ending
    ORPHANED = "orphaned"  # names a card or node that is not there


class Grant(msgspec.Struct, frozen=True, gc=False):
    """What one member of one attempt holds.

    `seat` is None while its node is away: nothing is booked. An orphaned grant on a node that is there keeps
    the cards that still are, and its host share, until its processes are proven gone.
    """

    id: GrantId
    state: GrantState
    placement: Placement
    seat: Seat | None


def beyond(new: Sequence[Seat], old: Sequence[Seat]) -> list[Seat]:
    """What `new` takes that `old` does not, by row; cards in both are the same booking, as whole ones are."""
    found = []
    for row in dict.fromkeys(seat.row for seat in new):
        mine = [seat for seat in new if seat.row == row]
        theirs = [seat for seat in old if seat.row == row]
        fresh = _cards(mine) & ~_cards(theirs)
        cpu = sum(seat.cpu for seat in mine) - sum(seat.cpu for seat in theirs)
        host = sum(seat.host for seat in mine) - sum(seat.host for seat in theirs)
        if fresh or cpu > 0 or host > 0:
            vector = mine[0].vector if fresh else NOTHING
            found.append(Seat(row, fresh, vector, bool(fresh), max(0, cpu), max(0, host)))
    return found


def _cards(seats: Sequence[Seat]) -> int:
    return reduce(or_, (seat.mask for seat in seats), 0)


@lru_cache(maxsize=1 << 16)
def bits(mask: int) -> tuple[int, ...]:
    """Indices of the set bits, lowest first."""
    return tuple(at for at in range(mask.bit_length()) if mask >> at & 1)
