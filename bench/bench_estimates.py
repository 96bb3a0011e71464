"""Philly October 2017 where no owner says how long a job runs: the planner with and without what it learns.

The trace has no users, so "jobs like it" are those of the same virtual cluster and number of cards. What is
learnt is folded from ends that have happened, so nothing of the future is known. The quantile (0.9) is the
default, chosen before anything was measured; `backfill`'s own numbers were tuned on this month with exact
estimates.

Usage: bench_estimates.py
"""

from __future__ import annotations

import sys
from statistics import fmean

from msgspec.structs import replace

from aliquot.bootstrap_replays import load_philly_month
from aliquot.control.replaying import Estimates, PhillyAsk
from aliquot.control.whatif import find_policy
from aliquot.core.settings import Estimating, Source
from bench.bench_queues import measure, show
from bench.measure import calibrate, trace_folder, write_results

RULES = (("nothing is known", Estimating()), ("learnt", Estimating(Source.BEST)))


def month(name: str, estimating: Estimating) -> dict[str, object]:
    """The three waits of one month without a single estimate."""
    ask = PhillyAsk(estimates=Estimates.NONE, seed=0, folder=trace_folder())
    scenario = load_philly_month(ask)
    settings = replace(find_policy(scenario, "backfill")[1], estimates=estimating)
    waits, seconds = measure(scenario, settings)
    all_waits = [wait for wait, _ in waits.waits]
    row: dict[str, object] = {
        "estimates": name,
        "quantile": estimating.quantile_milli / 1000,
        "jobs": len(all_waits),
        "mean": round(fmean(all_waits), 1),
        "worst": round(max(all_waits)),
        "wide": round(fmean(wait for wait, cards in waits.waits if cards >= 8), 1),
        "cpu_seconds": round(seconds, 1),
    }
    print(row, file=sys.stderr)
    return row


def main() -> None:
    """Run, print, write."""
    calibration = calibrate()
    rows = [month(name, estimating) for name, estimating in RULES]
    show("Philly, no estimates", rows)
    write_results("estimates", rows, calibration, tuned_on="nothing: the default quantile")


if __name__ == "__main__":
    main()
