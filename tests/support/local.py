"""A small service of the local engine in one thread: real journal, real processes, first-fit planning.

    with Site(tmp_path) as site:
        site.submit("j1", "echo hello").until_over("j1")
        site.output("j1") == "hello\n"

`crash` forgets everything that is not on the disk or in the kernel, as kill -9 of the service would.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

import pytest

from aliquot.bootstrap_kernels import Warming
from aliquot.config import read_environment
from aliquot.core import commit
from aliquot.core.events import (
    Ended,
    Event,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    Outcome,
    Started,
    StartRefused,
)
from aliquot.core.ids import GrantId, JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Request
from aliquot.core.lifecycle import Phase
from aliquot.engines.local.cgroups import Cgroups
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.compiled import find_supervisor
from aliquot.engines.local.folders import Folder
from aliquot.engines.local.journal import SqliteJournal
from aliquot.engines.local.launcher import Launcher
from aliquot.engines.local.leftovers import find_leftovers, find_supervisors
from aliquot.engines.local.orders import mark_of
from aliquot.engines.local.payload import (
    Ending,
    Payload,
    Stop,
    decode_endings,
    decode_payload,
    encode_endings,
    encode_payload,
)
from aliquot.engines.local.places import Places
from tests.support.build import a_job, a_node
from tests.support.first_fit import first_fit
from tests.support.invariants import broken_rules

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = float(os.environ.get("ALIQUOT_TEST_PATIENCE_S", "20"))
SLOTS: Final = 4


def supervisor() -> Path:
    """The compiled supervisor, kept under `build/`; skips where there is no compiler."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler; Debian: apt-get install gcc libc6-dev")
    return find_supervisor(ROOT / "build" / "supervisor")


@lru_cache
def warm_kernels() -> None:
    """What services compile, compiled before one is waited for."""
    warming = Warming(read_environment(os.environ).cache, ROOT / "build")
    if not warming.is_done:
        warming.begin()
        warming.wait()


def a_payload(script: str | Sequence[str], **how: Any) -> Payload:
    """A shell script, or a command in words. A short grace, so that no test waits for one by accident."""
    command = ("sh", "-c", script) if isinstance(script, str) else tuple(script)
    return Payload(command, **{"stop": Stop(grace_ms=500), **how})


