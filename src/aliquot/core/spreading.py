"""Where the next of several that share no fate goes: to the rack, then the node, that holds fewest of them.

Where some of them leave, they leave the rack, then the node, then the card that holds most.

This goes before the pool's own policy, which chooses among what is left. A node whose rack is not known is a
rack by itself. Rounds are balanced as long as there is room: 8 over three racks of two nodes make 3, 3 and 2,
and on a node 2 at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aliquot.core.domains import Split
from aliquot.core.grants import GrantState, Seat, bits
from aliquot.core.placement.cells import I32, I64
from aliquot.core.records import Frozen


class Kin(NamedTuple):
    """Seats that one more is to be kept apart from: of its own job first, then of copies of that."""

    own: tuple[Seat, ...] = ()
    copies: tuple[Seat, ...] = ()


def fewest_rows(racks: Split, rows: I32, kin: Kin) -> I32:
    """Those of `rows` on the rack, and of these on the node, with fewest of `kin`."""
    home = _homes(racks)
    for number in (home, np.arange(home.shape[0])):
        for seats in kin:
            if seats and rows.shape[0]:
                taken = np.array([seat.row for seat in seats])
                held = np.bincount(number[taken], minlength=int(number.max()) + 1)[number[rows]]
                rows = rows[held == held.min()]
    return rows


def cards_held(row: int, seats: Sequence[Seat]) -> Counter[int]:
    """How many of `seats` are on each card of `row`."""
    return Counter(card for seat in seats if seat.row == row for card in bits(seat.mask))


def keep_order(racks: Split, kin: Kin) -> list[int]:
    """Numbers of the own seats of `kin`, those that stay longest first: however many stay, they are balanced.

    The next to leave is on the rack, and of these on the node and the card, with most of its own, then most
    copies (among which its own may be); of several alike the last.
    """
    home = _homes(racks)
    places = [_places(seat, home) for seat in kin.own]
    mine = Counter(place for each in places for place in each)
    copies = Counter(kin.copies) - Counter(kin.own)
    others = Counter(place for seat in copies.elements() for place in _places(seat, home))
    staying, leaving = list(range(len(places))), list[int]()
    while staying:
        last = max(staying, key=lambda at: ([(mine[place], others[place]) for place in places[at]], at))
        staying.remove(last)
        leaving.append(last)
        mine.subtract(places[last])
    return leaving[::-1]


def copies_standing(world: Frozen) -> dict[str, tuple[Seat, ...]]:
    """Seats of the copies that are to be kept apart, by what they are copies of; not of those being ended."""
    found: dict[str, list[Seat]] = {}
    for name, grants in world.grants.items():
        job = world.jobs[name].job
        if job.spread and job.replica_of:
            seats = [each.seat for each in grants if each.state is not GrantState.TERMINATING]
            found.setdefault(job.replica_of, []).extend(seat for seat in seats if seat is not None)
    return {of: tuple(seats) for of, seats in found.items()}


def _places(seat: Seat, home: I64) -> tuple[tuple[int, ...], ...]:
    """The rack of `seat`, its node, and of its cards the first: of one length where they are of one kind."""
    first = (seat.mask & -seat.mask).bit_length()
    return (int(home[seat.row]),), (seat.row, -1), (seat.row, first, -1)


def _homes(racks: Split) -> I64:
    """[rows] the number of each row's rack; one of its own where that is not known."""
    known = len(racks.names)
    homes: I64 = np.where(racks.number < known, racks.number, known + np.arange(racks.number.shape[0]))
    return homes
