"""How long one run of the placement experiment takes on one core: the whole of plan, commit and fold.

Compiled kernels are loaded before. The published simulator takes about 600 s for a run on two virtual cores.
"""

from __future__ import annotations

from bench.measure import calibrate, print_table, scaled, write_results
from bench.openb import Case, run_case

MUST = {("future-packing", "list"): 10.0, ("future-packing", "window"): 20.0, ("fgd", "list"): 1.5}
WORKLOADS = ("default", "gpushare100")
SEED = 42


def main() -> None:
    """Run, print, write."""
    for policy, mix in MUST:
        run_case(Case("default", policy, SEED, 0, mix))
    calibration = calibrate()
    rows = []
    for (policy, mix), must in MUST.items():
        for workload in WORKLOADS:
            seconds = run_case(Case(workload, policy, SEED, 0, mix)).seconds
            rows.append(
                {
                    "policy": policy,
                    "mix": mix,
                    "workload": workload,
                    "seconds": seconds,
                    "scaled": scaled(seconds, calibration),
                    "must": must,
                }
            )
    table = [
        (
            row["policy"],
            row["mix"],
            row["workload"],
            f"{row['seconds']:.2f}",
            f"{row['scaled']:.2f}",
            row["must"],
        )
        for row in rows
    ]
    head = ("policy", "mix", "workload", "s", "scaled", "must")
    print_table(f"One run, seconds on one core (calibration loop {calibration:.2f} s)", head, table)
    write_results("time", rows, calibration, seed=SEED)


if __name__ == "__main__":
    main()