class Site:
    """One machine with `SLOTS` cards under `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: Sequence[Node] = (),
        cgroups: Cgroups | None = None,
        durable: bool = True,
    ) -> None:
        self.folder, self.cgroups, self.durable = folder, cgroups, durable
        self.nodes = nodes or (a_node("here", SLOTS),)
        self.places = Places(supervisor(), folder / "attempts", folder / "output")
        self.told: list[Event] = []
        self._number = 0
        self._open()
        self.cluster.tell(*[NodeJoined(0, node) for node in self.nodes])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends whatever still runs: a test leaves nothing behind."""
        self._close()
        for folder in find_supervisors(self.places.state):
            folder.command("kill test-over")
        wait_for(lambda: not find_supervisors(self.places.state), "supervisors to go")

    def crash(self) -> Self:
        """A service that begins again with what the disk and the kernel know."""
        self._close()
        self._open()
        return self

    # --- what people do --------------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        script: str | Sequence[str],
        request: Request | Sequence[Request] | None = None,
        **how: Any,
    ) -> Self:
        """A job of one whole card unless `request` says otherwise; `how` goes to its payload."""
        self._number += 1
        job = a_job(name, request, at=self.clock.now(), seq=self._number)
        self.journal.attach(job.id, encode_payload(a_payload(script, **how)))
        self.cluster.tell(JobSubmitted(0, job))
        return self

    def cancel(self, name: str) -> Self:
        """Its owner gives it up."""
        self.cluster.tell(JobCancelled(0, JobId(name)))
        return self

    # --- the loop --------------------------------------------------------------------------------------

    def turn(self, wait_ms: int = 0) -> Sequence[Event]:
        """See, record, fold, plan, record, fold, carry out; first waits up to `wait_ms` for news."""
        if wait_ms:
            self.cluster.wait(self.clock.now() + wait_ms)
        seen = self.cluster.observe()
        self._record(seen)
        frozen = self.world.freeze()
        self._record(commit.check(first_fit(frozen, self.clock.now()), frozen, self.clock.now()).events)
        self.cluster.carry_out(self.world.outstanding())
        return seen

    def until(self, holds: Callable[[], bool], what: str = "it") -> Self:
        """Turns until `holds`."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, f"waited {PATIENCE_S} s for {what}; told {self.told[-5:]}"
            self.turn(20)
        return self

    def until_running(self, *names: str) -> Self:
        """Turns until each of the jobs runs."""
        return self.until(lambda: all(self.phase(name) is Phase.RUNNING for name in names), f"{names} to run")

    def until_over(self, *names: str) -> Self:
        """Turns until each of the jobs is known and over."""
        return self.until(
            lambda: all(self._is_known(name) and self.phase(name) is None for name in names),
            f"{names} to end",
        )

    # --- what is ---------------------------------------------------------------------------------------

    def phase(self, name: str) -> Phase | None:
        """Its phase, None where it is over or was never there."""
        record = self.world.jobs.get(JobId(name))
        return record.phase if record else None

    def outcomes(self, name: str) -> list[Outcome | None]:
        """How each attempt ended, in order; None for a refused start."""
        return [
            event.outcome if isinstance(event, Ended) else None
            for event in self.told
            if isinstance(event, (Ended, StartRefused)) and event.job == name
        ]

    def starts(self, name: str) -> list[int]:
        """Attempts told to run."""
        return [event.attempt for event in self.told if isinstance(event, Started) and event.job == name]

    def ending(self, name: str, attempt: int = 1, member: int = 0) -> Ending:
        """How a member that is over ended, as the record keeps it."""
        ending = decode_endings(self.journal.endings(JobId(name))[attempt])[member]
        assert ending is not None
        return ending

    def output(self, name: str, attempt: int = 1, member: int = 0) -> str:
        """What it printed."""
        path = self.launcher.output_of(GrantId(JobId(name), attempt, member))
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def at(self, name: str, attempt: int = 1, member: int = 0) -> Folder:
        """The folder of a member."""
        return Folder(self.places.state, GrantId(JobId(name), attempt, member))

    def processes(self, name: str, attempt: int = 1, member: int = 0) -> list[int]:
        """Living processes of a member."""
        folder = self.at(name, attempt, member)
        return find_leftovers(mark_of(folder), folder.begun(), None)

    def _open(self) -> None:
        self.journal = SqliteJournal(self.folder / "journal.db", durable=self.durable)
        self.world = self.journal.resume()
        self.clock = LocalClock()
        self.launcher = Launcher(
            self.places, self.clock.now, self._payload, cgroups=self.cgroups, keep=self._keep
        )
        self.said: list[str] = []
        self.launcher.say = self.said.append
        self.cluster = LocalCluster(self.launcher, self.clock)
        self.cluster.resume(self.world)

    def _close(self) -> None:
        self.launcher.close()
        self.journal.close()

    def _payload(self, job: JobId) -> Payload | None:
        body = self.journal.payload(job)
        return None if body is None else decode_payload(body)

    def _keep(self, job: JobId, attempt: int, endings: Sequence[Ending | None]) -> None:
        self.journal.attach_ending(job, attempt, encode_endings(endings))

    def _record(self, events: Sequence[Event]) -> None:
        self.journal.append(events)
        self.world.apply_all(events)
        self.told.extend(events)
        assert broken_rules(self.world.freeze()) == []

    def _is_known(self, name: str) -> bool:
        return any(isinstance(event, JobSubmitted) and event.job.id == name for event in self.told)


def wait_for(holds: Callable[[], object], what: str = "it", patience_s: float = PATIENCE_S) -> None:
    """Looks every few milliseconds until `holds`."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, f"waited {patience_s} s for {what}"
        time.sleep(0.005)


def private_kib(pid: int) -> int:
    """Memory that only this process has, KiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    lines = (line.split() for line in text.splitlines())
    return sum(int(words[1]) for words in lines if words[0] in {"Private_Clean:", "Private_Dirty:"})


def is_root() -> bool:
    """Whether tests may change users, mounts and cgroups."""
    return os.geteuid() == 0
