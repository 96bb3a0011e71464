"""Whose work may be stopped for whom, where queues have quotas.

Reclaim follows two rules, looked at where the two queues' paths meet. There the beneficiary's side and the
victim's side are children of one parent:

    own         the beneficiary's side is within its nominal even once it has started: it may take from a side
                that borrows, as long as that borrows
    fair        both borrow: a job may go if its side still has at least the share without it that the
                beneficiary's side has after starting
    last        both borrow: a job may go if its side has more with it than the beneficiary's side after
                starting, and still has its nominal without it. Only where nothing else helps

Every queue between the victim and that side has to borrow too, so a queue within its nominal loses nothing.
A queue borrows where it draws more than is shared there: what its children keep back and leave idle is not
lent to it, nor to anybody, though it is promised it in all. Of 8, of which one child keeps 3, the other may
hold 5 that nobody can ask back.
The larger of the two shares falls with every fair or last reclaim, and no side is left with less than its own
by a borrower: so what was taken cannot be taken back. `returns` looks again, at whole sets.

A `Claim` is asked one victim after the other, since each changes what its queue has beyond its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from aliquot.core.queueing.quota import UNKNOWN, Book, Charge, available, is_room, lacking_node
from aliquot.core.queueing.share import NO_END, share_after, share_of
from aliquot.core.queueing.tree import QueueTree


class Right(IntEnum):
    """By what right a job is stopped; the lower is used first."""

    SPOT = 0  # it took what nobody else wanted
    RANK = 1  # lower priority in one queue, or reclaim by the rules `own` and `fair`
    LAST = 2  # the rule `last`


class Claim:
    """What one beneficiary, of `leaf` and charged `charge`, may take.

    Works on `book`; whoever tries something goes back to a `mark` of it.
    """

    def __init__(
        self, book: Book, leaf: int, charge: Charge, *, reclaim: bool = True, most: Right | None = None
    ) -> None:
        self.book = book
        self.leaf, self.charge = leaf, charge
        self.reclaims, self.most = reclaim, Right.LAST if most is None else most

    def up_to(self, most: Right) -> Claim:
        """The same by rights up to `most`, on the same book."""
        return Claim(self.book, self.leaf, self.charge, reclaim=self.reclaims, most=most)

    def right(self, leaf: int, charge: Charge) -> tuple[Right, int] | None:
        """(right, share of its side) by which a job of another `leaf` could be stopped now; None: it may not.

        In the own leaf it's priority alone that decides, which is not known here.
        """
        if leaf == self.leaf:
            return Right.RANK, 0
        if not self.reclaims:
            return None
        return reclaim_right(self.book, (self.leaf, self.charge), (leaf, charge))

    def open_leaves(self, below: Below) -> Iterator[int]:
        """Other leaves of those `below` from which something could be had; perhaps too many."""
        return open_leaves(self.book, (self.leaf, self.charge), below) if self.reclaims else iter(())

    def take(self, leaf: int, charge: Charge, right: Right) -> bool:
        """Stop a job if there is a right to after all that were stopped before; False changes nothing."""
        if right is not Right.SPOT:
            now = self.right(leaf, charge)
            if now is None or now[0] > self.most:
                return False
        self.book.remove(leaf, charge)
        return True

    def give_back(self, leaf: int, charge: Charge) -> None:
        """A job is not stopped after all."""
        self.book.add(leaf, charge)

    def mark(self) -> int:
        """A point to go back to."""
        return self.book.mark()

    def rollback(self, mark: int) -> None:
        """Back to `mark`."""
        self.book.rollback(mark)

    def is_met(self) -> bool:
        """Whether the beneficiary's quota allows it to start."""
        return self.lack() is None

    def helps(self, leaf: int, charge: Charge) -> bool:
        """Whether stopping a job of `leaf` gives some of what is lacking now."""
        lack = self.lack()
        if lack is None:
            return False
        node, slot, _ = lack
        return node in self.book.tree.paths[leaf] and any(at == slot for at, _ in charge)

    def distance(self, leaf: int) -> int:
        """Levels up from the beneficiary's queue to the first node above both; 0 in its own."""
        path, there = self.book.tree.paths[self.leaf], self.book.tree.paths[leaf]
        return next(level for level, node in enumerate(path) if node in there)

    def returns(self, leaf: int, charge: Charge) -> bool:
        """Whether a stopped job of `leaf` could reclaim from the beneficiary once that has started."""
        if leaf == self.leaf:
            return False
        mark = self.book.mark()
        self.book.add(self.leaf, self.charge)
        back = reclaim_right(self.book, (leaf, charge), (self.leaf, self.charge))
        self.book.rollback(mark)
        return back is not None

    def lack(self) -> tuple[int, int, int] | None:
        """(node, slot, how much) is lacking first; what is a matter of room is none of it."""
        book, leaf = self.book, self.leaf
        for slot, amount in self.charge:
            have = available(book, leaf, slot)
            if amount > have:
                node = lacking_node(book, leaf, slot, have)
                if not is_room(book, leaf, node, slot):
                    return node, slot, amount - have
        return None


