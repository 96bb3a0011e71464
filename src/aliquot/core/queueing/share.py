"""Who has had the most beyond its own: the dominant share of a node, level by level.

A queue within its nominal has share 0, whatever it uses. Beyond, its share is the largest part, over the
resources it is judged in, of what its parent can lend, divided by its weight. Comparing children of one
parent by their share *after* admission is hierarchical dominant resource fairness with lending.

Shares are integers (billionths), so they compare the same on every machine. `queueing.filling` divides an
amount; this module only compares.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.queueing.quota import Book, Charge
from aliquot.core.queueing.tree import UNBOUNDED
from aliquot.core.queues import FULL_WEIGHT

BILLION: Final = 10**9
NO_END: Final = 2**62
"""The share of a node that takes more than its own without any claim to it: weight 0, or nothing is lent."""


def share_after(book: Book, node: int, charge: Charge) -> int:
    """The share of `node` once `charge` is added somewhere below it, in billionths per weight of 1.

    With nominal 4, usage 6 and 2 asked, of 12 the parent can lend, weight 2: (8 - 4) / 12 / 2 = 0.1667.
    """
    tree = book.tree
    above = tree.parent[node]
    if above < 0:
        return 0
    used, entitled, lendable = book.total[node], tree.entitled[node], tree.reach[above]
    asked = dict(charge)
    weight = tree.weight[node]
    largest = 0
    for slot in tree.named[node]:
        beyond = used[slot] + asked.get(slot, 0) - entitled[slot]
        if beyond <= 0 or lendable[slot] >= UNBOUNDED:
            continue
        if not weight or not lendable[slot]:
            return NO_END
        largest = max(largest, beyond * BILLION * FULL_WEIGHT // (lendable[slot] * weight))
    return largest


def share_of(book: Book, node: int) -> int:
    """The share of `node` now."""
    return share_after(book, node, ())


def dominant_part(book: Book, node: int) -> int:
    """The largest part of the pool, over all its resources, that `node` uses now, in billionths."""
    pool = book.tree.reach[0]
    parts = [
        used * BILLION // most
        for used, most in zip(book.total[node], pool, strict=True)
        if 0 < most < UNBOUNDED
    ]
    return max(parts, default=0)
