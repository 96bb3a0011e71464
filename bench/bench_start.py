"""How long `aliquot --help` takes as a whole process: what a person waits for. Median of ten runs."""

from __future__ import annotations

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
    for arguments in (["--help"], ["simulate", "--help"], ["--version"]):
        times = []
        for _ in range(RUNS):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-m", "aliquot", *arguments], check=True, capture_output=True)
            times.append(time.perf_counter() - begin)
        median = statistics.median(times)
        rows.append(
            {"command": " ".join(arguments), "median_s": median, "scaled_s": scaled(median, calibration)}
        )
    table = [(row["command"], f"{row['median_s']:.2f}", f"{row['scaled_s']:.2f}", MUST_S) for row in rows]
    print_table("Start-up, seconds", ["aliquot", "median", "scaled", "must"], table)
    write_results("start", rows, calibration)


if __name__ == "__main__":
    main()
