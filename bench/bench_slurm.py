"""Jobs of `true` through our service and through Slurm 22.05, on the same machine in the same minutes.

As many slots, a cgroup per job on both sides. Runs are taken in pairs, one after the other, who begins taking
turns, and the ratio is that of a pair, so that other work on the machine weighs on both. Singles are
submitted by several people at once: ours in requests that are answered when the job is on the disk, Slurm's
through its C library, whose answer does not wait for the disk, and by its command sbatch, a process for each.
Slurm runs as one node of all slots and as one node per slot. Processor time is that of all processes of both
sides while one of them works, those that submit and ask included. Skips loudly where Slurm is not installed.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from aliquot.client import Client
from bench.bench_local import JOBS, SLOTS, THREADS, a_service, load, submit_array, submit_singles
from bench.measure import calibrate, print_table, write_results
from bench.slurm import Slurm, a_cluster, find_missing

ROUNDS = 3
MUST_RATIO, MUST_RATE = 3, 60
CELLS = (
    ("singles", 1), ("array", 1), ("singles", SLOTS), ("array", SLOTS), ("sbatch", SLOTS),
)  # fmt: skip  # kind of submission, Slurm's nodes
ACCOUNTS = Path("/sys/fs/cgroup/cpuacct")


class Run(NamedTuple):
    """Jobs a second, and milliseconds of processor time a job, None where the kernel does not count it."""

    rate: float
    cpu_ms: float | None


def main() -> None:
    """Run, print, write."""
    missing = find_missing()
    if missing:
        print(f"SKIPPED, and so not measured: {missing}", file=sys.stderr)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # nothing outlives a benchmark
    calibration = calibrate()
    rows: list[dict[str, Any]] = []
    with an_account() as account:
        for nodes in (1, SLOTS):
            with (
                tempfile.TemporaryDirectory(prefix="slurm-") as folder,
                a_cluster(Path(folder), SLOTS, nodes) as slurm,
                a_service() as client,
            ):
                for kind in (kind for kind, its_nodes in CELLS if its_nodes == nodes):
                    pairs = [a_pair(kind, client, slurm, account, turn) for turn in range(ROUNDS)]
                    rows.append(a_row(kind, nodes, pairs))
                    write_results("slurm", rows, calibration, jobs=JOBS, slots=SLOTS, people=THREADS)
    table = [
        (
            row["kind"], row["slurm_nodes"], f"{row['ours']:.1f}", f"{row['slurm']:.1f}",
            f"{row['ratio']:.1f}", f"{row['least_ratio']:.1f}", told(row["ours_cpu_ms"]),
            told(row["slurm_cpu_ms"]), MUST_RATE, MUST_RATIO, row["load"],
        )
        for row in rows
    ]  # fmt: skip  # a row of the table
    head = (
        "", "Slurm's nodes", "ours/s", "Slurm/s", "ratio", "least", "ours, cpu ms/job", "Slurm, cpu ms/job",
        "must/s", "must", "load",
    )  # fmt: skip  # a row of the table
    print_table(f"{JOBS} jobs of `true`, {SLOTS} slots", head, table)


def a_pair(kind: str, client: Client, slurm: Slurm, account: Path | None, turn: int) -> tuple[Run, Run]:
    """Ours, theirs; theirs first in odd turns."""

    def theirs() -> None:
        if kind == "singles":
            slurm.submit_singles(JOBS, THREADS)
        elif kind == "sbatch":
            slurm.submit_by_command(JOBS, THREADS)
        else:
            slurm.submit_array(JOBS)
        slurm.wait()

    def ours() -> None:
        if kind == "array":
            submit_array(client)
        else:
            submit_singles(client)
        while client.jobs(over=False):
            time.sleep(0.05)

    if turn % 2:
        slurms = measured(theirs, account)
        return measured(ours, account), slurms
    return measured(ours, account), measured(theirs, account)


def measured(run: Callable[[], None], account: Path | None) -> Run:
    """From the first submission until the last is over."""
    before, begin = spent_ms(account), time.perf_counter()
    run()
    seconds, after = time.perf_counter() - begin, spent_ms(account)
    return Run(JOBS / seconds, None if before is None or after is None else (after - before) / JOBS)


def a_row(kind: str, nodes: int, pairs: list[tuple[Run, Run]]) -> dict[str, Any]:
    """Medians, and the ratio of each pair."""
    ratios = [ours.rate / theirs.rate for ours, theirs in pairs]
    ours_cpu = [ours.cpu_ms for ours, _ in pairs if ours.cpu_ms is not None]
    slurm_cpu = [theirs.cpu_ms for _, theirs in pairs if theirs.cpu_ms is not None]
    return {
        "kind": kind,
        "slurm_nodes": nodes,
        "ours": statistics.median(ours.rate for ours, _ in pairs),
        "slurm": statistics.median(theirs.rate for _, theirs in pairs),
        "ratio": statistics.median(ratios),
        "least_ratio": min(ratios),
        "ours_cpu_ms": statistics.median(ours_cpu) if ours_cpu else None,
        "slurm_cpu_ms": statistics.median(slurm_cpu) if slurm_cpu else None,
        "pairs": [[ours._asdict(), theirs._asdict()] for ours, theirs in pairs],
        "load": load(),
    }


def told(cpu_ms: float | None) -> str:
    """In a cell of the table."""
    return "unknown" if cpu_ms is None else f"{cpu_ms:.1f}"


@contextmanager
def an_account() -> Iterator[Path | None]:
    """A control group of version 1 that counts the processor time of this process and all that it starts.

    None where there is no such hierarchy or it is not ours to write.
    """
    folder = ACCOUNTS / f"bench-{os.getpid()}"
    home = ACCOUNTS / own_group().lstrip("/")
    try:
        folder.mkdir()
        enter(folder)
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        enter(home)
        with suppress(OSError):  # something is still in it
            folder.rmdir()


def own_group() -> str:
    """This process's group in that hierarchy."""
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            return path
    return "/"


def enter(folder: Path) -> None:
    """Move this process there."""
    (folder / "cgroup.procs").write_text("0", encoding="ascii")


def spent_ms(account: Path | None) -> float | None:
    """Processor time of all that were ever in it."""
    if account is None:
        return None
    return int((account / "cpuacct.usage").read_text(encoding="ascii")) / 1e6


if __name__ == "__main__":
    main()
