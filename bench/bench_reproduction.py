"""The six published policies on the 17 public workloads, at 130 % offered load, against the published means.

Same seeds, same offered order, same nodes. Must: each mean within 0.5 points, FGD and best fit within 0.2.
Usage: bench_reproduction.py [half]; with `half`, all but FGD and best fit run over five of the ten seeds.
"""

from __future__ import annotations

import sys

from bench.measure import calibrate, print_table, write_results
from bench.openb import ALL, PUBLISHED, SEEDS, Case, mean, placed_in_all, published, run_cases

CLOSE = ("fgd", "best-fit")


def main() -> None:
    """Run, print, write."""
    half = sys.argv[1:] == ["half"]
    seeds = {policy: SEEDS[:5] if half and policy not in CLOSE else SEEDS for policy in PUBLISHED}
    calibration = calibrate()
    cases = [
        Case(workload, policy, seed) for workload in ALL for policy in PUBLISHED for seed in seeds[policy]
    ]
    outcomes = run_cases(cases)
    rows, table = [], []
    worst = dict.fromkeys(PUBLISHED, 0.0)
    for workload in ALL:
        cells = [workload]
        for policy in PUBLISHED:
            mine = [o.at_130 for o in outcomes if o.case.workload == workload and o.case.policy == policy]
            theirs = mean(published()[workload, policy, seed][1] for seed in seeds[policy])
            off = mean(mine) - theirs
            worst[policy] = max(worst[policy], abs(off))
            rows.append(
                {
                    "workload": workload,
                    "policy": policy,
                    "ours": mean(mine),
                    "published": theirs,
                    "off": off,
                    "placed": placed_in_all(outcomes, workload, policy),
                }
            )
            cells.append(f"{mean(mine):.2f} ({off:+.2f})")
        table.append(cells)
    table.append(["largest difference", *(f"{value:.2f}" for value in worst.values())])
    print_table("Allocation at 130 %: ours (minus published)", ["workload", *PUBLISHED], table)
    write_results("reproduction", rows, calibration, seeds=seeds, worst=worst)


if __name__ == "__main__":
    main()