def reclaim_right(
    book: Book, taker: tuple[int, Charge], loser: tuple[int, Charge]
) -> tuple[Right, int] | None:
    """(right, share of the loser's side) by which `taker` may stop a running job of `loser`, or None."""
    tree = book.tree
    mine, theirs = sides(tree, taker[0], loser[0])
    if not _is_borrowing(book, loser, theirs, [slot for slot, _ in taker[1]]):
        return None
    before = share_of(book, theirs)
    if _is_within(book, taker, mine):
        return Right.RANK, before
    after = share_after(book, mine, taker[1])
    without = share_after(book, theirs, tuple((slot, -amount) for slot, amount in loser[1]))
    if without >= before and before < NO_END:
        return None
    if without >= after and after < NO_END:
        return Right.RANK, before
    return (Right.LAST, before) if before > after and _keeps_its_own(book, loser, theirs) else None


Below = Mapping[int, Sequence[int]]
"""Leaves, by each node above them and by themselves."""


def below_of(tree: QueueTree, leaves: Iterable[int]) -> dict[int, list[int]]:
    """`leaves` as `Below`."""
    below: dict[int, list[int]] = {}
    for leaf in leaves:
        for node in tree.paths[leaf]:
            below.setdefault(node, []).append(leaf)
    return below


def open_leaves(book: Book, taker: tuple[int, Charge], below: Below) -> Iterator[int]:
    """Those of the leaves `below` from which `taker` could have something, whatever it is charged there.

    Most queues have nothing beyond their own, and where both sides borrow nothing goes from the smaller share
    to the larger. Both are seen without a look at jobs; perhaps too many are given, never too few.
    """
    tree, shares, (mine, charge) = book.tree, book.shares, taker
    slots = [slot for slot, _ in charge]
    for above in tree.paths[mine][1:]:
        is_within, least = _is_within(book, taker, mine), -1  # shares up to `least` are left alone
        for theirs in tree.children[above]:
            if theirs == mine or theirs not in below:
                continue
            share = shares[theirs]
            if share == UNKNOWN:
                share = share_of(book, theirs)
            if not is_within:
                if not share:
                    continue
                if least < 0:
                    least = share_after(book, mine, charge)
                if share <= least:
                    continue
            yield from (leaf for leaf in below[theirs] if _is_beyond(book, leaf, theirs, slots))
        mine = above


def _is_beyond(book: Book, leaf: int, side: int, wanted: list[int]) -> bool:
    """Whether `leaf` and all above it up to `side` borrow something `wanted`."""
    tree, drawn, named = book.tree, book.drawn, book.tree.named[leaf]
    for slot in wanted:
        if slot not in named:
            continue
        for node in tree.paths[leaf]:
            if drawn[node][slot] <= tree.shared[node][slot]:
                break
            if node == side:
                return True
    return False


def sides(tree: QueueTree, one: int, other: int) -> tuple[int, int]:
    """The children, on each one's path, of the lowest node that is above both leaves."""
    path, there = tree.paths[one], tree.paths[other]
    shared = 0
    while shared < min(len(path), len(there)) and path[-1 - shared] == there[-1 - shared]:
        shared += 1
    return path[-1 - shared], there[-1 - shared]


def _is_borrowing(book: Book, loser: tuple[int, Charge], side: int, wanted: list[int]) -> bool:
    """Whether every node from the loser up to `side` borrows something wanted that it holds.

    What counts is named by the loser's queue: a queue above that nobody wrote down has no opinion of its own.
    """
    tree, (leaf, charge) = book.tree, loser
    path = tree.paths[leaf][: tree.paths[leaf].index(side) + 1]
    slots = [slot for slot, _ in charge if slot in wanted and slot in tree.named[leaf]]
    return any(all(book.drawn[node][slot] > tree.shared[node][slot] for node in path) for slot in slots)


def _keeps_its_own(book: Book, loser: tuple[int, Charge], side: int) -> bool:
    """Whether `side` has at least its nominal without the loser: below, others of it would take that back."""
    tree, (leaf, charge) = book.tree, loser
    named = [(slot, amount) for slot, amount in charge if slot in tree.named[leaf]]
    return all(book.total[side][slot] - amount >= tree.entitled[side][slot] for slot, amount in named)


def _is_within(book: Book, taker: tuple[int, Charge], side: int) -> bool:
    """Whether `side` stays within its nominal once the taker has started, in what the taker's queue names."""
    tree, (leaf, charge) = book.tree, taker
    used, entitled, named = book.total[side], tree.entitled[side], tree.named[leaf]
    for slot, amount in charge:  # noqa: SIM110 - a generator takes longer, and this is asked for all who wait
        if used[slot] + amount > entitled[slot] and slot in named:
            return False
    return True
