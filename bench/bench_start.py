"""How long `aliquot --help` and the like take as whole processes: what a person waits for. Medians.

By the clock, which other work on the machine makes longer, and in processor time, which it does less.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

from bench.measure import calibrate, print_table, scaled, write_results

RUNS = 10
MUST_S = 0.5


def main() -> None:
    """Run, print, write."""
    calibration = calibrate()
    rows = []
    for arguments in (["--help"], ["simulate", "--help"], ["jobs", "--help"], ["--version"]):
        times, busy = [], []
        for _ in range(RUNS):
            before, begin = own_s(), time.perf_counter()
            subprocess.run([sys.executable, "-m", "aliquot", *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - begin)
            busy.append(own_s() - before)
        median = statistics.median(times)
        row = {"command": " ".join(arguments), "median_s": median, "scaled_s": scaled(median, calibration)}
        rows.append({**row, "processor_s": statistics.median(busy), "load": os.getloadavg()[0]})
    table = [
        (
            row["command"], f"{row['median_s']:.2f}", f"{row['scaled_s']:.2f}", MUST_S,
            f"{row['processor_s']:.3f}", f"{row['load']:.1f}",
        )
        for row in rows
    ]  # fmt: skip  # as the heading
    print_table("Start-up, seconds", ["aliquot", "median", "scaled", "must", "processor", "load"], table)
    write_results("start", rows, calibration)


def own_s() -> float:
    """Processor time of children that are over, in seconds; finer than the ticks of `os.times`."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
