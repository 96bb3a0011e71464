"""How an elastic training job runs in the Pollux authors' simulator: goodput, batch sizes, rounds, restarts.

These are the rules of a replay, not decisions: who gets which cards comes from a `Chooser`. Goodput is steps
per second times what a step is worth: a batch of B instead of B0 is worth `gain` steps of B0, from the
gradient statistics measured at that epoch. As in the artifact of OSDI'21: rounds of 60 s, a pause of 30 s
whenever a job's cards change (its first start included), an epoch's end rounded to a whole second.

Not modelled, as there: interference between jobs, loading times, a fitted (hence wrong at first) speed model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from aliquot.core.errors import SpecError
from aliquot.traces.pollux import PolluxJob
from aliquot.traces.pollux_profiles import Profile
from aliquot.traces.published.interpolation import interpolate

ROUND_S = 60
PAUSE_S = 30
NODES = 16
CARDS_PER_NODE = 4
BATCH_SAMPLES = 20
MOST_PROFILED_NODES = 16
NEARLY = 1e-8

Nodes = tuple[int, ...]
"""The node of every card of a job; cards of one node side by side."""
Shape = tuple[int, ...]
"""Cards per node, such as (4, 4, 2)."""
Split = tuple[int, int]
"""(local batch, accumulation steps)."""


class Chooser(Protocol):
    """Decides at the end of every round."""

    def choose(self, now: int, jobs: Sequence[Run]) -> Mapping[str, Nodes]:
        """The nodes of every job that shall run in the next round; `jobs` are those waiting or running."""
        ...


class Speeds:
    """Goodput of one application by shape and epoch. Remembers what it has worked out; holds nothing else."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.ends = profile.course.progress.min(axis=0)
        self._timings: dict[tuple[Shape, int], tuple[float, float] | None] = {}
        self._goodputs: dict[tuple[Shape, Split, int], float | None] = {}
        self._splits: dict[tuple[Shape, int], Split | None] = {}

    def goodput(self, shape: Shape, split: Split, epoch: int) -> float | None:
        """Progress per second; None where nothing was measured that says so."""
        key = (shape, split, epoch)
        if key not in self._goodputs:
            self._goodputs[key] = self._work_out(*key)
        return self._goodputs[key]

    def fixed_split(self, cards: int, batch: int) -> Split:
        """How a batch that is given is spread over `cards`."""
        local = math.ceil(batch / cards - NEARLY)
        steps = math.ceil(local / self.profile.largest_local - NEARLY) - 1
        if cards == 1 and batch > self.profile.initial_batch:
            steps = max(1, steps)
        local = math.ceil(local / (steps + 1) - NEARLY)
        return min(local, self.profile.largest_batch // (cards * (steps + 1))), steps

    def best_split(self, shape: Shape, epoch: int) -> Split | None:
        """The split with the best goodput among BATCH_SAMPLES batch sizes; None where the shape can't run."""
        key = (shape, epoch)
        if key not in self._splits:
            self._splits[key] = self._search(shape, epoch)
        return self._splits[key]

    def best(self, shape: Shape, epoch: int) -> float:
        """Goodput of the best split; 0 where the shape can't run."""
        split = self.best_split(shape, epoch)
        return 0.0 if split is None else self.goodput(shape, split, epoch) or 0.0

    def _search(self, shape: Shape, epoch: int) -> Split | None:
        profile, cards = self.profile, sum(shape)
        least = max(profile.initial_batch, profile.smallest_local * cards)
        if least > profile.largest_batch:
            return None
        found: tuple[float, Split] | None = None
        for batch in np.geomspace(least, profile.largest_batch, BATCH_SAMPLES):
            split = self._split_of(float(batch), cards)
            if not profile.smallest_local <= split[0] <= profile.largest_local:
                continue
            goodput = self.goodput(shape, split, epoch)
            if goodput is not None and (found is None or goodput > found[0]):
                found = goodput, split
        return None if found is None else found[1]

    def _split_of(self, batch: float, cards: int) -> Split:
        local = batch / cards
        steps = math.ceil(local / self.profile.largest_local - NEARLY) - 1
        if cards == 1 and local > self.profile.initial_batch + NEARLY:
            steps = max(1, steps)
        local = math.ceil(local / (steps + 1) - NEARLY)
        return min(local, self.profile.largest_batch // (cards * (steps + 1))), steps

    def _work_out(self, shape: Shape, split: Split, epoch: int) -> float | None:
        timing = self._timing(_least_rotation(shape), split[0])
        if timing is None:
            return None
        local, steps = split
        batch = sum(shape) * local * (steps + 1)
        square, variance = self._gradient(batch, epoch)
        scale = batch / self.profile.initial_batch
        gain = (variance + square) / (variance / scale + square)
        step, sync = timing
        return gain / (step + (step - sync) * steps)

    def _gradient(self, batch: int, epoch: int) -> tuple[float, float]:
        """Square and variance of the gradient, linearly between the batch sizes that were measured."""
        course = self.profile.course
        if not course.batches[0] <= batch <= course.batches[-1]:
            raise SpecError(
                "no such batch was measured",
                field=f"batch of {self.profile.name}",
                value=batch,
                hint=f"{course.batches[0]} to {course.batches[-1]}",
            )
        square = float(np.interp(batch, course.batches, course.grad_sqr[:, epoch]))
        return square, float(np.interp(batch, course.batches, course.grad_var[:, epoch]))

    def _timing(self, shape: Shape, local: int) -> tuple[float, float] | None:
        key = (shape, local)
        if key not in self._timings:
            self._timings[key] = self._look_up(shape, local)
        return self._timings[key]

    def _look_up(self, shape: Shape, local: int) -> tuple[float, float] | None:
        measured = self.profile.by_placement.get(shape)
        if measured is not None:
            batches, times = measured
            if not batches[0] <= local <= batches[-1]:
                return None
            step, sync = (float(np.interp(local, batches, times[:, at])) for at in range(2))
            return step, sync
        query = np.array([min(len(shape), MOST_PROFILED_NODES), sum(shape), local], float)
        mixed = interpolate(self.profile.points, self.profile.times, query)
        return None if mixed is None else (float(mixed[0]), float(mixed[1]))


class Run:
    """One job in a replay: where it runs, how far it is, what it has had."""

    def __init__(self, job: PolluxJob, speeds: Speeds, tuned: bool) -> None:
        self.job, self.speeds = job, speeds
        self.batch = speeds.profile.fixed.batch if tuned else job.batch
        self.nodes: Nodes = ()
        self.shape: Shape = ()
        self.split: Split | None = None
        self.pause = self.moves = self.epoch = 0
        self.progress = 0.0
        self.attained = 0.0  # card-seconds
        self.ended: int | None = None
        self.moved_at = -(10**9)

    @property
    def name(self) -> str:
        """The job's name in the workload."""
        return self.job.name

    def seat(self, now: int, nodes: Nodes) -> None:
        """Give the job these cards; nothing happens where it has them already."""
        if nodes == self.nodes:
            return
        self.nodes, self.shape = nodes, shape_of(nodes)
        self.split = None
        if nodes:
            self.pause, self.moves, self.moved_at = PAUSE_S, self.moves + 1, now
            self._settle()

    def advance(self, now: int, seconds: int) -> None:
        """Run from `now` for `seconds`."""
        if not self.nodes or self.ended is not None:
            return
        cards = len(self.nodes)
        waited = min(self.pause, seconds)
        self.pause -= waited
        self.attained += waited * cards
        now, left = now + waited, seconds - waited
        while left > 0 and self.ended is None:
            goodput = self._goodput()
            end = float(self.speeds.ends[self.epoch])
            if self.progress + goodput * left < end:
                self.progress += goodput * left
                spent = left
            else:
                spent = round((end - self.progress) / goodput)
                self.progress = end
                self.epoch += 1
                if self.epoch >= self.speeds.profile.fixed.epochs:
                    self.ended = now + spent
            self.attained += spent * cards
            now, left = now + spent, left - spent
            if self.ended is None:
                self._settle()

    def _settle(self) -> None:
        if self.batch is not None:
            self.split = self.speeds.fixed_split(len(self.nodes), self.batch)
        else:
            self.split = self.speeds.best_split(self.shape, self.epoch)

    def _goodput(self) -> float:
        found = None if self.split is None else self.speeds.goodput(self.shape, self.split, self.epoch)
        if found is None:
            raise SpecError(
                "nothing was measured that says how fast this runs",
                field=f"{self.name} on {self.shape}",
                value=self.split,
            )
        return found


def shape_of(nodes: Nodes) -> Shape:
    """Cards per node in the order of `nodes`: (3, 3, 3, 7) is (3, 1)."""
    shape: list[int] = []
    for at, node in enumerate(nodes):
        if at and node == nodes[at - 1]:
            shape[-1] += 1
        else:
            shape.append(1)
    return tuple(shape)


def replay(
    jobs: Sequence[PolluxJob], speeds: Mapping[str, Speeds], chooser: Chooser, tuned: bool
) -> list[Run]:
    """Every job run to its end under `chooser`, in the order given. `tuned` jobs choose their own batch."""
    runs = [Run(job, speeds[job.application], tuned) for job in jobs]
    now = 0
    while any(run.ended is None for run in runs):
        for run in runs:
            run.advance(now, ROUND_S)
        now += ROUND_S
        active = [run for run in runs if run.ended is None and run.job.submitted_s <= now]
        if not active:
            continue
        chosen = chooser.choose(now, active)
        _check(chosen)
        for run in active:
            run.seat(now, chosen.get(run.name, ()))
    return runs


def average_completion(runs: Sequence[Run]) -> float:
    """Mean seconds from submission to the end."""
    return sum((run.ended or 0) - run.job.submitted_s for run in runs) / len(runs)


def _check(chosen: Mapping[str, Nodes]) -> None:
    used = Counter(node for nodes in chosen.values() for node in nodes)
    for node, cards in used.items():
        if not 0 <= node < NODES or cards > CARDS_PER_NODE:
            raise SpecError("more cards than the node has", field=f"node {node}", value=cards)


def _least_rotation(shape: Shape) -> Shape:
    return min(shape[at:] + shape[:at] for at in range(len(shape)))
