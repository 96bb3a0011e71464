"""The waiting jobs of one queue, in the order of the queue.

A lane holds jobs alike, so it never changes its own order: of each lane only the next job stands in the heap.
Where those in front of all lanes stand is kept from pass to pass, until they leave, another comes before them
or they grow older by a step of aging.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection
from heapq import heapify, heappop, heapreplace

from aliquot.core.ids import JobId
from aliquot.core.queueing.order import Aging, Place, Tier, Waiting, next_aging, place_in_queue

Lane = tuple[int, bool, int, int, int]
Stamp = tuple[int, int, JobId]
Tail = tuple[int, int, int, JobId]
Kin = tuple[Tier, int, bool]


class Post:
    """One waiting job with what is compared of it, worked out once."""

    __slots__ = ("charge", "fixed", "kin", "lane", "likeness", "place", "stamp", "tail", "waiting")

    def __init__(self, waiting: Waiting, charge: int) -> None:
        self.waiting = waiting
        self.charge = charge  # the number of its charge, for caches
        self.fixed = waiting.tier not in {Tier.OWN, Tier.BORROWING}
        self.lane: Lane = (waiting.tier, waiting.overdue, waiting.priority, waiting.size, waiting.group)
        self.likeness = (waiting.group, waiting.overdue)
        self.kin = (waiting.tier, *self.likeness)  # in its queue: charged alike, too
        self.stamp: Stamp = (waiting.submitted_ms, waiting.seq, waiting.id)
        self.tail: Tail = (waiting.size, *self.stamp)
        self.place: Place | None = None  # in its queue, where that does not change with time


Standing = tuple[Place, Post]


class Lanes:
    """The jobs of one queue, and how far a pass has come with them."""

    def __init__(self, aging: Aging) -> None:
        self._aging = aging
        self._lanes: dict[Lane, list[tuple[Stamp, Post]]] = {}
        self._cursor: dict[Lane, int] = {}
        self._closed = False
        self._refused: dict[tuple[Tier, int], int] = {}  # up to which priority, in this pass
        self._heads: dict[Lane, tuple[Standing, int | None]] = {}  # in front, and when each grows older
        self._placed_ms = 0
        self._fresh: list[Standing] | None = None  # the heap at the front of all lanes
        self._heap: list[Standing] | None = None  # that of this pass
        self.ages_ms: int | None = None  # when somebody in front grows older; known once `first` was asked

    def enter(self, post: Post) -> None:
        """One more; a pass begins anew."""
        lane = self._lanes.setdefault(post.lane, [])
        insort(lane, (post.stamp, post))
        if lane[0][1] is post:
            self._forget_head(post.lane)
        self.rewind()

    def leave(self, post: Post) -> None:
        """One less; a pass begins anew."""
        lane = self._lanes[post.lane]
        at = bisect_left(lane, (post.stamp,))
        del lane[at]
        if not at:
            self._forget_head(post.lane)
        if not lane:
            del self._lanes[post.lane]
        self.rewind()

    def rewind(self) -> None:
        """A new pass: begin at the front."""
        self._cursor.clear()
        self._refused.clear()
        self._closed = False
        self._heap = None

    def forget(self) -> None:
        """Places are not what they were: it is another time."""
        self._fresh = self._heap = None

    def close(self) -> None:
        """Nobody more in this pass."""
        self._closed = True

    def first(self, now: int) -> Standing | None:
        """The next job of this pass with its place, or None."""
        if self._closed:
            return None
        if self._heap is None:
            self._heap = self._front(now) if not self._cursor else self._from_cursor(now)
        heap = self._heap
        while heap and self._refused and self._is_refused(heap[0][1].waiting):
            lane = heap[0][1].lane
            self._cursor[lane] = len(self._lanes[lane])
            heappop(heap)
        return heap[0] if heap else None

    def advance(self, post: Post, now: int, *, alike: bool = False) -> None:
        """Pass over `post`, which is the next; with all of its lane if `alike`."""
        lane, heap = self._lanes[post.lane], self._heap
        at = len(lane) if alike else self._cursor.get(post.lane, 0) + 1
        self._cursor[post.lane] = at
        if not heap or heap[0][1] is not post:
            self._heap = None
        elif at < len(lane):
            follower = lane[at][1]
            heapreplace(heap, (self._place(follower, now), follower))
        else:
            heappop(heap)

    def refuse(self, waiting: Waiting) -> None:
        """Pass over all of its tier that are charged like it and have no higher priority."""
        key = (waiting.tier, waiting.ways)
        self._refused[key] = max(waiting.priority, self._refused.get(key, waiting.priority))

    def pass_over(
        self, is_passed: Callable[[Post], bool], are_passed: Callable[[Post], bool | None], now: int
    ) -> None:
        """All who are passed, in each lane up to the first who is not.

        `are_passed`: whether all of its kin are, or none; None: each has to be asked.
        """
        heap, known = [], dict[Kin, bool | None]()
        for standing in self._heap or ():
            post = standing[1]
            if post.kin not in known:
                known[post.kin] = are_passed(post)
            kin = known[post.kin]
            if kin is False or (kin is None and not is_passed(post)):
                heap.append(standing)
                continue
            if kin:
                self._cursor[post.lane] = len(self._lanes[post.lane])
                continue
            lane = self._lanes[post.lane]
            at = self._cursor.get(post.lane, 0) + 1
            while at < len(lane) and is_passed(lane[at][1]):
                at += 1
            self._cursor[post.lane] = at
            if at < len(lane):
                heap.append((self._place(lane[at][1], now), lane[at][1]))
        heapify(heap)
        self._heap = heap

    def _is_refused(self, waiting: Waiting) -> bool:
        most = self._refused.get((waiting.tier, waiting.ways))
        return most is not None and waiting.priority <= most

    def _front(self, now: int) -> list[Standing]:
        if self._fresh is None:
            heads = self._look_in_front(now)
            self._fresh = [standing for standing, _ in heads]
            heapify(self._fresh)
            self.ages_ms = min((due for _, due in heads if due is not None), default=None)
        return self._fresh.copy()

    def _look_in_front(self, now: int) -> Collection[tuple[Standing, int | None]]:
        """The first of each lane; those only are placed who have come there, or are older by a step."""
        heads = self._heads
        if now < self._placed_ms:
            heads.clear()
        self._placed_ms = now
        late = [lane for lane, (_, due) in heads.items() if due is not None and due <= now]
        for lane in late if len(heads) == len(self._lanes) else (*late, *(self._lanes.keys() - heads.keys())):
            head = self._lanes[lane][0][1]
            waiting = head.waiting
            due = next_aging(waiting.priority, waiting.submitted_ms, now, self._aging)
            heads[lane] = (self._place(head, now), head), due
        return heads.values()

    def _forget_head(self, lane: Lane) -> None:
        self._heads.pop(lane, None)
        self._fresh = None

    def _from_cursor(self, now: int) -> list[Standing]:
        heap = []
        for key, lane in self._lanes.items():
            at = self._cursor.get(key, 0)
            if at < len(lane):
                heap.append((self._place(lane[at][1], now), lane[at][1]))
        heapify(heap)
        return heap

    def _place(self, post: Post, now: int) -> Place:
        if post.place is not None:
            return post.place
        place = place_in_queue(post.waiting, now, self._aging)
        if not self._aging.step_ms:
            post.place = place
        return place
