"""How many cards each elastic job gets: the shares that save most time, changed only where it pays.

A job offers sizes and how fast it is at each. Its slowness is (smallest size's speed / speed) ** evenness; a
waiting job counts as very slow. The shares lower the weighted sum of slownesses: with evenness 1 the time per
unit of work, nearer to 0 what all get through together. For speeds that rise ever more slowly with cards the
sum is convex and small steps reach its least; elsewhere (a set that outgrows its node) larger ones are tried.

A change stops a job for a while, so each job that changes costs `change_milli` of its slowness: it grows only
for more than that, and takes cards of another only for more than both of them lose. Whoever changed less than
`dwell_ms` ago is left alone, except that its spare cards may go to a job that waits. No job is put off its
last size here: that is preemption's business. Pure and deterministic: equal gains go to the earlier job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from aliquot.core.errors import SpecError
from aliquot.core.settings import ElasticRules

WAITING_SLOWNESS: Final = 1000.0
"""Slowness of a job without cards; one at its smallest size has 1."""
LEAST_GAIN: Final = 1e-9


class ElasticJob(NamedTuple):
    """What may be given to a job. `sizes` rise from its minimum to its maximum; `speeds` are in any one unit.

    `held` is one of `sizes`, or 0 while it waits; `rested_ms` is the time since its cards last changed.
    """

    sizes: tuple[int, ...]
    speeds: tuple[float, ...]
    held: int = 0
    rested_ms: int = 0
    weight: float = 1.0


class Change(NamedTuple):
    """`job` goes to the size at index `level` of its sizes; -1 is waiting."""

    job: int
    level: int
    gain: float
    cards: int


def share_cards(
    jobs: Sequence[ElasticJob],
    capacity: int,
    rules: ElasticRules = ElasticRules(),  # noqa: B008 - a frozen value
) -> tuple[int, ...]:
    """Cards of each job, in their order: 0 (waits) or one of its sizes; at most `capacity` in all.

    Raises SpecError for sizes that do not rise from 1 or more, speeds that are not positive, a `held` that is
    none of the sizes, or holdings above capacity.
    """
    if not (rules.change_milli >= 0 and rules.dwell_ms >= 0 and rules.evenness_milli > 0):
        raise SpecError("out of range", field="rules", value=rules, hint="0 or more, evenness above 0")
    for at, job in enumerate(jobs):
        _check(at, job)
    shares = _Shares(jobs, capacity, rules)
    if shares.free < 0:
        raise SpecError("jobs hold more than there is", field="capacity", value=capacity)
    # Every turn lowers the objective by LEAST_GAIN or more, so this ends; the bound is for rounding.
    for _ in range(100 * (len(jobs) + 1)):
        if not shares.improve():
            break
    return tuple(shares.cards)


def slowness(job: ElasticJob, cards: int, rules: ElasticRules = ElasticRules()) -> float:  # noqa: B008 - a frozen value
    """Weighted slowness with `cards` (0, or one of its sizes); 0.5 with 4 times the speed, by default."""
    if cards == 0:
        return job.weight * WAITING_SLOWNESS
    ratio = job.speeds[0] / job.speeds[job.sizes.index(cards)]
    return float(job.weight * ratio ** (rules.evenness_milli / 1000))


class _Shares:
    """The shares while they are worked out; lives for one call."""

    def __init__(self, jobs: Sequence[ElasticJob], capacity: int, rules: ElasticRules) -> None:
        self.jobs, self.rules = jobs, rules
        self.levels = [job.sizes.index(job.held) if job.held else -1 for job in jobs]
        self.cards = [job.held for job in jobs]
        self.free = capacity - sum(self.cards)
        # By level; the last, level -1, is waiting.
        self.times = [[slowness(job, size, rules) for size in (*job.sizes, 0)] for job in jobs]

    def improve(self) -> bool:
        """Make the best change there is: growth into free cards first, then a transfer."""
        ups = self._ups()
        fit = [up for up in ups if up.cards <= self.free]
        if fit:
            best = min(fit, key=lambda up: (-up.gain / up.cards, up.job))
            self._apply(best)
            return True
        ups.sort(key=lambda up: (-up.gain, up.job, up.level))
        best_pair: tuple[float, Change, Change] | None = None
        for down in self._downs():
            pair = self._taker(ups, down)
            if pair is not None and (best_pair is None or pair[0] > best_pair[0] + LEAST_GAIN):
                best_pair = pair
        if best_pair is None:
            return any(self._gather(up) for up in ups if self.levels[up.job] < 0)
        self._apply(best_pair[1])
        self._apply(best_pair[2])
        return True

    def _gather(self, up: Change) -> bool:
        """Start a waiting job on cards of several others, the cheapest steps first, or nothing."""
        levels, cards, free, net = self.levels.copy(), self.cards.copy(), self.free, up.gain
        while up.cards > self.free:
            steps = [down for down in self._downs() if down.level == self.levels[down.job] - 1]
            if not steps:
                break
            step = min(steps, key=lambda down: (down.gain / down.cards, down.job))
            net += step.gain
            self._apply(step)
        if up.cards <= self.free and net > LEAST_GAIN:
            self._apply(up)
            return True
        self.levels, self.cards, self.free = levels, cards, free
        return False

    def _taker(self, ups: list[Change], down: Change) -> tuple[float, Change, Change] | None:
        for up in ups:
            net = up.gain + down.gain
            if net <= LEAST_GAIN:
                return None
            if up.job == down.job or up.cards > self.free - down.cards:
                continue
            if self._is_resting(down.job) and self.levels[up.job] >= 0:
                continue
            return net, down, up
        return None

    def _ups(self) -> list[Change]:
        found = []
        for at, job in enumerate(self.jobs):
            level = self.levels[at]
            if level >= 0 and self._is_resting(at):
                continue
            for to in range(level + 1, len(job.sizes)):
                gain = self._gain(at, to)
                if gain > LEAST_GAIN:
                    found.append(Change(at, to, gain, job.sizes[to] - self.cards[at]))
                if level < 0:
                    break  # a waiting job begins with its smallest size and grows in the next turns
        return found

    def _downs(self) -> list[Change]:
        return [
            Change(at, to, self._gain(at, to), job.sizes[to] - self.cards[at])
            for at, job in enumerate(self.jobs)
            for to in range(self.levels[at] - 1, -1, -1)
        ]

    def _gain(self, at: int, to: int) -> float:
        """What going to level `to` lowers the objective by, the cost of a first change included."""
        return self._cost(at, self.levels[at]) - self._cost(at, to)

    def _cost(self, at: int, level: int) -> float:
        job, times = self.jobs[at], self.times[at]
        held = job.sizes.index(job.held) if job.held else -1
        stop = times[held] * self.rules.change_milli / 1000 if held not in {-1, level} else 0.0
        return times[level] + stop

    def _is_resting(self, at: int) -> bool:
        """Whether the job changed too recently to be touched again; one changed in this call may go on."""
        job = self.jobs[at]
        return job.held > 0 and self.cards[at] == job.held and job.rested_ms < self.rules.dwell_ms

    def _apply(self, change: Change) -> None:
        self.levels[change.job] = change.level
        self.cards[change.job] += change.cards
        self.free -= change.cards


def _check(at: int, job: ElasticJob) -> None:
    rising = all(low < high for low, high in zip((0, *job.sizes), job.sizes, strict=False))
    if not job.sizes or not rising:
        raise SpecError("sizes must rise from 1 or more", field=f"jobs[{at}].sizes", value=job.sizes)
    if len(job.speeds) != len(job.sizes) or not all(speed > 0 for speed in job.speeds):
        raise SpecError("one positive speed per size", field=f"jobs[{at}].speeds", value=job.speeds)
    if job.held and job.held not in job.sizes:
        raise SpecError("none of the sizes", field=f"jobs[{at}].held", value=job.held, hint=f"{job.sizes}")
    if not job.weight > 0:
        raise SpecError("must be above 0", field=f"jobs[{at}].weight", value=job.weight)
