"""What queues are charged for: what runs now, by queue and card model, and the past, which fades.

What was asked is charged, never what is held. Amounts are kept by model, because quotas may speak of cards of
one model, and rates of compute and money differ by model; what they add up to is decided by `queueing`.
"""

from __future__ import annotations

from functools import lru_cache

import immutables

from aliquot.core.decay import Account, change_rate
from aliquot.core.inventory import CardModel
from aliquot.core.jobs import Job, Request, asked_of
from aliquot.core.records import Asked

Usage = immutables.Map[tuple[str, str], Asked]


class Accounts:
    """Running sums. `half_life_ms` is that of past usage; 0: the past is not kept."""

    def __init__(self, half_life_ms: int) -> None:
        self._half_life = half_life_ms
        self.usage: Usage = immutables.Map()
        self.past: immutables.Map[str, Account] = immutables.Map()
        self.arrays: immutables.Map[str, int] = immutables.Map()

    def open(self, job: Job, asked: tuple[Asked, ...], at: int) -> None:
        """`job` holds something from `at` on and is charged for `asked`."""
        self._shift(job, asked, at, 1)

    def close(self, job: Job, asked: tuple[Asked, ...], at: int) -> None:
        """It holds nothing any more."""
        self._shift(job, asked, at, -1)

    def _shift(self, job: Job, asked: tuple[Asked, ...], at: int, sign: int) -> None:
        for part in asked:
            key = (job.queue, part.model)
            now = self.usage.get(key) or Asked(part.model, 0, 0)
            new = Asked(part.model, now.milli + sign * part.milli, now.mib + sign * part.mib)
            self.usage = self.usage.set(key, new) if new.milli or new.mib else self.usage.delete(key)
        if self._half_life and asked:
            milli = sign * sum(part.milli for part in asked)
            account = self.past.get(job.queue, Account(since_ms=at))
            self.past = self.past.set(job.queue, change_rate(account, at, milli, self._half_life))
        if job.array is not None:
            self.arrays = self.arrays.set(job.array.name, self.arrays.get(job.array.name, 0) + sign)


@lru_cache(maxsize=1 << 14)
def ask_of(members: tuple[Request, ...], models: tuple[CardModel | None, ...]) -> tuple[Asked, ...]:
    """What `members` are charged for when they get cards of `models`; None: a member gets no card."""
    sums: dict[str, tuple[int, int]] = {}
    for request, model in zip(members, models, strict=False):
        if model is None:
            continue
        milli, mib = asked_of(request, model)
        before = sums.get(model.name, (0, 0))
        sums[model.name] = (before[0] + milli, before[1] + mib)
    return tuple(Asked(name, milli, mib) for name, (milli, mib) in sums.items())
