"""What queues have used of cards in a calendar month, by card model: exact sums that need no ticking.

Between two changes of what a queue holds its use grows evenly, so an entry is written only then and read at
any time. A month turns by arithmetic alone: whoever reads an entry of an earlier month counts from the first
moment of the present one. Amounts are what was asked, never what is held, in milli-cards x ms; what that is
in money is decided where prices are known (`budget`).

Beside the use stands what is to be expected of those who run: the sum of their ends, as far as their owners
have said how long they run. An elastic job is over sooner the wider it is; whenever its width changes it is
expected to run its whole length anew, as after a restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import immutables

from aliquot.core.lengths import as_charged, told
from aliquot.core.months import DAY_MS, begin_of, month_of
from aliquot.core.records import Asked, JobRecord, Spent

Book = immutables.Map[tuple[str, str], Spent]


class Spending:
    """Entries by (queue, model)."""

    def __init__(self) -> None:
        self.book: Book = immutables.Map()

    def open(self, record: JobRecord, asked: tuple[Asked, ...], at: int) -> None:
        """The job of `record` holds something from `at` on and is charged for `asked`."""
        self._shift(record, asked, at, at, 1)

    def close(self, record: JobRecord, asked: tuple[Asked, ...], since: int, at: int) -> None:
        """It holds that no longer, which it held since `since`."""
        self._shift(record, asked, since, at, -1)

    def _shift(self, record: JobRecord, asked: tuple[Asked, ...], since: int, at: int, sign: int) -> None:
        length = due_length(record, told(as_charged(record, asked).job))
        for part in asked:
            key = (record.job.queue, part.model)
            old = self.book.get(key)
            before = Spent(month_at(at)[0], 0, 0, at) if old is None else old
            now = max(at, before.since_ms)
            milli = sign * part.milli
            known, ends = before.known, before.ends
            if length is not None:
                known, ends = known + milli, ends + milli * (since + length)
            month = month_at(now)[0]
            new = Spent(month, used_by(before, now), before.milli + milli, now, known, ends)
            self.book = self.book.set(key, new)


def due_length(record: JobRecord, length: int | None) -> int | None:
    """For how long a job of an expected `length` in ms is spoken for: twice as long as it ran in vain."""
    return max(length or 0, 2 * record.in_vain_ms) if record.in_vain_ms else length


def used_by(spent: Spent, at: int) -> int:
    """Milli-card ms that were used of the month of `at`, until `at`; a time before the entry reads as it."""
    at = max(at, spent.since_ms)
    month, begin, _ = month_at(at)
    if month == spent.month:
        return spent.used + spent.milli * (at - spent.since_ms)
    return spent.milli * (at - begin)


def due_by(spent: Spent, at: int, until: int) -> int:
    """Milli-card ms that those who run now are expected to use from `at` to `until`, where that is known.

    Whoever has outrun its estimate is expected to end, so the sum may be too low, never below 0.
    """
    at = max(at, spent.since_ms)
    rest = spent.ends - spent.known * at
    return max(0, min(rest, spent.known * (until - at)))


class Bills(NamedTuple):
    """Money by node of a queue tree, in cents x milli-cards x ms: used this month, expected of those who run
    until it turns, and what they use in a ms. `unpriced`: models that were used and have no price.
    """

    used: dict[int, int]
    due: dict[int, int]
    rate: dict[int, int]
    unpriced: dict[int, set[str]]


def bills_of(
    book: Book, prices: Mapping[str, int], at: int, nodes_of: Callable[[str], Iterable[int]]
) -> Bills:
    """What the entries of `book` cost at `at`, by each of the nodes that a queue counts in."""
    found = Bills(defaultdict(int), defaultdict(int), defaultdict(int), defaultdict(set))
    renews = month_at(at)[2]
    for (queue, model), spent in book.items():
        used, price = used_by(spent, at), prices.get(model)
        for node in nodes_of(queue):
            if price is not None:
                found.used[node] += price * used
                found.due[node] += price * due_by(spent, at, renews)
                found.rate[node] += price * spent.milli
            elif used:
                found.unpriced[node].add(model)
    return found


@lru_cache(maxsize=64)
def _month(day: int) -> tuple[int, int, int]:
    month = month_of(day * DAY_MS)
    return month, begin_of(month), begin_of(month + 1)


def month_at(at: int) -> tuple[int, int, int]:
    """(number, first ms, first ms of the next) of the month of `at`."""
    return _month(at // DAY_MS)
