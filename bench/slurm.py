"""Slurm on this machine, from Debian's packages, tuned for many short jobs.

As its high-throughput guide says: no accounting, no job completion log, FIFO (`sched/builtin`), nothing
logged but errors, finished jobs forgotten after 2 s, ten threads of munge, several ports. Beyond it, found by
measuring (the table is in docs/benchmarks.md): `Epilog`, a program that does nothing. Without one the
controller learns the end of most jobs from the answer to its own request, and then only notes that it should
plan, at the next turn of a loop of one second; told that an epilog is over, it plans at once.
`proctrack/cgroup`: a cgroup for each job, as ours have, and cheaper than its other ways. What a node keeps of
its jobs lies in memory, as ours do; the controller's state lies on the disk. The slots are one node's cores,
or one node each (`nodes`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PACKAGES: Final = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "munged": "munge",
    "cc": "gcc libc6-dev",
}
HEADER: Final = Path("/usr/include/slurm/slurm.h")
SOURCE: Final = Path(__file__).with_name("slurm_client.c")
MEMORY: Final = Path("/dev/shm")
FIRST_PORT: Final = 16817
CONTROL_PORTS: Final = 4
PATIENCE_S: Final = 30
TUNED: Final = "batch_sched_delay=0"  # 3 s by default

_COMMON: Final = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={ports}
SlurmctldDebug=error
SlurmdDebug=error
Epilog=/bin/true
ProctrackType=proctrack/cgroup
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters={parameters}
PriorityType=priority/basic
SelectType={select}
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
MinJobAge=2
MaxJobCount=100000
MaxArraySize=100001
SlurmdParameters=config_overrides
PartitionName=all Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
"""
_CGROUP: Final = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"
_SCRIPT: Final = "#!/bin/sh\ntrue\n"


def find_missing() -> str:
    """What to install before Slurm can run here, or ""."""
    if os.geteuid() != 0:
        return "Slurm's daemons can be started by root only"
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [package for program, package in PACKAGES.items() if shutil.which(program, path=path) is None]
    missing += [] if HEADER.exists() else ["libslurm-dev"]
    return f"no Slurm here; Debian: apt-get install {' '.join(missing)}" if missing else ""


class Slurm:
    """A cluster that is up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._script = folder / "job.sh"
        self._script.write_text(_SCRIPT, encoding="utf-8")
        self._client = str(folder / "client")
        self._given = 0
        subprocess.run(["cc", "-O2", "-o", self._client, SOURCE, "-lslurm"], check=True)

    def submit_singles(self, count: int, people: int) -> None:
        """`count` jobs by `people` at once, each in a process of his own through Slurm's library."""
        self._submit([self._client, "submit", str(count // people)], count, people)

    def submit_by_command(self, count: int, people: int) -> None:
        """`count` jobs by `people` at once, each with a call of sbatch for every job."""
        loop = 'for job in $(seq "$1"); do sbatch -Q -o /dev/null "$2" || exit; done'
        self._submit(["sh", "-c", loop, "sh", str(count // people), str(self._script)], count, people)

    def submit_array(self, count: int) -> None:
        """One array of `count`."""
        self._run("sbatch", "-Q", "-o", "/dev/null", f"--array=1-{count}", str(self._script))
        self._given += count

    def wait(self) -> None:
        """Until no job waits, runs or completes."""
        self._run(self._client, "wait", str(self._given))

    def give_up(self) -> None:
        """End what waits and runs: what supervises a job outlives the daemons and goes on asking for them."""
        with suppress(SystemExit, subprocess.TimeoutExpired):
            self._run("scancel", "--user=root")
            self._run(self._client, "wait", "0", patience_s=PATIENCE_S)

    def idle_nodes(self) -> int:
        """Nodes that are up and do nothing."""
        return self._run("sinfo", "-h", "-N", "-t", "idle", "-o", "%n").count("\n")

    def _submit(self, words: list[str], count: int, people: int) -> None:
        begun = [subprocess.Popen(words, env=self._environment()) for _ in range(people)]
        if any(code for code in [one.wait() for one in begun]):
            raise SystemExit(f"{words[0]} failed")
        self._given += count

    def _run(self, *words: str, patience_s: float | None = None) -> str:
        done = subprocess.run(
            words,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=patience_s,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return os.environ | {"SLURM_CONF": str(self._folder / "slurm.conf")}


@contextmanager
def a_cluster(folder: Path, slots: int, nodes: int, parameters: str = TUNED) -> Iterator[Slurm]:
    """A cluster of `slots` on `nodes`, with its state in `folder`, until the end of the context."""
    for name in ("munge", "state"):
        (folder / name).mkdir(mode=0o755, parents=True)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    spool = tempfile.mkdtemp(prefix="slurm-", dir=MEMORY if MEMORY.is_dir() else folder)
    _write_conf(folder, spool, slots, nodes, parameters)
    daemons = [_munged(folder / "munge"), ["slurmctld", "-D", "-c"]]
    daemons += [["slurmd", "-D", "-N", f"n{number}"] for number in range(1, nodes + 1)]
    variables = os.environ | {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
    }
    begun: list[subprocess.Popen[bytes]] = []
    try:
        for words in daemons:
            quiet = subprocess.DEVNULL
            begun.append(subprocess.Popen(words, env=variables, stdin=quiet, stdout=quiet, stderr=quiet))
            time.sleep(0.5 if words[0] == "munged" else 0)
        slurm = Slurm(folder)
        _wait_ready(slurm, nodes, begun)
        try:
            yield slurm
        finally:
            slurm.give_up()
    finally:
        for daemon in reversed(begun):
            daemon.terminate()
            daemon.wait()
        shutil.rmtree(spool, ignore_errors=True)


def _write_conf(folder: Path, spool: str, slots: int, nodes: int, parameters: str) -> None:
    host = os.uname().nodename
    select = "select/linear" if nodes == slots else "select/cons_tres\nSelectTypeParameters=CR_Core"
    text = _COMMON.format(
        host=host, folder=folder, spool=spool, parameters=parameters, select=select, nodes=nodes,
        ports=f"{FIRST_PORT}-{FIRST_PORT + CONTROL_PORTS - 1}",
    )  # fmt: skip  # as a row
    for number in range(1, nodes + 1):
        text += (
            f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1"
            f" Port={FIRST_PORT + CONTROL_PORTS + number} CPUs={slots // nodes} RealMemory=1000"
            " State=UNKNOWN\n"
        )
    (folder / "slurm.conf").write_text(text, encoding="utf-8")
    (folder / "cgroup.conf").write_text(_CGROUP, encoding="utf-8")


def _munged(folder: Path) -> list[str]:
    files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    return [
        "munged",
        "--foreground",
        "--force",
        "--num-threads=10",
        *(f"--{name}={folder}/{file}" for name, file in files.items()),
    ]


def _wait_ready(slurm: Slurm, nodes: int, begun: list[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            if slurm.idle_nodes() == nodes:
                return
        except SystemExit:  # not yet
            pass
        if time.monotonic() > end or any(daemon.poll() is not None for daemon in begun):
            raise SystemExit("Slurm does not come up; its logs are lost with its folder")
        time.sleep(0.1)
