"""What a service costs that has little to do, and how soon it answers when many wait.

At rest: 100 jobs that sleep on slices of 8 cards; the service's share of a core over a minute, its memory,
and what a supervisor has for itself. Then 10,000 jobs wait behind them, and `jobs` is asked for through the
API and by the command line, as a whole process: in seconds by the clock, which other work on the machine
makes longer, and of processor time on both sides, which it hardly does.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aliquot.client import Client, Submission
from bench.bench_local import a_service, load
from bench.measure import ROOT, calibrate, print_table, write_results

RUNNING, WAITING, LOT = 100, 10_000, 1000
REST_S, SETTLE_S = 60, 10
ROUNDS = 7
SLICE = {"gpu": {"count": 1, "memory": "2GiB", "compute": "5%"}}
SLEEP = Submission(command=("sleep", "3600"), spec=SLICE, name="sleep", grace="0s")
WHOLE = Submission(command=("true",), spec={"gpu": {"count": 8}}, name="waits")
_TICK = os.sysconf("SC_CLK_TCK")
_PEER = struct.Struct("=iII")


def main() -> None:
    """Run, print, write."""
    calibration = calibrate()
    with a_service() as client:
        rows = [*at_rest(client), *many_wait(client)]
    table = [
        (row["what"], row["unit"], f"{row['value']:.2f}", row["must"], row["strive"], row["load"])
        for row in rows
    ]
    print_table("At rest, and when many wait", ("", "", "found", "must", "strive", "load"), table)
    write_results("rest", rows, calibration, running=RUNNING, waiting=WAITING, rounds=ROUNDS)


def at_rest(client: Client) -> list[dict[str, Any]]:
    """With 100 running jobs."""
    client.submit_all([SLEEP] * RUNNING)
    while sum(job.phase == "running" for job in client.jobs(over=False)) < RUNNING:
        time.sleep(0.5)
    time.sleep(SETTLE_S)
    pid = server_pid(client.path)
    before, begin = cpu_s(pid), time.perf_counter()
    time.sleep(REST_S)
    share = 100 * (cpu_s(pid) - before) / (time.perf_counter() - begin)
    supervisors = [private_mib(other) for other in supervisors_of(client.path.parent, pid)]
    return [
        a_row("service, 100 jobs running", "% of a core", share, 1, 0.3),
        a_row("service, resident", "MiB", status_mib(pid, "VmRSS"), 250, 120),
        a_row("a supervisor, its own", "MiB", statistics.median(supervisors), 3, 3),
    ]


def many_wait(client: Client) -> list[dict[str, Any]]:
    """With 10,000 more that wait."""
    for _ in range(WAITING // LOT):
        client.submit_all([WHOLE] * LOT)
    time.sleep(SETTLE_S)
    words = [sys.executable, "-m", "aliquot", "jobs", "--socket", str(client.path)]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}

    def by_command(*more: str) -> None:
        subprocess.run([*words, *more], env=variables, stdout=subprocess.DEVNULL, check=True)

    pid = server_pid(client.path)
    rows = []
    for what, call in (
        ("API", client.jobs),
        ("command", by_command),
        ("command with --json", lambda: by_command("--json")),
    ):
        seconds, busy = timed(call, pid)
        rows.append(a_row(f"`jobs` of 10,000, {what}", "s", seconds, 0.5, 0.2))
        rows.append(a_row(f"the same, processor time of {what} and service", "s", busy, 0.5, 0.2))
    return [*rows, a_row("service, 10,000 waiting, resident", "MiB", status_mib(pid, "VmRSS"), 250, 120)]


def a_row(what: str, unit: str, value: float, must: float, strive: float) -> dict[str, Any]:
    """A cell."""
    return {"what": what, "unit": unit, "value": value, "must": must, "strive": strive, "load": load()}


def timed(call: Callable[[], object], service: int) -> tuple[float, float]:
    """Seconds by the clock and of processor time, ours and the service's; medians of some calls."""
    times, busy = [], []
    for _ in range(ROUNDS):
        before, begin = cpu_s(service) + own_s(), time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        busy.append(cpu_s(service) + own_s() - before)
    return statistics.median(times), statistics.median(busy)


def own_s() -> float:
    """Processor time of this process and of its children that are over."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def server_pid(path: Path) -> int:
    """Who listens at `path`, as the kernel says."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.connect(str(path))
        pid, _, _ = _PEER.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        return int(pid)


def cpu_s(pid: int) -> float:
    """Seconds of processor time a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def status_mib(pid: int, key: str) -> float:
    """A size of a process, MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith(f"{key}:"))


def private_mib(pid: int) -> float:
    """Memory that only this process has, MiB."""
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines())
    return sum(int(words[1]) for words in lines if words[0] in {"Private_Clean:", "Private_Dirty:"}) / 1024


def supervisors_of(state: Path, service: int) -> list[int]:
    """Processes of the program below `state`, but for the service's child that all of them come from."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            program = (path / "exe").readlink()
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if program.is_relative_to(state / "bin") and parent != service:
            found.append(int(path.name))
    return found


if __name__ == "__main__":
    main()
