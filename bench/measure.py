"""What every benchmark shares: the machine's description, the calibration loop, results as JSON.

Absolute times are printed beside the time of a loop of ten million additions and scaled to a machine where
that loop takes 0.63 s, so that figures of different machines can be compared.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aliquot.bootstrap import prepare

prepare()

REFERENCE_S = 0.63
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


LOOP = """
total = 0
for _ in range(10_000_000):
    total += 1
"""


def calibrate(rounds: int = 3) -> float:
    """CPU seconds of ten million additions in Python, the least of `rounds`.

    CPU, not wall: on a machine with other work the wall would flatter whatever is scaled by it.
    At the top level of a program, where names are looked up in a dict, as in a script; inside a function the
    same loop takes about half as long.
    """
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        exec(LOOP, {})
        best = min(best, time.process_time() - begin)
    return best


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, Python and library versions, commit."""
    import numba
    import numpy as np

    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "commit": commit or "unknown",
    }


def peak_mib() -> int:
    """Peak resident memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def scaled(seconds: float, calibration: float) -> float:
    """`seconds` as they would be on the reference machine."""
    return seconds * REFERENCE_S / calibration


def write_results(name: str, rows: Any, calibration: float, **extra: Any) -> Path:
    """`bench/results/NAME.json`: machine, calibration and rows."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {
        "benchmark": name,
        "machine": describe_machine(),
        "calibration_s": round(calibration, 3),
        "reference_s": REFERENCE_S,
        **extra,
        "rows": rows,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A Markdown table on standard output."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    sys.stdout.flush()


def trace_folder() -> Path:
    """Where the public traces are: ALIQUOT_TRACES, or `traces` of the folder `shared` beside the project."""
    return Path(os.environ.get("ALIQUOT_TRACES", ROOT.parent / "shared" / "traces"))
