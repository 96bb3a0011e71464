"""Quota arithmetic: what a queue may still take, whether a request fits, whether it would borrow.

Small functions over a tiny node interface: a node is a number in a `QueueTree`, its usage a row in a `Book`.
Every function walks one path up, so it costs the tree's depth, not its size. A book counts what was asked,
never what is held, and refuses nothing: what runs is a fact, and a quota lowered below usage evicts no one.

Per node the book keeps `total`, all that it and the nodes below it use, and `drawn`, the part of it that
counts against the node's `shared`: a child's usage counts there only beyond what the child keeps for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from aliquot.core.queueing.overcommit import Excess, Overcommit
from aliquot.core.queueing.tree import ROOT, UNBOUNDED, QueueTree, home_of, overpromised
from aliquot.core.queues import POOL, Resource

Charge = tuple[tuple[int, int], ...]
"""What a request is charged: (resource slot of the tree, amount > 0), slots ascending."""


Step = tuple[int, int, int | None]
"""A node, what it keeps for itself, and what it may draw beyond that from above (None: no limit)."""

UNKNOWN: Final = -1
"""A share nobody has worked out since the node's usage changed."""


class Shortage(NamedTuple):
    """Why a request does not fit: of `resource` it needs `need`, and at `node` only `have` are left."""

    node: int
    resource: Resource
    need: int
    have: int


