"""How long a service that has recorded a million events takes from its start to its first decision.

A real service runs one job; what it recorded is the pattern from which the journal's own writer then makes
the rest: jobs that come, run and end, and are forgotten, and at the end jobs that wait. Then a service is
started on it, and the first of those prints the time. Two journals: right behind a snapshot, and right before
the next one is due, both compacted as the service does.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from aliquot.control.chronicle import KEPT_OVER
from aliquot.control.service import COMPACT_EVERY
from aliquot.core.events import Event, Granted, JobSubmitted, Started
from aliquot.core.ids import JobId
from aliquot.core.world import World
from aliquot.engines.local.journal import SqliteJournal
from bench.bench_local import CLOCK, load, serve
from bench.bench_rest import cpu_s, server_pid
from bench.measure import calibrate, print_table, write_results

EVENTS = 1_000_000
WAITING = 1000
ROUNDS = 5
TURN = 4  # jobs that end in one turn of the loop, and so in one append
MUST_S, STRIVE_S = 5, 1
AGO_MS = 3_600_000


class Pattern(NamedTuple):
    """What one job left in the journal."""

    before: list[Event]  # of the site
    own: list[Event]
    payload: bytes
    ending: bytes | None


class Filled(NamedTuple):
    """A journal of so many events, and the job that is first in line."""

    state: Path
    events: int
    first: str


def main() -> None:
    """Run, print, write. A number as argument: so many events instead."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS
    calibration = calibrate()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="aliquot-") as folder:
        for what, filled in make_journals(Path(folder), events):
            found = [restart(filled) for _ in range(ROUNDS)]
            rows.append(
                {
                    "what": what,
                    "events": filled.events,
                    "answers_s": statistics.median(answer for answer, _, _ in found),
                    "decides_s": statistics.median(decision for _, decision, _ in found),
                    "busy_s": statistics.median(busy for _, _, busy in found),
                    "worst_s": max(decision for _, decision, _ in found),
                    "mib": sum(path.stat().st_size for path in filled.state.glob("journal.db*")) >> 20,
                    "must": MUST_S,
                    "strive": STRIVE_S,
                    "load": load(),
                }
            )
            print(rows[-1], file=sys.stderr)
    table = [
        (
            row["what"], row["events"], row["mib"], f"{row['answers_s']:.2f}", f"{row['decides_s']:.2f}",
            f"{row['busy_s']:.2f}", f"{row['worst_s']:.2f}", MUST_S, row["load"],
        )
        for row in rows
    ]  # fmt: skip  # a row of the table
    head = ("", "events", "MiB", "answers, s", "first start, s", "of it processor", "worst", "must", "load")
    print_table("Restart", head, table)
    write_results("restart", rows, calibration, waiting=WAITING, rounds=ROUNDS)


def make_journals(folder: Path, events: int) -> Iterator[tuple[str, Filled]]:
    """Each with its name, before the next is made from it."""
    pattern = a_pattern(folder / "pattern")
    state = folder / "state"
    shutil.copytree(folder / "pattern/bin", state / "bin")
    writer = Writer(state, pattern)
    writer.live(events - COMPACT_EVERY)
    writer.journal.save(writer.world)
    writer.live(COMPACT_EVERY)
    writer.journal.save(writer.world)
    yield "right behind a snapshot", writer.leave(folder / "behind")
    writer.live(COMPACT_EVERY - WAITING - 100)
    yield "right before the next snapshot", writer.leave(folder / "before")


def a_pattern(state: Path) -> Pattern:
    """What a service records of one job that succeeds."""
    with serve(state) as client:
        job = client.submit(replace(CLOCK, env={"PATH": "/usr/bin:/bin"}))
        client.wait(job)
    with SqliteJournal(state / "journal.db") as journal:
        recorded = list(journal.replay())
        own = [event for event in recorded if job_of(event) == job]
        payload = journal.payload(JobId(job))
        assert payload is not None
        before = recorded[: recorded.index(own[0])]  # not the end, when the node is drained
        return Pattern(before, own, payload, journal.ending(JobId(job), 1))


