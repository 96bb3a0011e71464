"""Who goes next: what is compared, and in which sequence.

    tier        system, reserved, within the own nominal, borrowing, spot
    priority    raised by waiting, up to a ceiling
    share       after admission, child against child of one parent (`share.share_after`)
    past        decayed usage by weight, child against child
    size        shorter work first, where the policy says so
    submitted   then the sequence number, then the id

The first two and the last compare any two jobs; share and past compare children of one parent, so the whole
is decided as a tournament over the tree (`queueing.lineup`), not by sorting on one key: inside a queue its
first job stands for it, and inside a queue nothing but tier, priority and time counts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from aliquot.core.ids import JobId
from aliquot.core.queueing.quota import Book, Charge, borrows


class Tier(IntEnum):
    """The first thing compared; the lower goes first. Nothing raises a job from one tier into another."""

    SYSTEM = 0
    RESERVED = 1  # room was made or kept for it
    OWN = 2  # within its queue's nominal
    BORROWING = 3
    SPOT = 4  # takes what nobody else wants


class Aging(NamedTuple):
    """A priority point for every `step_ms` of waiting, up to the priority `ceiling` and no further.

    At the ceiling only submit time counts, so a job with a priority p <= ceiling that has waited
    (ceiling - p) steps is passed only by jobs with a priority above the ceiling. `step_ms` 0: no aging.
    """

    step_ms: int = 0
    ceiling: int = 0


class Waiting(NamedTuple):
    """What the order knows of one waiting job. `tier` is OWN unless fixed: OWN and BORROWING are decided.

    `size` 0: size does not count. `overdue` jobs go before others of their priority in their queue, oldest
    first. Jobs of one `group` are alike in all that decides whether they fit. `in_turn`: its queue is strict,
    so neither size nor being overdue brings it forward or back, and `Lineup.drop` does not pass over it.
    `ways`: a number for the ways to charge it, all that quota sees of what it asks.
    """

    id: JobId
    leaf: int  # of the queue tree
    charge: Charge
    submitted_ms: int
    seq: int
    priority: int = 0
    tier: Tier = Tier.OWN
    size: int = 0
    overdue: bool = False
    group: int = 0
    in_turn: bool = False
    ways: int = 0


Place = tuple[int, int, bool, int, int, int, JobId]
"""A job's place in its own queue: (tier, -priority with aging, not overdue, size, submitted, seq, id)."""

Key = tuple[int, int, int, int, tuple[int, int, int, JobId]]
"""A child's place among its siblings: (tier, -priority, share, past, (size, submitted, seq, id))."""


def aged_priority(priority: int, submitted_ms: int, now: int, aging: Aging) -> int:
    """The priority that counts at `now`."""
    if not aging.step_ms or priority >= aging.ceiling:
        return priority
    return min(aging.ceiling, priority + max(0, now - submitted_ms) // aging.step_ms)


def next_aging(priority: int, submitted_ms: int, now: int, aging: Aging) -> int | None:
    """When `aged_priority` next rises, or None if it never will."""
    if not aging.step_ms or aged_priority(priority, submitted_ms, now, aging) >= aging.ceiling:
        return None
    return submitted_ms + (max(0, now - submitted_ms) // aging.step_ms + 1) * aging.step_ms


def place_in_queue(waiting: Waiting, now: int, aging: Aging) -> Place:
    """Sorts the jobs of one queue: a total order, equal jobs first come first served."""
    priority = aged_priority(waiting.priority, waiting.submitted_ms, now, aging)
    overdue = waiting.overdue or waiting.in_turn
    rest = (waiting.submitted_ms, waiting.seq, waiting.id)
    return (_class_of(waiting), -priority, not overdue, 0 if overdue else waiting.size, *rest)


def size_of(work_ms: int) -> int:
    """A size for `work_ms` (estimate x cards), in quarters of an octave: 1000 and 1020 are of one size.

    From 1 up; unknown work is the caller's to place behind all known.
    """
    bits = max(work_ms, 1).bit_length()
    return 4 * bits + ((max(work_ms, 1) << 2 >> (bits - 1)) & 3)


def tier_of(book: Book, waiting: Waiting) -> Tier:
    """The tier that counts now: fixed, or by whether the queue would have to borrow."""
    if waiting.tier not in {Tier.OWN, Tier.BORROWING}:
        return waiting.tier
    return Tier.BORROWING if borrows(book, waiting.leaf, waiting.charge) else Tier.OWN


def _class_of(waiting: Waiting) -> int:
    """The tier as far as the job itself fixes it: inside a queue OWN and BORROWING are one."""
    return Tier.OWN if waiting.tier is Tier.BORROWING else waiting.tier
