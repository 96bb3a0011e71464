"""One planning cycle on a large busy site: 4,000 x 8 cards, 140,000 jobs running, 10,000 waiting.

A cycle is what the loop does between two moments: some jobs end, some are submitted (folded), the world is
frozen, planned with the memo of the cycle before, the plan is checked and folded. Nothing is rebuilt. Must:
<= 0.5 s, striven for 0.1 s, process CPU on one core, scaled by the calibration loop.

Two scenes: in `full` a cycle follows 4 ends (within about 2 s) and little starts, in `turnover` 150. Jobs end
before their estimates, some later. Whatever starts is replaced, so that 10,000 wait in 100 queues. Policies:
fair order with decay and aging, and backfill with reservations; the same with preemption; and every preset as
it is. The engine is played by hand: what is granted has started by the next cycle, what is being stopped is
over after its grace.

Usage: bench_cycle.py [CYCLES] [full|turnover|fair|preempt|PRESET ...]
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.config import BUILTIN
from aliquot.config.objectives import PRESETS
from aliquot.core import commit
from aliquot.core.events import Ended, Event, Evicting, Granted, JobSubmitted, Outcome, Started
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.memo import Memo
from aliquot.core.planner import plan
from aliquot.core.records import JobRecord
from aliquot.core.settings import Backfill, Order, Preemption, Settings
from aliquot.core.steps import Evict, Place, Reserve, Wait
from aliquot.core.world import World
from bench.cycle_site import HOUR, NOW, Crowd, Size, history, queues
from bench.measure import calibrate, peak_mib, print_table, scaled, write_results

SEED = 17
WARM_UP = 8
MUST_S, STRIVE_S = 0.5, 0.1
SCENES = {"full": 4, "turnover": 150}
ORDER = Order(aging_ms=HOUR, aging_ceiling=10)
FAIR = Settings(order=ORDER, backfill=Backfill())
POLICIES = {
    "fair": FAIR,
    "preempt": replace(FAIR, preemption=Preemption(least_run_ms=600_000)),
    **{preset.name: dict(BUILTIN)[preset.name] for preset in PRESETS},
}
COUNTED = (Place, Evict, Reserve, Wait)
DONE = ("started", "stopped", "reserved", "waits", "refused")
PARTS = ("fold", "freeze", "plan", "commit", "fold again")


class Cycle(NamedTuple):
    """Seconds of each of PARTS, and how many of each of DONE."""

    seconds: tuple[float, ...]
    done: tuple[int, ...]

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.seconds)


class Site:
    """The site, its planner, and an engine played by hand."""

    def __init__(self, policy: Settings, size: Size, seed: int = SEED) -> None:
        self.crowd = Crowd(seed, size)
        self.world, self.memo = World(half_life_ms=ORDER.half_life_ms), Memo()
        for event in history(self.crowd):
            self.world.apply(event)
        used = dict.fromkeys(self.crowd.names, 0)
        for (queue, _), asked in self.world.accounts.usage.items():
            used[queue] += asked.milli
        self.settings = replace(policy, queues=queues(self.crowd, used))
        self.now = NOW
        self._granted: list[Granted] = []
        self._ending = [self._end_of(record.job, record.granted_ms, 1) for record in self._held()]
        heapify(self._ending)

    def cycle(self, ends: int) -> Cycle:
        """`ends` running jobs are over, those that started are replaced; then one turn of the loop."""
        seen = list(self._observe(ends))
        marks = [time.process_time()]
        self.world.apply_all(seen)
        marks.append(time.process_time())
        frozen = self.world.freeze()
        marks.append(time.process_time())
        decided = plan(frozen, self.settings, self.now, self.memo)
        marks.append(time.process_time())
        verdict = commit.check(decided, self.world.freeze(), self.now)
        marks.append(time.process_time())
        self.world.apply_all(verdict.events)
        marks.append(time.process_time())
        self._note(verdict.events)
        done = [sum(isinstance(step, kind) for step in decided.steps) for kind in COUNTED]
        seconds = tuple(after - before for before, after in pairwise(marks))
        return Cycle(seconds, (*done, len(verdict.refused)))

    def _held(self) -> list[JobRecord]:
        return [self.world.jobs[job] for job in sorted(self.world.grants)]

    def _end_of(self, job: Job, begun: int, attempt: int) -> tuple[int, JobId, int]:
        """When it will be over: within its estimate, for one in ten up to a quarter later; never yet."""
        chance = self.crowd.chance
        most = 1.25 if chance.random() < 0.1 else 1.0
        end = begun + int((job.estimate_ms or 24 * HOUR) * chance.uniform(0.5, most))
        return (max(end, self.now + chance.randrange(HOUR)) if end <= self.now else end, job.id, attempt)

    def _observe(self, ends: int) -> Iterable[Event]:
        """Time passes until the next `ends` jobs are over."""
        for granted in self._granted:
            yield Started(self.now, granted.job, granted.attempt)
        self._granted = []
        over = 0
        while over < ends:
            at, job, attempt = heappop(self._ending)
            self.now = max(self.now, at)
            record = self.world.jobs.get(job)
            if record is None or record.attempt != attempt or not record.granted_ms:
                continue
            over += record.evicting is None
            yield Ended(at, job, attempt, Outcome.SUCCEEDED if record.evicting is None else Outcome.FAILED)
        for _ in range(self.crowd.size.waiting - len(self.world.lines.pending)):
            yield JobSubmitted(self.now, self.crowd.coming(self.now))

    def _note(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Granted):
                self._granted.append(event)
                job = self.world.jobs[event.job].job
                heappush(self._ending, self._end_of(job, self.now, event.attempt))
            elif isinstance(event, Evicting):
                heappush(self._ending, (self.now + event.grace_ms, event.job, event.attempt))


def measure(site: Site, policy: str, scene: str, cycles: int) -> dict[str, object]:
    """One policy in one scene, with the time of the calibration loop between the cycles."""
    first = site.cycle(SCENES[scene])
    for _ in range(WARM_UP - 1):
        site.cycle(SCENES[scene])
    gc.collect()
    runs, loops = [], []
    for at in range(cycles):
        if at % 5 == 0:
            loops.append(calibrate(1))
        runs.append(site.cycle(SCENES[scene]))
    calibration = median(loops)
    totals = [run.total for run in runs]
    row: dict[str, object] = {
        "policy": policy,
        "scene": scene,
        "median_s": round(median(totals), 4),
        "worst_s": round(max(totals), 4),
        "loop_s": round(calibration, 3),
        "median_scaled_s": round(scaled(median(totals), calibration), 4),
        "worst_scaled_s": round(scaled(max(totals), calibration), 4),
        "first_s": round(first.total, 2),
        **{f"{part}_s": round(median(run.seconds[at] for run in runs), 4) for at, part in enumerate(PARTS)},
        **{
            name: round(sum(values) / cycles, 1)
            for name, values in zip(DONE, zip(*(run.done for run in runs), strict=True), strict=True)
        },
        "running": len(site.world.grants),
        "waiting": len(site.world.lines.pending),
        "cycles": cycles,
        "must_s": MUST_S,
        "strive_s": STRIVE_S,
        "peak_mib": peak_mib(),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def main() -> None:
    """Run, print, write."""
    asked = sys.argv[1:]
    cycles = next((int(word) for word in asked if word.isdigit()), 30)
    policies = [name for name in POLICIES if name in asked] or list(POLICIES)
    scenes = [name for name in SCENES if name in asked] or list(SCENES)
    rows = []
    for policy in policies:
        site = Site(POLICIES[policy], Size())
        rows += [measure(site, policy, scene, cycles) for scene in scenes]
    print_table("One planning cycle, s of CPU", list(rows[0]), [list(row.values()) for row in rows])
    name = "cycle" if len(policies) == len(POLICIES) else f"cycle_{'_'.join(policies)}"
    write_results(name, rows, calibrate(1), seed=SEED)


if __name__ == "__main__":
    main()
