"""Jobs of `true` through our service and through Slurm 22.05, on the same machine in the same minutes.

As many slots, a cgroup per job on both sides. Runs are taken in pairs, one after the other, and the ratio is
that of a pair, so that other work on the machine weighs on both. Singles are submitted by several people at
once: ours through the API, each in a request that is answered when the job is on the disk, Slurm's by sbatch.
Slurm runs as one node of all slots and as one node per slot; the better is compared. Skips loudly where Slurm
is not installed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aliquot.client import Client
from bench.bench_local import JOBS, SLOTS, THREADS, a_service, load, submit_array, submit_singles
from bench.measure import calibrate, print_table, write_results
from bench.slurm import Slurm, a_cluster, find_missing

ROUNDS = 3
MUST_RATIO, MUST_RATE = 3, 60
KINDS = ("singles", "array")


def main() -> None:
    """Run, print, write."""
    missing = find_missing()
    if missing:
        print(f"SKIPPED, and so not measured: {missing}", file=sys.stderr)
        return
    calibration = calibrate()
    rows: list[dict[str, Any]] = []
    for nodes in (1, SLOTS):
        with (
            tempfile.TemporaryDirectory(prefix="slurm-") as folder,
            a_cluster(Path(folder), SLOTS, nodes) as slurm,
            a_service() as client,
        ):
            for kind in KINDS:
                pairs = [a_pair(kind, client, slurm) for _ in range(ROUNDS)]
                rows.append(a_row(kind, nodes, pairs))
    table = [
        (
            row["kind"], row["slurm_nodes"], f"{row['ours']:.1f}", f"{row['slurm']:.1f}",
            f"{row['ratio']:.1f}", f"{row['least_ratio']:.1f}", MUST_RATE, MUST_RATIO, row["load"],
        )
        for row in rows
    ]  # fmt: skip  # a row of the table
    head = ("", "Slurm's nodes", "ours/s", "Slurm/s", "ratio", "least", "must/s", "must", "load")
    print_table(f"{JOBS} jobs of `true`, {SLOTS} slots", head, table)
    write_results("slurm", rows, calibration, slots=SLOTS, jobs=JOBS, rounds=ROUNDS, people=THREADS)


def a_pair(kind: str, client: Client, slurm: Slurm) -> tuple[float, float]:
    """Jobs a second: ours, theirs."""

    def theirs() -> None:
        if kind == "singles":
            slurm.submit_singles(JOBS, THREADS)
        else:
            slurm.submit_array(JOBS)
        slurm.wait()

    def ours() -> None:
        if kind == "singles":
            submit_singles(client)
        else:
            submit_array(client)
        while client.jobs(over=False):
            time.sleep(0.05)

    return rate(ours), rate(theirs)


def rate(run: Callable[[], None]) -> float:
    """Jobs a second, from the first submission until the last is over."""
    begin = time.perf_counter()
    run()
    return JOBS / (time.perf_counter() - begin)


def a_row(kind: str, nodes: int, pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Medians, and the ratio of each pair."""
    ratios = [ours / theirs for ours, theirs in pairs]
    return {
        "kind": kind,
        "slurm_nodes": nodes,
        "ours": statistics.median(ours for ours, _ in pairs),
        "slurm": statistics.median(theirs for _, theirs in pairs),
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
        "pairs": pairs,
        "load": load(),
    }


if __name__ == "__main__":
    main()
