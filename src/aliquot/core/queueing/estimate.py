"""How long a job will run, guessed from jobs like it that are over.

"Like it" is tried from near to far: same user, queue and cards; same queue and cards; same queue; anybody.
The nearest level with enough jobs speaks, as a quantile of their run times. A history holds what it was
taught and nothing else, so a guess made at some moment uses only what was over before it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

ENOUGH: Final = 5
"""Jobs a level must have seen before it speaks."""

KEPT: Final = 400
"""Jobs a level remembers, the latest: habits change."""


class Like(NamedTuple):
    """What is known of a job before it runs. An empty user is nobody in particular."""

    user: str
    queue: str
    cards: int


class Guess(NamedTuple):
    """`ms` at the quantile asked for, from `seen` jobs of a `level` (0: nearest, 3: anybody)."""

    ms: int
    level: int
    seen: int


class Sample:
    """The latest values of one kind, always sorted."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._sorted: list[int] = []
        self._arrival: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, value: int) -> None:
        """Remember `value`, and forget the oldest beyond what is kept."""
        insort(self._sorted, value)
        self._arrival.append(value)
        if len(self._arrival) > self._kept:
            del self._sorted[bisect_left(self._sorted, self._arrival.popleft())]

    @property
    def values(self) -> Sequence[int]:
        """All, the least first; not to be changed."""
        return self._sorted

    @property
    def least(self) -> int:
        """Of a sample that is not empty."""
        return self._sorted[0]

    @property
    def most(self) -> int:
        """Of a sample that is not empty."""
        return self._sorted[-1]

    def quantile(self, milli: int) -> int:
        """The value below which `milli` / 1000 of the sample lies: of 10, 20, 30 the median is 20."""
        return self._sorted[min(len(self._sorted) - 1, len(self._sorted) * milli // 1000)]


class History:
    """Run times of jobs that are over, by likeness."""

    def __init__(self, *, enough: int = ENOUGH, kept: int = KEPT) -> None:
        self._enough, self._kept = enough, kept
        self._samples: dict[tuple[object, ...], Sample] = {}

    def learn(self, like: Like, ran_ms: int) -> None:
        """A job that was `like` this ran `ran_ms` to its end."""
        for key in dict.fromkeys(_levels(like)):
            self._samples.setdefault(key, Sample(self._kept)).add(ran_ms)

    def guess(self, like: Like, milli: int = 500) -> Guess | None:
        """The run time that `milli` / 1000 of similar jobs do not exceed; None before anything is known."""
        for level, key in enumerate(_levels(like)):
            sample = self._samples.get(key)
            if sample is not None and len(sample) >= self._enough:
                return Guess(sample.quantile(milli), level, len(sample))
        return None


def _levels(like: Like) -> tuple[tuple[object, ...], ...]:
    return (
        (like.user, like.queue, like.cards),
        ("", like.queue, like.cards),
        ("", like.queue),
        (),
    )
