"""How long a job may run of which its owner says nothing: as long as those that were submitted next to it.

People submit many jobs of one kind in a row, so run times of neighbours in the order of submission are far
more alike than those of a queue in general. A group of jobs therefore keeps its run times in that order, and
each weighs the less the further it stands from the job that is asked for. Jobs that run already count as "at
least so long": where a whole row has been running for an hour, jobs of a minute that are over say little of
those behind. Both together give the part of such jobs that run longer than any time (a Kaplan-Meier estimate
with weights); beyond the longest known, half of what is left is over whenever the time has doubled.

A group is tried from near to far: same user, queue and cards; same queue and cards; same queue; anybody. The
nearest speaks of which enough jobs are over, and one that ran longer than the job that is asked for. It knows
what it was told and nothing else. Nothing is drawn by chance.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from aliquot.core.columns import I64
from aliquot.core.ids import JobId

ENOUGH: Final = 5
"""Jobs of a group that must be over before it speaks."""

KEPT: Final = 300
"""Run times a group keeps, of the jobs submitted last."""

RUNNING: Final = 600
"""Running jobs a group keeps, those started last."""

GROUPS: Final = 1024
"""Groups that are kept; who was not heard of for longest is forgotten."""

NEAR: Final = 3
"""A neighbour that is n places away weighs 1 / (NEAR + n)."""

PLACES: Final = 8
"""So many places next to each other are taken for one, but for the last, where all stand who come."""

_LEAST_LEFT: Final = 1 / 1024
"""Nobody is taken to be among fewer than so many of those that are left."""

_ABOUT: Final = 1e-12  # parts that differ by less are the same


_Key = tuple[str | int, ...]


class Like(NamedTuple):
    """What is known of a job before it runs. An empty user is nobody in particular."""

    user: str
    queue: str
    cards: int


class Run(NamedTuple):
    """A job that runs since `since` (ms), the `seq`-th submitted."""

    like: Like
    seq: int
    since: int


class GroupImage(msgspec.Struct, frozen=True):
    """One group: run times (ms) of those over by their numbers, and since when others run."""

    key: tuple[str | int, ...]
    seqs: list[int]
    ran: list[int]
    running: list[tuple[int, int]]


class NeighboursImage(msgspec.Struct, frozen=True):
    """All that is known. Groups: who was not heard of for longest is first."""

    groups: list[GroupImage] = []
    runs: list[tuple[JobId, Run]] = []


class _Group:
    """Jobs of one kind: the ended in the order of submission, and those that run."""

    def __init__(self) -> None:
        self.seqs, self.ran = array("q"), array("q")
        self.running: dict[int, int] = {}  # number in the order of submission: running since, ms

    def start(self, seq: int, now: int) -> None:
        """The job with this number runs since `now`."""
        self.running[seq] = now
        if len(self.running) > RUNNING:
            del self.running[next(iter(self.running))]

    def end(self, seq: int, ran_ms: int) -> None:
        """The job with this number ran so long to its end."""
        at = bisect_left(self.seqs, seq)
        self.seqs.insert(at, seq)
        self.ran.insert(at, ran_ms)
        if len(self.seqs) > KEPT:
            del self.seqs[0], self.ran[0]


class _Known(NamedTuple):
    """A group at one moment, the shortest first."""

    numbers: list[int]  # [jobs] of all, sorted: places in the order of submission
    place: I64  # [jobs]
    is_over: npt.NDArray[np.bool_]  # [jobs]
    over: list[int]  # [ended] ms


class Neighbours:
    """Run times in the order of submission. `start` and `end` teach; `lengths` asks."""

    def __init__(self, *, enough: int = ENOUGH) -> None:
        self._enough = enough
        self._groups: dict[_Key, _Group] = {}
        self._runs: dict[JobId, Run] = {}
        self._known: dict[_Key, _Known | None] = {}
        self._within: dict[tuple[_Key, int], list[float]] = {}
        self._at = -1

    def start(self, job: JobId, like: Like, seq: int, now: int) -> None:
        """A job that is `like` this, the `seq`-th submitted, runs since `now`."""
        self.forget(job)
        self._runs[job] = Run(like, seq, now)
        for key in _levels(like):
            self._hear(key).start(seq, now)

    def end(self, job: JobId, now: int) -> None:
        """It ran to its end. One that never started teaches nothing."""
        run = self._runs.get(job)
        if run is None:
            return
        self.forget(job)
        for key in _levels(run.like):
            self._hear(key).end(run.seq, max(0, now - run.since))

    def forget(self, job: JobId) -> None:
        """It was stopped, which says nothing of how long it would have run."""
        run = self._runs.pop(job, None)
        if run is not None:
            self._at = -1
            for key in _levels(run.like):
                if key in self._groups:
                    self._groups[key].running.pop(run.seq, None)

    def image(self) -> NeighboursImage:
        """All that is known, for `recall`."""
        groups = [
            GroupImage(key, group.seqs.tolist(), group.ran.tolist(), list(group.running.items()))
            for key, group in self._groups.items()
        ]
        return NeighboursImage(groups, list(self._runs.items()))

    def recall(self, image: NeighboursImage) -> None:
        """Know what `image` says and nothing else."""
        self._at = -1
        self._runs = dict(image.runs)
        self._groups = {}
        for one in image.groups:
            group = self._groups[one.key] = _Group()
            group.seqs, group.ran = array("q", one.seqs), array("q", one.ran)
            group.running = dict(one.running)

    def __len__(self) -> int:
        """Groups of which something is known."""
        return len(self._groups)

    def lengths(
        self, like: Like, seq: int, ran_ms: int, left: Sequence[float], now: int
    ) -> tuple[int | None, ...]:
        """How long such a job that has run for `ran_ms` may run in all, ms; None: nobody knows.

        One for each of `left`, the part of those still running by now that run longer: 0.5 is the middle.
        """
        if now != self._at:
            self._known.clear()
            self._within.clear()
            self._at = now
        parts = [max(part, _LEAST_LEFT) for part in left]
        known = None
        for key in _levels(like):
            known = self._group(key, now)
            if known is not None and (not ran_ms or known.over[-1] > ran_ms):
                return tuple(_lengths_of(known.over, self._ended_within(key, known, seq), ran_ms, parts))
        if known is None:
            return (None,) * len(parts)
        return tuple(int(ran_ms / part) + 1 for part in parts)

    def _hear(self, key: _Key) -> _Group:
        self._at = -1
        group = self._groups.pop(key) if key in self._groups else _Group()
        self._groups[key] = group
        while len(self._groups) > GROUPS:
            del self._groups[next(iter(self._groups))]
        return group

    def _group(self, key: _Key, now: int) -> _Known | None:
        if key not in self._known:
            group = self._groups.get(key)
            is_known = group is not None and len(group.seqs) >= self._enough
            self._known[key] = _known_of(group, now) if is_known and group is not None else None
        return self._known[key]

    def _ended_within(self, key: _Key, known: _Known, seq: int) -> list[float]:
        """[ended] the part of jobs next to the `seq`-th that run no longer than each that is over, rising."""
        place = bisect_left(known.numbers, seq)
        if place < len(known.numbers):
            place -= place % PLACES
        found = self._within.get((key, place))
        if found is None:
            weight = 1.0 / (NEAR + np.abs(known.place - place))
            at_risk = np.cumsum(weight[::-1])[::-1]
            beyond = np.cumprod(np.where(known.is_over, 1 - weight / at_risk, 1.0))
            found = self._within[key, place] = (1 - beyond[known.is_over]).tolist()
        return found


def _known_of(group: _Group, now: int) -> _Known:
    seqs = np.array([*group.seqs, *group.running], np.int64)
    so_far = [max(0, now - since) for since in group.running.values()]
    values = np.array([*group.ran, *so_far], np.int64)
    is_over = np.arange(len(seqs)) < len(group.seqs)
    numbers = np.sort(seqs)
    order = np.lexsort((~is_over, values))
    place = np.searchsorted(numbers, seqs[order])
    return _Known(numbers.tolist(), place, is_over[order], values[order][is_over[order]].tolist())


def _lengths_of(over: list[int], within: list[float], ran_ms: int, parts: Sequence[float]) -> list[int]:
    """For each part the time that so many of those beyond `ran_ms` exceed; worked: of 10, 20 and 30 that
    weigh alike, after 15: 20 for a half and more, else 30.
    """
    first = bisect_right(over, ran_ms) if ran_ms else 0
    left = 1 - within[first - 1] if first else 1.0
    lengths = []
    for part in parts:
        at = bisect_left(within, 1 - left * part - _ABOUT)
        length = over[at] if at < len(over) else int(over[-1] * (1 - within[-1]) / (left * part))
        lengths.append(max(ran_ms + 1, 1, length))
    return lengths


def _levels(like: Like) -> tuple[_Key, ...]:
    near = ((like.user, like.queue, like.cards),) if like.user else ()
    return (*near, ("", like.queue, like.cards), ("", like.queue), ())
