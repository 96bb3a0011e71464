"""Everybody who waits, kept so that the next in order is found without sorting.

A tournament over the queue tree: every queue sends its first job, every inner node the best of its children,
and a change somewhere replays only the path above it. Between passes nothing is rebuilt: `begin` looks at
what changed (jobs, usage, past, the clock) and replays that.

A lineup is a cache outside the world: what it yields depends on the waiting jobs, the book, the levels and
the time, never on how it came to hold them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from aliquot.core.decay import per_weight
from aliquot.core.ids import JobId
from aliquot.core.queueing.order import (
    Aging,
    Key,
    Place,
    Waiting,
    aged_priority,
    next_aging,
    place_in_queue,
    tier_of,
)
from aliquot.core.queueing.quota import Book
from aliquot.core.queueing.share import share_after
from aliquot.core.queueing.tree import ROOT, QueueTree

Stamp = tuple[int, int, JobId]
Lane = tuple[int, bool, int, int, int]
Entry = tuple[Key, int]


class _Queue:
    """The waiting jobs of one leaf, in lanes of jobs alike: a lane never changes its order.

    In a pass the lanes' next jobs are in a heap, made when it is first asked for.
    """

    def __init__(self) -> None:
        self.lanes: dict[Lane, list[Stamp]] = {}
        self.cursor: dict[Lane, int] = {}
        self.closed = False
        self._heap: list[tuple[Place, Lane]] | None = None

    def reset(self) -> None:
        """A new pass, or other jobs: begin at the front."""
        self.cursor.clear()
        self.closed = False
        self._heap = None

    def first(self, jobs: dict[JobId, Waiting], now: int, aging: Aging) -> Waiting | None:
        """The next job of this pass, or None."""
        if self.closed:
            return None
        if self._heap is None:
            self._heap = [
                (place_in_queue(jobs[stamps[at][2]], now, aging), lane)
                for lane, stamps in self.lanes.items()
                if (at := self.cursor.get(lane, 0)) < len(stamps)
            ]
            heapify(self._heap)
        return jobs[self._heap[0][0][-1]] if self._heap else None

    def forget(self) -> None:
        """Places are not what they were: it is later."""
        self._heap = None

    def advance(self, lane: Lane, steps: int, jobs: dict[JobId, Waiting], now: int, aging: Aging) -> None:
        """Pass over the next `steps` jobs of `lane`, whose next job is the first of all."""
        at = self.cursor.get(lane, 0) + steps
        self.cursor[lane] = at
        stamps = self.lanes[lane]
        heap = self._heap
        if heap is None or not heap or heap[0][1] != lane:
            self._heap = None
        elif at < len(stamps):
            heapreplace(heap, (place_in_queue(jobs[stamps[at][2]], now, aging), lane))
        else:
            heappop(heap)


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
        self._queues: dict[int, _Queue] = {}
        self._pick: list[Waiting | None] = [None] * size
        self._heaps: list[list[Entry]] = [[] for _ in range(size)]
        self._entry: list[Entry | None] = [None] * size
        self._stale: set[int] = set()
        self._moved: set[int] = set()
        self._dropped: set[tuple[int, bool]] = set()
        self._due: list[tuple[int, int]] = []
        self._watched: dict[int, int] = {}
        self._book = Book(tree)
        self._seen: list[list[int]] = self._book.copy().total
        self._levels: Sequence[int] = (0,) * size

    def enter(self, waiting: Waiting) -> None:
        """A job begins to wait. One that waits already is replaced."""
        if waiting.id in self.jobs:
            self.leave(waiting.id)
        self.jobs[waiting.id] = waiting
        queue = self._queues.setdefault(waiting.leaf, _Queue())
        insort(queue.lanes.setdefault(_lane(waiting), []), _stamp(waiting))
        self._reset(waiting.leaf)

    def leave(self, job: JobId) -> None:
        """A job no longer waits: started, or withdrawn. Unknown jobs are ignored."""
        waiting = self.jobs.pop(job, None)
        if waiting is None:
            return
        queue = self._queues[waiting.leaf]
        stamps = queue.lanes[_lane(waiting)]
        del stamps[bisect_left(stamps, _stamp(waiting))]
        if not stamps:
            del queue.lanes[_lane(waiting)]
        self._reset(waiting.leaf)

    def keep_only(self, jobs: Iterable[JobId]) -> list[JobId]:
        """Drop every job that is not among `jobs`; returns those of `jobs` that have yet to `enter`."""
        wanted = dict.fromkeys(jobs)
        for gone in [job for job in self.jobs if job not in wanted]:
            self.leave(gone)
        return [job for job in wanted if job not in self.jobs]

    def begin(self, book: Book, now: int, levels: Sequence[int] | None = None) -> None:
        """Start a pass. Admissions are added to `book`; `levels` is past usage per node (None: as before)."""
        self._book = book
        self._dropped.clear()
        for leaf in self._moved:
            self._reset(leaf)
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
            if row != self._seen[node] or levels[node] != self._levels[node]:
                self._seen[node] = row.copy()
                self._stale.add(node)
        self._levels = levels
        self._replay()

    def first(self) -> Waiting | None:
        """Who goes next; None at the end of the pass."""
        pick = self._pick[ROOT]
        while pick is not None and (pick.group, pick.overdue) in self._dropped:
            self.pass_over_alike(pick)
            pick = self._pick[ROOT]
        return pick

    def drop(self, waiting: Waiting) -> None:
        """All of its group that are overdue as it is keep waiting in this pass, whatever their queue.

        It does not answer for `waiting`, which gets its answer as any other.
        """
        self._dropped.add((waiting.group, waiting.overdue))

    def admit(self, waiting: Waiting) -> None:
        """It starts: its queue is charged, and the next of its queue comes forward."""
        self.hold(waiting)

    def hold(self, waiting: Waiting) -> None:
        """It waits for quota of its own that others have borrowed, and what is left is not lent again.

        Charged like an admission; the caller rolls the book back after the pass.
        """
        self._book.add(waiting.leaf, waiting.charge)
        for node in self.tree.paths[waiting.leaf]:
            self._seen[node] = self._book.total[node].copy()
        self._advance(waiting)

    def pass_over(self, waiting: Waiting) -> None:
        """It keeps waiting, and the next of its queue may try in this pass."""
        self._advance(waiting)

    def pass_over_alike(self, waiting: Waiting) -> None:
        """It keeps waiting, and so do all like it behind it in its queue, for the rest of this pass."""
        queue = self._queues[waiting.leaf]
        lane = _lane(waiting)
        self._advance(waiting, len(queue.lanes[lane]) - queue.cursor.get(lane, 0))

    def close(self, waiting: Waiting) -> None:
        """It keeps waiting, and so does all its queue for the rest of this pass."""
        self._queues[waiting.leaf].closed = True
        self._climb(waiting.leaf)

    def _advance(self, waiting: Waiting, steps: int = 1) -> None:
        queue = self._queues[waiting.leaf]
        queue.advance(_lane(waiting), steps, self.jobs, self.now, self.aging)
        self._climb(waiting.leaf)

    def _reset(self, leaf: int) -> None:
        queue = self._queues[leaf]
        queue.reset()
        self._stale.add(leaf)

    def _climb(self, leaf: int) -> None:
        self._moved.add(leaf)
        for node in self.tree.paths[leaf]:
            self._play(node)

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
        pick = self._leader(node)
        self._pick[node] = pick
        if node == ROOT:
            return
        if pick is None:
            self._entry[node] = None
            return
        entry = (self._key(node, pick), node)
        if entry != self._entry[node]:
            self._entry[node] = entry
            heappush(self._heaps[self.tree.parent[node]], entry)
            self._tidy(self.tree.parent[node])

    def _tidy(self, node: int) -> None:
        """Outdated entries are dropped when they reach the top; here also when they are most of the heap."""
        heap = self._heaps[node]
        if len(heap) > 64 + 4 * len(self.tree.children[node]):
            heap[:] = [entry for entry in heap if self._entry[entry[1]] is entry]
            heapify(heap)

    def _leader(self, node: int) -> Waiting | None:
        if not self.tree.children[node]:
            return self._first_of(node)
        heap = self._heaps[node]
        while heap:
            child = heap[0][1]
            if self._entry[child] is heap[0]:
                return self._pick[child]
            heappop(heap)
        return None

    def _first_of(self, leaf: int) -> Waiting | None:
        queue = self._queues.get(leaf)
        if queue is None:
            return None
        pick = queue.first(self.jobs, self.now, self.aging)
        if pick is not None and self.aging.step_ms:
            self._watch(leaf, queue)
        return pick

    def _watch(self, leaf: int, queue: _Queue) -> None:
        """Look again when the first job of any lane grows older by a step."""
        times = []
        for stamps in queue.lanes.values():
            head = self.jobs[stamps[0][2]]
            times.append(next_aging(head.priority, head.submitted_ms, self.now, self.aging))
        soonest = min((time for time in times if time is not None), default=None)
        if soonest is not None and self._watched.get(leaf) != soonest:
            self._watched[leaf] = soonest
            heappush(self._due, (soonest, leaf))

    def _key(self, node: int, pick: Waiting) -> Key:
        return (
            tier_of(self._book, pick),
            -aged_priority(pick.priority, pick.submitted_ms, self.now, self.aging),
            share_after(self._book, node, pick.charge),
            per_weight(self._levels[node], self.tree.weight[node]),
            pick.size,
            pick.submitted_ms,
            pick.seq,
            pick.id,
        )


def _lane(waiting: Waiting) -> Lane:
    return (waiting.tier, waiting.overdue, waiting.priority, waiting.size, waiting.group)


def _stamp(waiting: Waiting) -> Stamp:
    return (waiting.submitted_ms, waiting.seq, waiting.id)
