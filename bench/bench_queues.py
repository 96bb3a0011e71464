"""Queues through the planner, commit and fold: a public month against published rules, and Kueue's shapes.

Philly October 2017 on 80 x 8 cards. Must with exact estimates: mean wait <= 2,850 s, worst <= 155,000 s, mean
of jobs of 8 cards or more <= 15,700 s, all at once; with estimates wrong by up to ten times either way, mean
of 10 seeds, <= 2,850, 165,000 and 20,000. Striven for: a mean <= 2,000 at the same worst and wide waits. The
rules' numbers were tuned on this month (there is no other), with the count-based pass of `room.backfill`.

Kueue: decided admissions a second of CPU, mean usage of the queues until they drain (used over nominal, as
theirs). Theirs were measured end to end, with an API server and clients limited to 50 calls a second; ours
are the decision core, commit and fold in virtual time: no API server. Must: 2,000 a second, usage no lower.
Kernels are compiled before anything is measured: that happens once per installation.

Usage: bench_queues.py [philly] [wrong] [kueue] [SEED ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from statistics import fmean

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.bootstrap_replays import load_philly_month
from aliquot.control.replaying import Estimates, KueueAsk, PhillyAsk
from aliquot.control.whatif import Run, find_policy
from aliquot.core.events import Event, Granted, JobSubmitted
from aliquot.core.settings import Order, Preemption, Settings
from aliquot.core.workload import Scenario
from aliquot.core.world import World
from aliquot.traces.kueue import SHAPES, load_kueue
from bench.measure import calibrate, print_table, scaled, trace_folder, write_results

PUBLISHED = {
    "fifo": (12410, 137981, 15694),
    "skip-ahead": (2697, 302422, 20403),
    "easy": (2845, 152356, 15656),
}
THEIRS = {"baseline": (42.7, 55.9), "topology": (37.4, 62.4), "large": (42.4, 38.6)}


class Waits:
    """Submission to first grant, s, with the cards asked for; and usage of queues over time."""

    def __init__(self, nominal_milli: int = 0) -> None:
        self.submitted: dict[str, tuple[int, int]] = {}
        self.waits: list[tuple[float, int]] = []
        self.granted = 0
        self._nominal = nominal_milli
        self._area: dict[str, int] = {}
        self._last: dict[str, tuple[int, int]] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Count."""
        for event in events:
            if isinstance(event, JobSubmitted):
                cards = sum(request.cards for request in event.job.members)
                self.submitted[event.job.id] = (event.at, cards)
            elif isinstance(event, Granted):
                self.granted += 1
                if event.job in self.submitted:
                    at, cards = self.submitted.pop(event.job)
                    self.waits.append(((event.at - at) / 1000, cards))
        if self._nominal and events:
            self._note_usage(events[-1].at, world)

    def usage(self) -> float:
        """Mean over queues of used over nominal, until each queue's last use, %."""
        parts = [100 * area / (self._last[queue][0] * self._nominal) for queue, area in self._area.items()]
        return fmean(parts) if parts else 0.0

    def _note_usage(self, at: int, world: World) -> None:
        now = {queue: asked.milli for (queue, _), asked in world.accounts.usage.items()}
        for queue in {*now, *self._last}:
            since, milli = self._last.get(queue, (0, 0))
            used = now.get(queue, 0)
            if used != milli:
                self._area[queue] = self._area.get(queue, 0) + milli * (at - since)
                self._last[queue] = (at, used)


def measure(scenario: Scenario, settings: Settings, nominal_milli: int = 0) -> tuple[Waits, float]:
    """What one run gave, and its seconds of CPU."""
    waits = Waits(nominal_milli)
    run = Run(scenario, settings, make_sim, [waits])
    began = time.process_time()
    run.finish()
    return waits, time.process_time() - began


def philly(kind: Estimates, seed: int, policy: str) -> dict[str, object]:
    """One month under one policy."""
    scenario = load_philly_month(PhillyAsk(estimates=kind, seed=seed, folder=trace_folder()))
    waits, seconds = measure(scenario, find_policy(scenario, policy)[1])
    all_waits = [wait for wait, _ in waits.waits]
    row: dict[str, object] = {
        "policy": policy,
        "estimates": kind.value,
        "seed": seed,
        "jobs": len(all_waits),
        "mean": round(fmean(all_waits), 1),
        "worst": round(max(all_waits)),
        "wide": round(fmean(wait for wait, cards in waits.waits if cards >= 8), 1),
        "published": PUBLISHED.get(policy),
        "cpu_seconds": round(seconds, 1),
    }
    print(row, file=sys.stderr)
    return row


def kueue(name: str, calibration: float, *, reclaim: bool) -> dict[str, object]:
    """One of Kueue's shapes, with or without taking back what was lent."""
    preemption = Preemption(grace_ms=0) if reclaim else None
    settings = Settings(policy=(("best-fit", 1.0),), preemption=preemption, order=Order(half_life_ms=0))
    scenario = load_kueue(KueueAsk(shape=name), lambda queues: (("x", replace(settings, queues=queues)),))
    nominal = 20 * SHAPES[name].cpu_milli
    waits, seconds = measure(scenario, scenario.policies[0][1], nominal)
    rate = waits.granted / scaled(seconds, calibration)
    row: dict[str, object] = {
        "shape": name,
        "reclaim": reclaim,
        "admissions": waits.granted,
        "per_second_scaled": round(rate),
        "cpu_seconds": round(seconds, 2),
        "usage": round(waits.usage(), 1),
        "mean_wait": round(fmean(wait for wait, _ in waits.waits), 2),
        "theirs_per_second": THEIRS[name][0],
        "theirs_usage": THEIRS[name][1],
    }
    print(row, file=sys.stderr)
    return row


def show(title: str, rows: list[dict[str, object]]) -> None:
    """All columns."""
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])


def main() -> None:
    """Run, print, write."""
    asked = sys.argv[1:]
    seeds = [int(word) for word in asked if word.isdigit()] or list(range(10))
    parts = [word for word in asked if not word.isdigit()] or ["philly", "kueue", "wrong"]
    calibration = calibrate()
    if "philly" in parts:
        policies = ("backfill", "easy", "skip-ahead", "fifo")
        rows = [philly(Estimates.EXACT, 0, policy) for policy in policies]
        show("Philly, exact estimates", rows)
        write_results("queues_philly", rows, calibration, tuned_on="this month")
    if "kueue" in parts:
        for name in ("baseline", "topology"):
            kueue(name, calibration, reclaim=True)
        rows = [kueue(name, calibration, reclaim=reclaim) for name in SHAPES for reclaim in (False, True)]
        show("Kueue's shapes", rows)
        write_results("queues_kueue", rows, calibration)
    if "wrong" in parts:
        rows = [philly(Estimates.WRONG10, seed, policy) for policy in ("backfill", "easy") for seed in seeds]
        show("Philly, estimates wrong by up to ten times", rows)
        write_results("queues_philly_wrong", rows, calibration, tuned_on="this month")


if __name__ == "__main__":
    main()
