"""Whole cards shared by agreement, in the one planner: mean completion with and without, on invented load.

32 cards; jobs of 1 to 8 cards that come for two days, each heavy on one of storage, processor, GPU and
network (or even on all), with the published overheads of Muri on top: once about as many as the cards can do,
once half as many again. The same jobs for every row of a seed; all may share, and estimates are right.
Usage: bench_together.py [SEEDS]
"""

from __future__ import annotations

import math
import sys
from random import Random
from typing import Any

from msgspec.structs import replace

from aliquot.bootstrap import make_sim
from aliquot.control.whatif import Run
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.report.observation import Observation
from aliquot.core.settings import HOUR_MS, Backfill, Colocation, Settings
from aliquot.core.together import Together
from aliquot.core.workload import Offer, Scenario
from bench.measure import calibrate, print_table, write_results
from bench.small_site import small_nodes

LOADS = (190, 300)
KINDS = (
    (700, 100, 100, 100),
    (100, 600, 250, 50),
    (50, 150, 700, 100),
    (50, 50, 300, 600),
    (250, 250, 250, 250),
)
PLAIN = Settings(policy=(("best-fit", 1.0),), backfill=Backfill())
RULES: tuple[tuple[str, Colocation | None], ...] = (
    ("apart", None),
    ("gain 0.333, 2 jobs", Colocation()),
    ("gain 0.1, 2 jobs", Colocation(least_gain_milli=100)),
    ("gain 0.333, 4 jobs", Colocation(most=4)),
    ("any gain, 4 jobs", Colocation(least_gain_milli=0, most=4)),
)


def main() -> None:
    """Run, print, write."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = [measure(name, rules, jobs, seeds) for jobs in LOADS for name, rules in RULES]
    head = ("jobs", "rule", "completion, mean", "wait, mean", "makespan", "jobs that shared")
    print_table("Whole cards shared by agreement", head, [_shown(row) for row in rows])
    write_results("together", rows, calibrate(), seeds=seeds)


def measure(name: str, rules: Colocation | None, jobs: int, seeds: int) -> dict[str, Any]:
    """Means over the seeds of one rule."""
    runs = [run(rules, jobs, seed) for seed in range(1, seeds + 1)]
    found = {key: sum(one[key] for one in runs) / len(runs) for key in runs[0]}
    print(jobs, name, {key: round(value, 2) for key, value in found.items()}, flush=True)
    return {"jobs": jobs, "rule": name, **found}


def run(rules: Colocation | None, jobs: int, seed: int) -> dict[str, float]:
    """One run to its end."""
    scenario = site(jobs, seed)
    settings = replace(PLAIN, colocation=rules)
    watch = Observation(scenario, settings=settings)
    Run(scenario, settings, make_sim, (watch,)).finish()
    card = watch.result("together").scorecard
    assert card.finished == jobs
    return {
        "completion_h": float(card.completion_mean_ms or 0) / HOUR_MS,
        "wait_h": float(card.wait_mean_ms or 0) / HOUR_MS,
        "makespan_h": float(card.makespan_ms or 0) / HOUR_MS,
        "together": float(card.together),
    }


def site(jobs: int, seed: int) -> Scenario:
    """Four nodes of eight cards and two days of arrivals."""
    random = Random(seed)
    offers, at = [], 0.0
    for seq in range(jobs):
        at += random.expovariate(jobs / (48 * HOUR_MS))
        cards = random.choices((1, 2, 4, 8), (40, 25, 20, 15))[0]
        work = max(60_000, int(random.lognormvariate(math.log(2 * HOUR_MS), 0.8)))
        together = Together(random.choice((10_000, 20_000, 35_000)), random.choice(KINDS))
        asked = (Request(cards=cards),)
        job = Job(JobId(f"j{seq}"), asked, int(at), seq, estimate_ms=work, together=together)
        offers.append(Offer(job, work))
    return Scenario("together", small_nodes(), tuple(offers), ())


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    hours = (f"{row[key]:.2f} h" for key in ("completion_h", "wait_h", "makespan_h"))
    return (str(row["jobs"]), row["rule"], *hours, f"{row['together']:.0f}")


if __name__ == "__main__":
    main()