class Book:
    """Usage of every node. `mark` and `rollback` undo; `copy` is independent."""

    def __init__(self, tree: QueueTree) -> None:
        size = len(tree.resources)
        self.tree = tree
        self.total: list[list[int]] = [[0] * size for _ in tree.names]
        self.drawn: list[list[int]] = [[0] * size for _ in tree.names]
        self.version = 0  # grows at every change
        self.shares: list[int] = [UNKNOWN] * len(tree.names)  # as `share.share_of` worked them out
        self._log: list[tuple[int, Charge]] = []
        self._steps: dict[tuple[int, int], tuple[Step, ...]] = {}

    def copy(self) -> Book:
        """A book that may go its own way."""
        twin = Book.__new__(Book)
        twin.tree, twin.version = self.tree, self.version
        twin.total = [row.copy() for row in self.total]
        twin.drawn = [row.copy() for row in self.drawn]
        twin.shares = self.shares.copy()
        twin._log, twin._steps = [], self._steps
        return twin

    def steps(self, node: int, slot: int) -> tuple[Step, ...]:
        """The path from below the pool down to `node`, as far as one resource goes."""
        key = (node, slot)
        found = self._steps.get(key)
        if found is None:
            tree, path = self.tree, self.tree.paths[node][-2::-1]
            found = self._steps[key] = tuple(
                (
                    at,
                    tree.kept[at][slot],
                    None
                    if tree.headroom[at][slot] >= UNBOUNDED
                    else tree.shared[at][slot] - tree.kept[at][slot] + tree.headroom[at][slot],
                )
                for at in path
            )
        return found

    def mark(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def since(self, mark: int) -> list[tuple[int, Charge]]:
        """What was added since `mark`, oldest first; taken away where amounts are below 0."""
        return self._log[mark:]

    def rollback(self, mark: int) -> None:
        """Undo everything since `mark`; the result is equal to what was."""
        while len(self._log) > mark:
            node, charge = self._log.pop()
            _shift(self, node, charge, -1)

    def settle(self) -> None:
        """What was added so far is not undone any more."""
        self._log.clear()

    def add(self, node: int, charge: Charge) -> None:
        """The leaf `node` uses `charge` more."""
        self._log.append((node, charge))
        _shift(self, node, charge, 1)

    def remove(self, node: int, charge: Charge) -> None:
        """The leaf `node` uses `charge` less; it must have been added before."""
        self.add(node, tuple((slot, -amount) for slot, amount in charge))

    def columns(self) -> npt.NDArray[np.int64]:
        """[2, node, resource] of `total` and `drawn`."""
        shape = (2, len(self.total), len(self.tree.resources))
        return np.array((self.total, self.drawn), np.int64).reshape(shape)


def open_book(tree: QueueTree, usage: Mapping[str, Mapping[Resource, int]]) -> Book:
    """A book with what each queue uses, by name; a queue that is gone counts at the nearest one above it.

    Resources that no quota and no capacity names any more are not counted: nobody limits them.
    """
    book = Book(tree)
    for name in sorted(usage):
        _shift(book, home_of(tree, name), charge_of(tree, usage[name]), 1)
    return book


def charge_of(tree: QueueTree, amounts: Mapping[Resource, int]) -> Charge:
    """`amounts` in the slots of `tree`; what it does not limit is left out."""
    slots = ((tree.slot[resource], amount) for resource, amount in amounts.items() if resource in tree.slot)
    return tuple(sorted((slot, amount) for slot, amount in slots if amount))


def available(book: Book, node: int, slot: int) -> int:
    """What `node` may still take of one resource, borrowing included; never below 0."""
    tree, drawn = book.tree, book.drawn
    root = tree.entitled[ROOT][slot] - book.total[ROOT][slot]
    free = tree.shared[ROOT][slot] - drawn[ROOT][slot]
    for at, kept, limit in book.steps(node, slot):
        unused = kept - drawn[at][slot]
        if limit is not None:
            # of shared 6 and headroom 2 with 5 drawn, 3 are left, 1 of them borrowed at most from above
            free = min(free, limit + unused if unused < 0 else limit)
        free = (free if free > 0 else 0) + (unused if unused > 0 else 0)  # noqa: FURB136 - max() takes longer, and this is asked for all who wait
    return max(0, min(free, root))


def fits(book: Book, node: int, charge: Charge) -> bool:
    """Whether `node` may take all of `charge` now."""
    return all(amount <= available(book, node, slot) for slot, amount in charge)


def find_shortage(book: Book, node: int, charge: Charge) -> Shortage | None:
    """The first resource that `charge` lacks and the lowest node on the path that cannot give it."""
    for slot, amount in charge:
        have = available(book, node, slot)
        if amount > have:
            return Shortage(lacking_node(book, node, slot, have), book.tree.resources[slot], amount, have)
    return None


def lacking_node(book: Book, node: int, slot: int, have: int) -> int:
    """The lowest node on the path of `node` that gives no more of one resource than the `have` available."""
    for at in book.tree.paths[node]:
        if at == ROOT or _own_limit(book, at, slot) <= have:
            return at
    return ROOT


def is_room(book: Book, leaf: int, node: int, slot: int) -> bool:
    """Whether what `node` cannot give `leaf` is a matter of room: the pool lends all it has, all in use.

    Whoever frees machines cures that, and whether some are free is the placer's business. What the pool's own
    nominal forbids though it is there, and what another queue keeps for itself, are limits as at any node.
    """
    tree = book.tree
    if node != ROOT or slot in tree.withheld:
        return False
    kept = tree.entitled[ROOT][slot] - tree.shared[ROOT][slot]
    unused = kept - (book.total[ROOT][slot] - book.drawn[ROOT][slot])
    own = sum(max(0, tree.kept[at][slot] - book.drawn[at][slot]) for at in tree.paths[leaf])
    return unused <= own


def borrows(book: Book, node: int, charge: Charge) -> int:
    """How many levels up `charge` has to reach: 0 within the own nominal, 1 within the parent's, and so on.

    A node is judged only in the resources it has quotas for; one that has none is entitled to nothing.
    """
    tree = book.tree
    for level, at in enumerate(tree.paths[node][:-1]):
        if not _beyond(book, at, charge):
            return level
    return len(tree.paths[node]) - 1


def overdrawn(book: Book) -> list[Shortage]:
    """Nodes that use more than they may (a quota was lowered, capacity was lost): `need` is what they use."""
    tree = book.tree
    found = []
    for node, row in enumerate(book.total):
        for slot, used in enumerate(row):
            most = min(UNBOUNDED, tree.entitled[node][slot] + tree.headroom[node][slot])
            if used > most:
                found.append(Shortage(node, tree.resources[slot], used, most))
    return found


def find_overcommits(book: Book) -> tuple[Overcommit, ...]:
    """All of them: what the pool promises too much first, then who uses too much, parents first."""
    tree = book.tree
    promised = [
        Overcommit(POOL, resource, Excess.PROMISED, has + much, has)
        for resource, much in overpromised(tree).items()
        for has in [tree.entitled[ROOT][tree.slot[resource]]]
    ]
    used = [
        Overcommit(tree.names[over.node], over.resource, Excess.USED, over.need, over.have)
        for over in overdrawn(book)
    ]
    return (*promised, *used)


def concerning(found: Iterable[Overcommit], tree: QueueTree, queue: str) -> tuple[Overcommit, ...]:
    """Those of the pool, of `queue` and of all above it: what jobs of that queue feel."""
    above = {tree.names[node] for node in tree.paths[home_of(tree, queue)]}
    return tuple(over for over in found if over.queue in above)


def _own_limit(book: Book, node: int, slot: int) -> int:
    """What the node itself still allows, whatever those above say."""
    tree = book.tree
    if tree.headroom[node][slot] >= UNBOUNDED:
        return UNBOUNDED
    return max(0, tree.shared[node][slot] + tree.headroom[node][slot] - book.drawn[node][slot])


def _beyond(book: Book, node: int, charge: Charge) -> bool:
    tree, row = book.tree, book.total[node]
    entitled, named = tree.entitled[node], tree.named[node]
    for slot, amount in charge:  # noqa: SIM110 - a generator takes longer, and this is asked for all who wait
        if row[slot] + amount > entitled[slot] and slot in named:
            return True
    return False


def _shift(book: Book, node: int, charge: Charge, sign: int) -> None:
    """Usage up the path. A child that keeps 4 and goes from 3 to 6 draws 2 from its parent."""
    tree, total, drawn, shares = book.tree, book.total, book.drawn, book.shares
    book.version += 1
    path = tree.paths[node]
    for at in path:
        shares[at] = UNKNOWN
    for slot, amount in charge:
        moved = asked = amount * sign
        for at in path:
            total[at][slot] += asked
            row = drawn[at]
            before = row[slot]
            row[slot] = before + moved
            kept = tree.kept[at][slot]
            if kept:
                moved = max(0, before + moved - kept) - max(0, before - kept)
