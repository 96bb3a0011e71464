"""Arrays of a width, for counts that know nothing of it: as many chains of jobs as may run at once.

Each chain begins with one that runs or may start, and goes on one after the other; so only the first of each
has a turn, and what it takes it keeps until the last is over. Between two of a chain nobody else gets its
cards: nearly so where jobs go in the order they came. If one has no known end, nobody behind it has a start.
"""

from __future__ import annotations

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

    def leads_to(self, turn: int, asked: Collection[int]) -> bool:
        """Whether the start of one that has a turn is asked for, or of one behind it."""
        return turn in asked or any(at in asked for at in self.behind.get(turn, ()))


def chains_of(world: Frozen, jobs: Sequence[Job]) -> Chains:
    """The chains of `jobs`, which wait, in line."""
    limited = {job.array.name: job.array.width for job in jobs if job.array and job.array.width is not None}
    running: dict[str, list[JobId]] = {name: [] for name in limited}
    for job in sorted(world.grants) if limited else ():
        array = world.jobs[job].job.array
        if array is not None and array.name in running:
            running[array.name].append(job)
    chains = Chains((), {}, {job: [] for jobs_of in running.values() for job in jobs_of})
    turns, heads = [], dict[str, list[int]]()
    seen: dict[str, int] = {}
    for at, job in enumerate(jobs):
        name = job.array.name if job.array is not None else ""
        if name not in limited:
            turns.append(at)
            continue
        first, number = heads.setdefault(name, []), seen.get(name, 0)
        if len(running[name]) + len(first) < limited[name]:
            first.append(at)
            turns.append(at)
            chains.behind[at] = []
            continue
        rows = [*(chains.after[each] for each in running[name]), *(chains.behind[each] for each in first)]
        rows[number % len(rows)].append(at)
        seen[name] = number + 1
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
