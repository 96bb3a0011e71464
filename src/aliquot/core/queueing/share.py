"""Who has had the most beyond its own: the dominant share of a node, level by level.

A queue within its nominal has share 0, whatever it uses. Beyond, its share is the largest part, over the
resources it is judged in, of what its parent can lend, divided by its weight. Comparing children of one
parent by their share *after* admission is hierarchical dominant resource fairness with lending.

Where the pool has less than it promised, not even nominals can be had in full, and within them children are
compared by the part of its nominal that each has.

Shares are integers (billionths), so they compare the same on every machine.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.queueing.quota import UNKNOWN, Book, Charge
from aliquot.core.queueing.tree import ROOT, UNBOUNDED, QueueTree
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
    weight = tree.weight[node]
    largest = 0
    for slot in tree.named[node]:
        beyond = used[slot] - entitled[slot]
        for at, amount in charge:
            if at == slot:
                beyond += amount
        if beyond <= 0 or lendable[slot] >= UNBOUNDED:
            continue
        if not weight or not lendable[slot]:
            return NO_END
        largest = max(largest, beyond * BILLION * FULL_WEIGHT // (lendable[slot] * weight))
    return largest


def rank_after(book: Book, node: int, charge: Charge) -> int:
    """What siblings that wait are compared by once `charge` is added below `node`, in billionths.

    `share_after`, and in a scarce pool before that the part of its nominal that `node` then has, up to all of
    it: the same part of every nominal is met, whatever the weights and however a queue is cut up. With 8 of
    16 cards left, nominals of 12 and 4 get 6 and 2.
    """
    tree = book.tree
    share = share_after(book, node, charge)
    if not tree.scarce or node == ROOT:
        return share
    asked, used, entitled = dict(charge), book.total[node], tree.entitled[node]
    named = tree.named[node]
    part = 0
    for slot in [slot for slot in named if slot in tree.scarce] or named:
        have = used[slot] + asked.get(slot, 0)
        part = max(part, min(BILLION, have * BILLION // entitled[slot]) if entitled[slot] else BILLION)
    return min(NO_END, part + share)


def past_weight(tree: QueueTree, node: int) -> int:
    """What past usage of `node` is divided by: its weight; in a scarce pool its part of what is promised.

    Weights are about what is left over, and there is nothing left. Nominals 12 and 4: 750,000 and 250,000.
    """
    promised = [
        tree.entitled[node][slot] * 10**6 // sum(tree.entitled[top][slot] for top in tree.children[ROOT])
        for slot in tree.scarce
    ]
    return max(promised, default=0) or tree.weight[node]


def share_of(book: Book, node: int) -> int:
    """The share of `node` now; the book keeps it until the usage of `node` changes."""
    found = book.shares[node]
    if found == UNKNOWN:
        found = book.shares[node] = share_after(book, node, ())
    return found
