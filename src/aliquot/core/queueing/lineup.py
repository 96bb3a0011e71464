"""Everybody who waits, kept so that the next in order is found without sorting.

A tournament over the queue tree: every queue sends its first job, every inner node the best of its children,
and a change somewhere replays only the path above it. Between passes nothing is rebuilt: `begin` looks at
what changed (jobs, usage, past, the clock) and replays that.

A lineup is a cache outside the world: what it yields depends on the waiting jobs, the book, the levels and
the time, never on how it came to hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from aliquot.core.decay import per_weight
from aliquot.core.ids import JobId
from aliquot.core.queueing.lanes import Lanes, Post, Tail
from aliquot.core.queueing.order import Aging, Key, Tier, Waiting, tier_of
from aliquot.core.queueing.quota import Book, Charge
from aliquot.core.queueing.share import past_weight, rank_after
from aliquot.core.queueing.tree import ROOT, QueueTree

MayPass = Callable[[Waiting, bool], bool]
"""Whether a job of a group that was dropped is passed over; and, if that is asked, all of its queue and tier
that are of its group and overdue as it is: False where that is not sure.
"""

Entry = tuple[Key, int]
Best = tuple[int, int, Tail, Post]
"""Who stands for a node, with what no level of the tree changes: tier, -priority, tail."""


class Lineup:
    """Waiting jobs over one queue tree. Make a new one when the tree changes.

    A pass: `begin`, then `first`, and for each job it gives exactly one of `admit`, `hold`, `pass_over` or
    `close`, until `first` gives None.
    """

    def __init__(self, tree: QueueTree, aging: Aging = Aging()) -> None:  # noqa: B008 - a frozen tuple
        size = len(tree.names)
        self.tree, self.aging = tree, aging
        self.jobs: dict[JobId, Waiting] = {}
        self.now = 0
        self._posts: dict[JobId, Post] = {}
        self._charges: dict[Charge, int] = {}
        self._queues: dict[int, Lanes] = {}
        self._pick: list[Best | None] = [None] * size
        self._heaps: list[list[Entry]] = [[] for _ in range(size)]
        self._entry: list[Entry | None] = [None] * size
        self._stale: set[int] = set()
        self._moved: set[int] = set()
        self._dropped: set[tuple[int, bool]] = set()
        self._may_pass: MayPass = _always
        self._due: list[tuple[int, int]] = []
        self._watched: dict[int, int] = {}
        self._book = Book(tree)
        self._seen: list[list[int]] = self._book.copy().total
        self._tiers: list[dict[int, Tier]] = [{} for _ in range(size)]  # by charge, at the totals seen
        self._shares: list[dict[int, int]] = [{} for _ in range(size)]
        self._levels: Sequence[int] = (0,) * size
        self._past: list[int] = [0] * size

    def enter(self, waiting: Waiting) -> None:
        """A job begins to wait. One that waits already is replaced."""
        if waiting.id in self.jobs:
            self.leave(waiting.id)
        post = Post(waiting, self._charges.setdefault(waiting.charge, len(self._charges)))
        self.jobs[waiting.id], self._posts[waiting.id] = waiting, post
        queue = self._queues.get(waiting.leaf)
        if queue is None:
            queue = self._queues[waiting.leaf] = Lanes(self.aging)
        queue.enter(post)
        self._stale.add(waiting.leaf)

    def leave(self, job: JobId) -> None:
        """A job no longer waits: started, or withdrawn. Unknown jobs are ignored."""
        waiting = self.jobs.pop(job, None)
        if waiting is None:
            return
        self._queues[waiting.leaf].leave(self._posts.pop(job))
        self._stale.add(waiting.leaf)

    def begin(self, book: Book, now: int, levels: Sequence[int] | None = None) -> None:
        """Start a pass. Admissions are added to `book`; `levels` is past usage per node (None: as before)."""
        self._book = book
        self.restore()
        for leaf in self._moved:
            self._queues[leaf].rewind()
        self._stale |= self._moved
        self._moved.clear()
        if now < self.now:
            self._stale.update(self._queues)
            for queue in self._queues.values():
                queue.forget()
        self.now = now
        while self._due and self._due[0][0] <= now:
            due, leaf = heappop(self._due)
            self._stale.add(leaf)
            if leaf in self._queues:
                self._queues[leaf].forget()
            if self._watched.get(leaf) == due:
                del self._watched[leaf]
        levels = self._levels if levels is None else levels
        for node, row in enumerate(book.total):
            if levels[node] != self._levels[node]:
                self._past[node] = per_weight(levels[node], past_weight(self.tree, node))
                self._stale.add(node)
            if row != self._seen[node]:
                self._stale.add(node)
        self._levels = levels
        self._replay()

    def first(self) -> Waiting | None:
        """Who goes next; None at the end of the pass."""
        best = self._pick[ROOT]
        while best is not None and self._is_passed(best[3]):
            self._climb(best[3].waiting.leaf)
            best = self._pick[ROOT]
        return None if best is None else best[3].waiting

    def tier(self, waiting: Waiting) -> Tier:
        """The tier that counts now; see `order.tier_of`."""
        post = self._posts.get(waiting.id)
        if post is None or post.waiting is not waiting:
            return tier_of(self._book, waiting)
        return self._tier(post)

    def drop(self, waiting: Waiting, may_pass: MayPass) -> None:
        """All of its group that are overdue as it is keep waiting in this pass, whatever their queue.

        But those of a strict queue: the first has a turn, as its answer counts for all behind it; those whose
        tier was raised; and, of all who are dropped, whom it `may_pass` not. It does not answer for
        `waiting`, which gets its answer as any other.
        """
        self._dropped.add((waiting.group, waiting.overdue))
        self._may_pass = may_pass

    def restore(self) -> None:
        """Nobody is dropped any more; who was passed over already stays so."""
        self._dropped.clear()
        self._may_pass = _always

    def admit(self, waiting: Waiting) -> None:
        """It starts: its queue is charged, and the next of its queue comes forward."""
        self.hold(waiting)

    def hold(self, waiting: Waiting) -> None:
        """It waits for quota of its own that others have borrowed, and what is left is not lent again.

        Charged like an admission; the caller rolls the book back after the pass.
        """
        self._book.add(waiting.leaf, waiting.charge)
        self._advance(waiting)

    def pass_over(self, waiting: Waiting) -> None:
        """It keeps waiting, and the next of its queue may try in this pass."""
        self._advance(waiting)

    def pass_over_alike(self, waiting: Waiting) -> None:
        """It keeps waiting, and so do all like it behind it in its queue, for the rest of this pass."""
        self._advance(waiting, alike=True)

    def pass_over_charged(self, waiting: Waiting) -> None:
        """It keeps waiting for quota, and for the rest of this pass so do those that get no other answer.

        In its queue those of its tier that are charged like it, and of no higher priority.
        """
        self._queues[waiting.leaf].refuse(waiting)
        self._climb(waiting.leaf)

    def close(self, waiting: Waiting) -> None:
        """It keeps waiting, and so does all its queue for the rest of this pass."""
        self._queues[waiting.leaf].close()
        self._climb(waiting.leaf)

    def _advance(self, waiting: Waiting, *, alike: bool = False) -> None:
        self._queues[waiting.leaf].advance(self._posts[waiting.id], self.now, alike=alike)
        self._climb(waiting.leaf)

    def _climb(self, leaf: int) -> None:
        """Whoever stands for `leaf` now, and so on up to the pool."""
        self._moved.add(leaf)
        best = self._first_of(leaf)
        node = leaf
        while node != ROOT:
            self._stand(node, best)
            node = self.tree.parent[node]
            best = self._leader(node)
        self._pick[ROOT] = best

    def _replay(self) -> None:
        """Every stale node and all above it, children before parents (a parent has the lower number)."""
        todo = [-node for node in self._stale]
        heapify(todo)
        self._stale.clear()
        last = 1
        while todo:
            node = -heappop(todo)
            if -node == last:
                continue
            last = -node
            self._play(node)
            if node != ROOT:
                heappush(todo, -self.tree.parent[node])

    def _play(self, node: int) -> None:
        """Who stands for `node`, and where that puts it among its siblings."""
        best = self._leader(node) if self.tree.children[node] else self._first_of(node)
        if node == ROOT:
            self._pick[ROOT] = best
        else:
            self._stand(node, best)

    def _stand(self, node: int, best: Best | None) -> None:
        """`best` stands for `node` among its siblings."""
        entries = self._entry
        self._pick[node] = best
        old = entries[node]
        if best is None:
            entries[node] = None
            return
        tier, priority, tail, post = best
        if self._book.total[node] != self._seen[node]:
            self._look_at(node)
        share = self._shares[node].get(post.charge)
        if share is None:
            share = rank_after(self._book, node, post.waiting.charge)
            self._shares[node][post.charge] = share
        entry = ((tier, priority, share, self._past[node], tail), node)
        entries[node] = entry
        heap = self._heaps[self.tree.parent[node]]
        if heap and heap[0] is old:
            heapreplace(heap, entry)
            return
        heappush(heap, entry)
        if len(heap) > 64 + 4 * len(self.tree.children[self.tree.parent[node]]):
            # outdated entries are dropped when they reach the top; here where they are most of the heap
            heap[:] = [entry for entry in heap if entries[entry[1]] is entry]
            heapify(heap)

    def _leader(self, node: int) -> Best | None:
        heap, entries = self._heaps[node], self._entry
        while heap:
            top = heap[0]
            if entries[top[1]] is top:
                return self._pick[top[1]]
            heappop(heap)
        return None

    def _first_of(self, leaf: int) -> Best | None:
        queue = self._queues.get(leaf)
        first = None if queue is None else queue.first(self.now)
        if queue is not None and first is not None and self._is_passed(first[1]):
            queue.pass_over(self._is_passed, self._are_passed, self.now)
            first = queue.first(self.now)
        if queue is None or first is None:
            return None
        if queue.ages_ms is not None and self._watched.get(leaf) != queue.ages_ms:
            self._watched[leaf] = queue.ages_ms
            heappush(self._due, (queue.ages_ms, leaf))
        place, post = first
        return self._tier(post), place[1], post.tail, post

    def _is_passed(self, post: Post) -> bool:
        """Whether it has no turn, as those like it were dropped."""
        return self._is_dropped(post) and self._may_pass(post.waiting, False)

    def _are_passed(self, post: Post) -> bool | None:
        """Whether all of its kin in its queue have none, or nobody of it; None: that is not sure."""
        if not self._is_dropped(post):
            return False
        return True if self._may_pass(post.waiting, True) else None

    def _is_dropped(self, post: Post) -> bool:
        if post.likeness not in self._dropped:
            return False
        return not post.waiting.in_turn and post.waiting.tier >= Tier.OWN

    def _tier(self, post: Post) -> Tier:
        waiting = post.waiting
        if post.fixed:
            return waiting.tier
        leaf = waiting.leaf
        if self._book.total[leaf] != self._seen[leaf]:
            self._look_at(leaf)
        tier = self._tiers[leaf].get(post.charge)
        if tier is None:
            tier = self._tiers[leaf][post.charge] = tier_of(self._book, waiting)
        return tier

    def _look_at(self, node: int) -> None:
        """What was worked out at other totals is void."""
        self._seen[node] = self._book.total[node].copy()
        self._tiers[node].clear()
        self._shares[node].clear()


def _always(_waiting: Waiting, _alike: bool) -> bool:
    return True
