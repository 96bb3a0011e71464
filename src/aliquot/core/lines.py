"""Who waits, in the queue's order: of the whole site, and of each queue."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import immutables

from aliquot.core.jobs import Job
from aliquot.core.records import QueueKey, queue_key

Waiting = immutables.Map[str, tuple[QueueKey, ...]]


class Lines:
    """The waiting jobs. `pending` and `waiting` are snapshots; what did not change is the same object."""

    def __init__(self) -> None:
        self._all: list[QueueKey] = []
        self._of: dict[str, list[QueueKey]] = {}
        self._pending: tuple[QueueKey, ...] | None = ()
        self._waiting: Waiting = immutables.Map()
        self._changed: dict[str, None] = {}

    def enter(self, job: Job) -> None:
        """`job` begins to wait."""
        key = queue_key(job)
        insort(self._all, key)
        insort(self._of.setdefault(job.queue, []), key)
        self._note(job.queue)

    def leave(self, job: Job) -> None:
        """`job` no longer waits; nothing changes where it did not."""
        key = queue_key(job)
        if _take(self._all, key):
            _take(self._of[job.queue], key)
            self._note(job.queue)

    @property
    def pending(self) -> tuple[QueueKey, ...]:
        """All, in the queue's order."""
        if self._pending is None:
            self._pending = tuple(self._all)
        return self._pending

    @property
    def waiting(self) -> Waiting:
        """By queue; a queue without waiting jobs is left out."""
        if self._changed:
            with self._waiting.mutate() as waiting:
                for queue in self._changed:
                    line = self._of[queue]
                    if line:
                        waiting[queue] = tuple(line)
                    elif queue in waiting:
                        del waiting[queue]
                self._waiting = waiting.finish()
            self._changed.clear()
        return self._waiting

    def _note(self, queue: str) -> None:
        self._pending = None
        self._changed[queue] = None


def compare_lines(
    before: Sequence[QueueKey], after: Sequence[QueueKey]
) -> tuple[list[QueueKey], list[QueueKey]]:
    """(who stands only in `before`, who only in `after`), in order.

    Runs that are equal are found by comparing slices of them, so it costs little where little changed.
    """
    gone: list[QueueKey] = []
    come: list[QueueKey] = []
    at = other = 0
    while True:
        run = _equal_run(before, at, after, other)
        at, other = at + run, other + run
        if at == len(before) or other == len(after):
            gone += before[at:]
            come += after[other:]
            return gone, come
        if before[at] < after[other]:
            gone.append(before[at])
            at += 1
        else:
            come.append(after[other])
            other += 1


def _equal_run(one: Sequence[QueueKey], at: int, two: Sequence[QueueKey], other: int) -> int:
    """How many keys are the same from `at` and from `other` on."""
    most = min(len(one) - at, len(two) - other)
    if not most or one[at] != two[other]:
        return 0
    if one[at : at + most] == two[other : other + most]:
        return most
    low, high = 0, most  # the first `low` are the same, of the first `high` one is not
    while high - low > 1:
        middle = (low + high) // 2
        if one[at + low : at + middle] == two[other + low : other + middle]:
            low = middle
        else:
            high = middle
    return low


def _take(keys: list[QueueKey], key: QueueKey) -> bool:
    at = bisect_left(keys, key)
    if at == len(keys) or keys[at] != key:
        return False
    del keys[at]
    return True
