"""How long jobs really ran, measured by what was said of them: the errors of owners' words, learnt.

A word may be too long or too short by ten times, and the long words more often too long. So what is kept is
the ratio of the time that a job ran to the time that was told, by the size of the word, of jobs that are
over; nothing else is known. `length` turns a word into one of the lengths that it may mean: for a job that
runs already, one of those that are longer than it has run.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

ENOUGH: Final = 20
"""Jobs over with words of one size; with fewer, those of all sizes speak."""

KEPT: Final = 300
KEPT_IN_ALL: Final = 1000
_PARTS: Final = 10**6
_NEARLY: Final = 10_000  # a word that is off by less than 1 % is right
_ALL: Final = -1


class Sample:
    """The latest values of one kind, always sorted."""

    def __init__(self, kept: int) -> None:
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
    def arrived(self) -> list[int]:
        """All, the oldest first."""
        return list(self._arrival)

    @property
    def least(self) -> int:
        """Of a sample that is not empty."""
        return self._sorted[0]

    @property
    def most(self) -> int:
        """Of a sample that is not empty."""
        return self._sorted[-1]


class Truth:
    """Words and what became of them."""

    def __init__(self) -> None:
        self._by_size: dict[int, Sample] = {_ALL: Sample(KEPT_IN_ALL)}

    def learn(self, told_ms: int, ran_ms: int) -> None:
        """A job of which `told_ms` was said ran `ran_ms` to its end."""
        ratio = ran_ms * _PARTS // max(1, told_ms)
        self._by_size[_ALL].add(ratio)
        self._by_size.setdefault(_size(told_ms), Sample(KEPT)).add(ratio)

    def image(self) -> dict[int, list[int]]:
        """All that is known, for `recall`: by size of the word, ratios in the order they came."""
        return {size: sample.arrived for size, sample in self._by_size.items()}

    def recall(self, image: Mapping[int, Sequence[int]]) -> None:
        """Know what `image` says and nothing else."""
        self._by_size = {_ALL: Sample(KEPT_IN_ALL)}
        for size, ratios in image.items():
            sample = self._by_size.setdefault(size, Sample(KEPT))
            for ratio in ratios:
                sample.add(ratio)

    @property
    def is_exact(self) -> bool:
        """Whether words are taken as they are: none was wrong, or too few are known."""
        known = self._by_size[_ALL]
        if len(known) < ENOUGH:
            return True
        return known.least >= _PARTS - _NEARLY and known.most <= _PARTS + _NEARLY

    def length(self, told_ms: int, ran_ms: int, milli: int) -> int | None:
        """How long a job may run of which `told_ms` was said and that has run for `ran_ms` so far.

        `milli` / 1000 of the lengths that are still possible are below it. None: no job ever ran so long.
        """
        known = self._by_size.get(_size(told_ms))
        if known is None or len(known) < ENOUGH:
            known = self._by_size[_ALL]
        values = known.values
        first = bisect_right(values, ran_ms * _PARTS // max(1, told_ms)) if ran_ms else 0
        if first >= len(values):
            return None
        ratio = values[first + milli * (len(values) - first) // 1000]
        return max(1, ran_ms + 1, told_ms * ratio // _PARTS)


def _size(told_ms: int) -> int:
    """In halves of an octave."""
    told = max(2, told_ms)
    bits = told.bit_length()
    return 2 * bits + (told >> (bits - 2) & 1)
