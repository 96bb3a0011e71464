"""Co-location against Muri, and the baselines, in the authors' published simulator model and traces.

Traces 1 and 3 were used to choose the rules' numbers; the other six had no part in it. Both sides pay
the published start overhead at every event. Must: SRTF and SRSF within 0.1 % on 8 of 8 and Tiresias-L on 7;
with sizes better than Muri-S on 8 of 8, geometric mean at most 0.93 (striven for 0.85); without sizes better
than Muri-L on 4, geometric mean at most 1.05 (striven for 8 of 8).
Usage: bench_muri.py [TRACE ...]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

from aliquot.traces.muri import PUBLISHED, TRACES, read_trace
from aliquot.traces.muri_colocate import Colocated
from aliquot.traces.published.muri_model import F64, Shortest, read_columns, replay
from aliquot.traces.published.muri_tiresias import replay_tiresias
from bench.measure import calibrate, print_table, trace_folder, write_results

TUNED_ON = ("trace1", "trace3")
WORDING = "in the authors' published simulator model and traces"
AGAINST = {"srtf": "srtf", "srsf": "srsf", "tiresias": "tiresias", "ours_s": "muri_s", "ours_l": "muri_l"}


def main() -> None:
    """Run, print, write."""
    calibration = calibrate()
    rows = [measure(trace) for trace in sys.argv[1:] or TRACES]
    summary = sum_up(rows)
    print_rows(rows, summary)
    write_results("muri", rows, calibration, wording=WORDING, tuned_on=TUNED_ON, **summary)


def measure(trace: str) -> dict[str, object]:
    """Every policy on one trace: average completion, its ratio to what was published, seconds it took."""
    columns, sharing = read_columns(read_trace(trace_folder() / "muri", trace))
    policies: dict[str, Callable[[], F64]] = {
        "srtf": lambda: replay(columns, Shortest(columns, by_cards=False)),
        "srsf": lambda: replay(columns, Shortest(columns, by_cards=True)),
        "tiresias": lambda: replay_tiresias(columns),
        "ours_s": lambda: replay(columns, Colocated(columns, sharing, sized=True)),
        "ours_l": lambda: replay(columns, Colocated(columns, sharing, sized=False)),
    }
    row: dict[str, object] = {"trace": trace, "jobs": len(columns.cards), "tuned_on": trace in TUNED_ON}
    for name, run in policies.items():
        began = time.perf_counter()
        average = float(run().mean())
        row[name] = average
        row[f"{name}_seconds"] = time.perf_counter() - began
        row[f"{name}_ratio"] = average / getattr(PUBLISHED[trace], AGAINST[name])
    print(
        f"{trace}: with sizes {row['ours_s_ratio']:.3f}, without {row['ours_l_ratio']:.3f}", file=sys.stderr
    )
    return row


def sum_up(rows: list[dict[str, object]]) -> dict[str, object]:
    """How many baselines are reproduced, how often ours is better, geometric means of the ratios."""
    found: dict[str, object] = {}
    for name in ("srtf", "srsf", "tiresias"):
        found[f"{name}_reproduced"] = sum(abs(row[f"{name}_ratio"] - 1) <= 0.001 for row in rows)
    for name in ("ours_s", "ours_l"):
        ratios = [row[f"{name}_ratio"] for row in rows]
        found[f"{name}_better"] = sum(ratio < 1 for ratio in ratios)
        found[f"{name}_geometric_mean"] = geometric_mean(ratios)
        held_out = [row[f"{name}_ratio"] for row in rows if not row["tuned_on"]]
        found[f"{name}_geometric_mean_held_out"] = geometric_mean(held_out) if held_out else None
    return found


def print_rows(rows: list[dict[str, object]], summary: dict[str, object]) -> None:
    """Both tables, losing cells and all."""
    baselines = [
        [
            row["trace"],
            row["jobs"],
            *(f"{row[name]:.1f} ({row[f'{name}_ratio']:.5f})" for name in list(AGAINST)[:3]),
        ]
        for row in rows
    ]
    print_table(
        f"Baselines: average completion in s (ratio to the published one), {WORDING}",
        ["trace", "jobs", "SRTF", "SRSF", "Tiresias-L"],
        baselines,
    )
    shared = []
    for row in rows:
        known = PUBLISHED[str(row["trace"])]
        cells = [f"{row['trace']} (tuned on)" if row["tuned_on"] else row["trace"]]
        for name, theirs in (("ours_s", known.muri_s), ("ours_l", known.muri_l)):
            ratio = row[f"{name}_ratio"]
            cells += [f"{theirs:.0f}", f"{row[name]:.0f}", f"{ratio:.3f}" + ("" if ratio < 1 else " worse")]
        shared.append(cells)
    means = [f"{summary[f'{name}_geometric_mean']:.3f}" for name in ("ours_s", "ours_l")]
    shared.append(["geometric mean", "", "", means[0], "", "", means[1]])
    print_table(
        f"Sharing: average completion in s, {WORDING}",
        ["trace", "Muri-S", "Aliquot, sizes known", "ratio", "Muri-L", "Aliquot, sizes unknown", "ratio"],
        shared,
    )


def geometric_mean(values: list[float]) -> float:
    """Their geometric mean."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


if __name__ == "__main__":
    main()
