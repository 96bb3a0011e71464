"""Arrays of a width, for counts that know nothing of it: as many chains of jobs as may run at once.

Each chain begins with one that runs or may start, and goes on one after the other; so only the first of each
has a turn, and what it takes it keeps until the last is over. Between two of a chain nobody else gets its
cards: nearly so where jobs go in the order they came. If one has no known end, nobody behind it has a start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from aliquot.core.columns import I64
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.records import Frozen
from aliquot.core.room.shadow import FAR


class Chains(NamedTuple):
    """By their numbers among those who wait: who has a `turn`, and who comes behind whom, in their order."""

    turns: tuple[int, ...]
    behind: dict[int, list[int]]  # one that has a turn
    after: dict[JobId, list[int]]  # one that runs

    def leading_to(self, asked: Collection[int]) -> list[int]:
        """The numbers among `turns` of those whose start is asked for, or that of one behind them."""
        return [
            number
            for number, at in enumerate(self.turns)
            if at in asked or any(behind in asked for behind in self.behind.get(at, ()))
        ]


def chains_of(world: Frozen, jobs: Sequence[Job]) -> Chains:
    """The chains of `jobs`, which wait, in line."""
    limited = {job.array.name: job.array.width for job in jobs if job.array and job.array.width is not None}
    running: dict[str, list[JobId]] = {name: [] for name in limited}
    for name in sorted(world.grants) if limited else ():
        array = world.jobs[name].job.array
        if array is not None and array.name in running:
            running[array.name].append(name)
    chains = Chains((), {}, {name: [] for under_way in running.values() for name in under_way})
    rows = {array: [chains.after[name] for name in under_way] for array, under_way in running.items()}
    turns, placed = list[int](), Counter[str]()
    for at, job in enumerate(jobs):
        array_name = "" if job.array is None else job.array.name
        width = limited.get(array_name)
        if width is None or len(rows[array_name]) < width:
            turns.append(at)
            if width is not None:
                chains.behind[at] = []
                rows[array_name].append(chains.behind[at])
            continue
        rows[array_name][placed[array_name] % len(rows[array_name])].append(at)
        placed[array_name] += 1
    return chains._replace(turns=tuple(turns))


def lasting(chains: Chains, lengths: I64) -> I64:
    """[turns] how long each holds its cards, with those behind it; -1: nobody knows. `lengths` [jobs]."""
    found = [_summed([at, *chains.behind.get(at, ())], lengths) for at in chains.turns]
    return np.array(found, np.int64)


def outlasting(chains: Chains, running: Sequence[JobId], ends: I64, lengths: I64) -> I64:
    """[running] when their cards are given back, with those after them; FAR: nobody knows."""
    if not chains.after:
        return ends
    found = ends.copy()
    for at, job in enumerate(running):
        more = _summed(chains.after.get(job, ()), lengths)
        found[at] = FAR if more < 0 or ends[at] >= FAR else ends[at] + more
    return found


def starts_of(chains: Chains, running: Sequence[JobId], ends: I64, lengths: I64, turns: I64) -> I64:
    """[jobs] the start of each by those of `turns` and the `ends` of what runs; -1: nobody knows."""
    starts = np.full(len(lengths), -1, np.int64)
    for at, start in zip(chains.turns, turns.tolist(), strict=True):
        starts[at] = start
        if start >= 0:
            _follow(chains.behind.get(at, ()), start, at, lengths, starts)
    for job, end in zip(running, ends.tolist(), strict=True) if chains.after else ():
        if end < FAR:
            _follow(chains.after.get(job, ()), end, None, lengths, starts)
    return starts


def _follow(row: Sequence[int], at: int, first: int | None, lengths: I64, starts: I64) -> None:
    """Write the starts of a `row` that begins at `at`, or once `first` that starts then is over."""
    before = first
    for job in row:
        if before is not None:
            if lengths[before] < 0:
                return
            at += int(lengths[before])
        starts[job], before = at, job


def _summed(row: Sequence[int], lengths: I64) -> int:
    found = [int(lengths[at]) for at in row]
    return -1 if any(length < 0 for length in found) else sum(found)
