"""Jobs that do nothing through a running service: how many a second, and how soon one starts.

One process serves simulated cards; every job is a real process with a supervisor, a cgroup and its place in
the record, which is flushed to the disk before a submission is answered. Singles are submitted one by one
from several threads, the bulk in one request. A start is measured from before the submission to the time
that the job itself prints. Other work on the machine slows all of it: the load is written beside the figures.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aliquot.client import Client, Submission
from aliquot.core.errors import AliquotError
from bench.measure import REFERENCE_S, ROOT, calibrate, print_table, write_results

SHAPE, SLOTS = "a100-40x8", 8
JOBS, ROUNDS, THREADS = 500, 5, 4
STARTS, WARM = 40, 5
IDLE_S = 0.05
FIGURES = ("median", "best", "worst", "scaled")
MUST_RATE, MUST_START_MS = 60, 50
SPEC = {"gpu": {"count": 1}}
NOTHING = Submission(command=("true",), spec=SPEC, name="nothing")
CLOCK = Submission(command=("date", "+%s%N"), spec=SPEC, name="clock")


def main() -> None:
    """Run, print, write."""
    calibration = calibrate()
    scale = REFERENCE_S / calibration
    with a_service() as client:
        starts = [start_ms(client) for _ in range(WARM + STARTS)][WARM:]
        rows: list[dict[str, Any]] = [
            {
                "what": "submit to start, idle, ms",
                "median": statistics.median(starts),
                "scaled": statistics.median(starts) * scale,
                "best": min(starts),
                "worst": max(starts),
                "must": MUST_START_MS,
                "load": load(),
            }
        ]
        for what, submit in (
            ("singles, jobs/s", submit_singles),
            ("one batch, jobs/s", submit_batch),
            ("one array, jobs/s", submit_array),
        ):
            rates = [rate(client, submit) for _ in range(ROUNDS)]
            rows.append(
                {
                    "what": what,
                    "median": statistics.median(rates),
                    "scaled": statistics.median(rates) / scale,
                    "best": max(rates),
                    "worst": min(rates),
                    "must": MUST_RATE,
                    "load": load(),
                }
            )
    table = [(row["what"], *(f"{row[key]:.1f}" for key in FIGURES), row["must"], row["load"]) for row in rows]
    print_table(f"Jobs through the service, {SLOTS} slots", ["", *FIGURES, "must", "load"], table)
    write_results("local", rows, calibration, slots=SLOTS, jobs=JOBS, rounds=ROUNDS, threads=THREADS)


def start_ms(client: Client) -> float:
    """From before the submission of one job to what it printed as its time."""
    time.sleep(IDLE_S)
    begin = time.time_ns()
    job = client.submit(CLOCK)
    client.wait(job)
    return (int(client.output(job).body) - begin) / 1e6


def rate(client: Client, submit: Callable[[Client], None]) -> float:
    """Jobs a second from the first submission until the last job is over."""
    begin = time.perf_counter()
    submit(client)
    while client.jobs(over=False):
        time.sleep(0.01)
    return JOBS / (time.perf_counter() - begin)


def submit_singles(client: Client) -> None:
    """Each in a request of its own."""

    def some() -> None:
        for _ in range(JOBS // THREADS):
            client.submit(NOTHING)

    threads = [threading.Thread(target=some) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def submit_batch(client: Client) -> None:
    """All in one."""
    client.submit_all([NOTHING] * JOBS)


def submit_array(client: Client) -> None:
    """All as one array."""
    client.submit(replace(NOTHING, spec={**SPEC, "array": {"size": JOBS}}))


def load() -> float:
    """Processes that wanted to run in the last minute, on average."""
    return round(os.getloadavg()[0], 1)


@contextmanager
def a_service() -> Iterator[Client]:
    """A service with a record of its own, on the disk of the folder for temporary files."""
    with tempfile.TemporaryDirectory(prefix="aliquot-") as folder, serve(Path(folder) / "s") as client:
        yield client


@contextmanager
def serve(state: Path, shape: str = SHAPE, *options: str) -> Iterator[Client]:
    """A service on `state` until the end of the context, when its jobs are over or given up."""
    client = Client(state / "aliquot.sock")
    words = [sys.executable, "-m", "aliquot", "up", "--simulate", shape, "--state", str(state), *options]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(words, env=variables, stdout=quiet, stderr=quiet) as up:
        try:
            while not answers(client):
                if up.poll() is not None:
                    raise SystemExit("the service did not start; 'aliquot up' says why")
                time.sleep(0.01)
            yield client
        finally:
            give_up(client)
            up.terminate()


def give_up(client: Client) -> None:
    """End what runs and start no more: nothing outlives a benchmark."""
    with suppress(AliquotError):
        for node in client.site().nodes:
            client.drain(node)
        while running := [job for job in client.jobs(over=False) if job.phase != "pending"]:
            for job in running:
                with suppress(AliquotError):
                    client.cancel(job.id)
            time.sleep(0.05)


def answers(client: Client) -> bool:
    """Whether there is a service yet."""
    try:
        client.site()
    except AliquotError:
        return False
    return True


if __name__ == "__main__":
    main()
