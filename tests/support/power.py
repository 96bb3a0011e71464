"""A service whose machine loses its power again and again, and what must be true each time it is back.

    story = Story(tmp_path, seed=1)
    for _ in range(20):
        story.cut()
    story.finish()

The journal lies on the disk of a User-Mode Linux machine, so that what its kernel had not written is lost
with it. What was acknowledged was heard here before.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Final

from tests.support.local import supervisor, warm_kernels
from tests.support.nvml.build import build_library
from tests.support.uml import DISK, Machine, make_disk

STATE: Final = f"{DISK}/state"
READY_S: Final = 180  # a slow machine within a busy one
LOAD_S: Final = 4.0  # of work, at most, before a cut
OVER: Final = {"succeeded", "failed", "cancelled"}


class Story:
    """One disk through many boots. What was heard of each job, over all of them, is kept.

    `preload`: a library for the service, to make its writes worse than they are.
    """

    def __init__(self, folder: Path, seed: int = 0, preload: Path | None = None) -> None:
        self._folder, self._random, self._preload = folder, Random(seed), preload
        self._seed = seed
        self.disk = make_disk(folder / "disk.img")
        self.acknowledged: set[str] = set()
        self.given_up: set[str] = set()
        self.over: dict[str, str] = {}
        self.boots = self.cuts = self.runs = 0
        self.lost: set[str] = set()
        self.ready_s: list[float] = []
        self._supervisor = supervisor()
        build_library()  # all that is compiled is compiled here, where it takes less time
        warm_kernels()

    def cut(self) -> None:
        """Boot, see what is there, work for a while, and cut the power at a random moment."""
        with self._boot("load") as machine:
            if self.boots > 1 and self._random.random() < 0.15:
                time.sleep(self._random.uniform(1, 8))  # while it boots and takes up what was
            else:
                self._inspect(machine)
                self._work(machine)
            machine.cut()
            self.cuts += 1
            self._note(machine)

    def finish(self) -> None:
        """Boot a last time and let all jobs end."""
        with self._boot("finish") as machine:
            self._inspect(machine)
            machine.until("DONE", patience_s=READY_S)
            self._note(machine)
        self.lost |= self.acknowledged - self.over.keys()
        assert not self.lost, f"acknowledged and never run to their end: {sorted(self.lost)}"

    def _boot(self, what: str) -> Machine:
        self.boots += 1
        words = [sys.executable, "-m", "tests.support.guest", STATE, f"{self._seed}-{self.boots}", what]
        if self._preload is not None:
            words.append(str(self._preload))
        begin = time.monotonic()

        def heard(line: str) -> None:
            if line == "READY":
                self.ready_s.append(time.monotonic() - begin)

        return Machine(
            self._folder / f"boot-{self.boots}", words, self.disk, heard, SUPERVISOR=str(self._supervisor)
        )

    def _inspect(self, machine: Machine) -> None:
        """Everything acknowledged is there, and what was over is over in the same way."""
        machine.until("READY", patience_s=READY_S)
        known = dict(entry.split(" ", 1) for entry in machine.said("HAS "))
        self.lost |= self.acknowledged - known.keys()
        changed = {job: phase for job, phase in self.over.items() if known.get(job, phase) != phase}
        assert not changed, f"were over once: {changed}"
        damaged = [name for name in machine.said("FILE ") if "damaged" in name]
        assert not damaged, f"the journal had to be mended: {machine.said('NOTE ')}"

    def _work(self, machine: Machine) -> None:
        """Until a moment that was drawn before, or right behind an acknowledgement."""
        if self._random.random() < 0.3:
            count = self._random.randrange(1, 30)
            end = time.monotonic() + READY_S
            while len(machine.said("ACK ")) < count and time.monotonic() < end:
                time.sleep(0.0005)
        else:
            machine.until("ACK ", patience_s=READY_S)
            time.sleep(self._random.uniform(0, LOAD_S))

    def _note(self, machine: Machine) -> None:
        """What was heard in one boot; a job whose end or withdrawal was told before it must not have run."""
        ran = machine.said("RUN ")
        again = set(ran) & (self.over.keys() | self.given_up)
        assert not again, f"ran although it was over or given up before the power went: {again}"
        assert not machine.said("TWICE "), f"two at once: {machine.said('TWICE ')}"
        self.runs += len(ran)
        self.acknowledged.update(machine.said("ACK "))
        self.given_up.update(machine.said("GONE "))
        self.over.update(
            (job, phase) for job, _, phase in (entry.partition(" ") for entry in machine.said("OVER "))
        )
        assert set(self.over.values()) <= OVER


def careless(folder: Path) -> Path:
    """A library under which nothing is ever flushed to the disk, as on one that lies."""
    source = folder / "careless.c"
    source.write_text(
        "int fsync(int fd) { (void)fd; return 0; }\nint fdatasync(int fd) { (void)fd; return 0; }\n"
    )
    library = folder / "careless.so"
    compiler = shutil.which("cc") or "cc"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library