def job_of(event: Event) -> JobId | None:
    """Whose event it is."""
    return event.job.id if isinstance(event, JobSubmitted) else getattr(event, "job", None)


class Writer:
    """Records lives as the service does, but for the flushes, and forgets those long over."""

    def __init__(self, state: Path, pattern: Pattern) -> None:
        self.state, self.pattern = state, pattern
        self.journal = SqliteJournal(state / "journal.db", durable=False)
        self.world = World(window=2000)
        self.events = self._number = 0
        self._over: deque[JobId] = deque()
        self._record(pattern.before)

    def live(self, events: int) -> None:
        """`events` or a few more."""
        end = self.events + events
        while self.events < end:
            lot: list[Event] = []
            for _ in range(TURN):
                lot += lived(self.pattern, self._attach())
            for kind in (JobSubmitted, Granted, Started, object):
                self._record([event for event in lot if is_of(event, kind)])
            if len(self._over) > KEPT_OVER * 21 // 20:
                self.journal.forget([self._over.popleft() for _ in range(len(self._over) - KEPT_OVER)])

    def leave(self, state: Path) -> Filled:
        """A copy of the journal, compacted, with jobs in line behind it all."""
        shutil.copytree(self.state / "bin", state / "bin")
        with (
            contextlib.closing(sqlite3.connect(self.state / "journal.db")) as old,
            contextlib.closing(sqlite3.connect(state / "journal.db")) as new,
        ):
            old.backup(new)
        number = self._number
        with SqliteJournal(state / "journal.db", durable=False) as journal:
            journal.compact()
            submitted = []
            for more in range(number + 1, number + 1 + WAITING):
                journal.attach(JobId(str(more)), self.pattern.payload)
                submitted.append(next(lived(self.pattern, more)))
            journal.append(submitted)
        return Filled(state, self.events + WAITING, str(number + 1))

    def _attach(self) -> int:
        self._number += 1
        job = JobId(str(self._number))
        self.journal.attach(job, self.pattern.payload)
        if self.pattern.ending is not None:
            self.journal.attach_ending(job, 1, self.pattern.ending)
        self._over.append(job)
        return self._number

    def _record(self, lot: Sequence[Event]) -> None:
        self.journal.append(lot)
        self.world.apply_all(lot)
        self.events += len(lot)


def is_of(event: Event, kind: type) -> bool:
    """Whether it belongs to the part of a life that ends with `kind`; `object`: the rest."""
    parts = (JobSubmitted, Granted, Started)
    return isinstance(event, kind) if kind is not object else not isinstance(event, parts)


def lived(pattern: Pattern, number: int) -> Iterator[Event]:
    """The life of job `number`."""
    for event in pattern.own:
        at = event.at + number - AGO_MS
        if isinstance(event, JobSubmitted):
            job = replace(event.job, id=JobId(str(number)), seq=number, submitted_ms=at)
            yield replace(event, at=at, job=job)
        else:
            yield replace(event, at=at, job=JobId(str(number)))


def restart(filled: Filled) -> tuple[float, float, float]:
    """Seconds from the start of a service until it answers, until its first in line says that it runs, and
    of processor time until then, which other work on the machine hardly changes.

    On a copy, so that each time is as the first.
    """
    with tempfile.TemporaryDirectory(prefix="aliquot-") as folder:
        copy = Path(folder) / "s"
        subprocess.run(["cp", "-r", str(filled.state), str(copy)], check=True)
        begin = time.time()
        with serve(copy) as client:
            answered = time.time() - begin
            while not (body := client.output(filled.first, timeout=10).body):
                pass
            busy = cpu_s(server_pid(client.path))
            return answered, int(body) / 1e9 - begin, busy
    raise SystemExit("unreached")


if __name__ == "__main__":
    main()
