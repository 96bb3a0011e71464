"""Power cuts: a User-Mode Linux machine that runs the service under load is killed at random moments.

Its journal lies on an ext4 image of its own; what its kernel had not written is lost with it. After each boot
every acknowledged submission must be known, and what was told to be over must be over; at the end each job
must have come to its end, and none may have run twice at once, nor again after its end was told. On a disk
whose flushes do nothing the same story has to go wrong, which shows that the cuts are real. Skips loudly
where there is no User-Mode Linux.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_local import load
from bench.measure import calibrate, print_table, write_results
from tests.support.power import Story, careless
from tests.support.uml import find_missing

CUTS = 20


def main() -> None:
    """Run, print, write. A number as argument: so many cuts instead."""
    missing = find_missing()
    if missing:
        print(f"SKIPPED, and so not measured: {missing}", file=sys.stderr)
        return
    cuts = int(sys.argv[1]) if len(sys.argv) > 1 else CUTS
    calibration = calibrate()
    rows = [tell("flushes as it should", cuts, is_careless=False), tell("never flushes", 1, is_careless=True)]
    head = ("disk", "cuts", "acknowledged", "lost", "runs", "what broke", "back after, s", "load")
    print_table("Power cuts", head, [tuple(row.values()) for row in rows])
    write_results("power", rows, calibration)


def tell(disk: str, cuts: int, *, is_careless: bool) -> dict[str, Any]:
    """One disk through `cuts`, and what was found."""
    broke = ""
    with tempfile.TemporaryDirectory(prefix="aliquot-power-") as folder:
        story = Story(Path(folder), int(time.time()), careless(Path(folder)) if is_careless else None)
        try:
            for _ in range(cuts):
                story.cut()
                print(f"{story.cuts} cuts, {len(story.acknowledged)} acknowledged", file=sys.stderr)
            story.finish()
        except AssertionError as error:
            broke = str(error).splitlines()[0][:60]
        ready = statistics.median(story.ready_s) if story.ready_s else None
        return {
            "disk": disk,
            "cuts": story.cuts,
            "acknowledged": len(story.acknowledged),
            "lost": len(story.lost),
            "runs": story.runs,
            "broke": broke,
            "ready_s": None if ready is None else round(ready, 1),
            "load": load(),
        }


if __name__ == "__main__":
    main()
