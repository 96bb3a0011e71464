"""The record of the local engine: events in one SQLite file, on the disk before `append` returns.

Write-ahead mode, because a commit is then one write and one flush at the end of one file (the rollback mode
flushes three times), readers never hold up the writer, and a torn tail is dropped by SQLite's own checksums.
`synchronous=FULL`: the flush happens in every commit. Appends of several threads that arrive while a flush is
under way share the next one. A failed flush closes the journal for good: what the kernel could not write, a
second try may wrongly report as written.

It orders events as they come and never looks at their times, so a clock that jumps changes nothing here.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Self

import msgspec

from aliquot.control.experience import Pupil
from aliquot.core.errors import AliquotError
from aliquot.core.events import Event
from aliquot.core.ids import JobId
from aliquot.core.world import World
from aliquot.engines.local import damage
from aliquot.engines.local.batches import read_batches
from aliquot.engines.local.beside import Beside, Endings, Payloads, Rows
from aliquot.engines.local.errors import JournalDamagedError, JournalError, JournalFullError
from aliquot.engines.local.holding import Holding
from aliquot.engines.local.lessons import Lessons
from aliquot.engines.local.opening import error_of, make_folder, open_file
from aliquot.engines.local.reserve import Reserve, may_spend
from aliquot.engines.local.schema import checksum, ending_key, is_whole
from aliquot.engines.local.snapshot import decode_world, encode_world

SNAPSHOTS_KEPT: Final = 2
DOCUMENTS_KEPT: Final = 4
_REPLACE: Final = "INSERT OR REPLACE INTO {} VALUES (?, ?, ?)"
_ENCODER: Final = msgspec.json.Encoder()

_Changes = Sequence[tuple[str, Sequence[tuple[object, ...]]]]


class _Entry:
    """One append on its way: what to write, and how it ended."""

    __slots__ = ("body", "endings", "error", "events", "is_done", "may_spend", "payloads")

    def __init__(
        self,
        body: bytes,
        events: int,
        payloads: Payloads,
        endings: Endings,
        *,
        may_spend: bool,
    ) -> None:
        self.body, self.events, self.payloads, self.endings = body, events, payloads, endings
        self.may_spend, self.is_done = may_spend, False
        self.error: AliquotError | None = None


class SqliteJournal:
    """The journal at `path`, made where it is not there yet. May be used from several threads.

    Raises JournalLockedError, JournalReadOnlyError, JournalFullError, JournalVersionError or
    JournalDamagedError (see `damage`; `accept_loss` answers the last). `notes`: what a person should be told,
    and `say` is told what comes to them later.
    A reserve on the disk lets what happened be recorded when it is full; see `lack`.
    Without `durable` nothing is flushed, which a power cut punishes: for tests and trials.
    """

    def __init__(self, path: Path, *, accept_loss: bool = False, durable: bool = True) -> None:
        self.path = path
        self.notes: list[str] = []
        self.say: Callable[[str], object] = lambda note: None
        self._beside = Beside(self._read, self._say_damage)
        self._lessons = Lessons(self._read, self._say_damage)
        self._waiting: deque[_Entry] = deque()
        self._writing = Lock()
        self._broken: JournalError | None = None
        make_folder(path.parent)
        self._reserve, self._is_low = Reserve(path), False
        self._holding = Holding(path.with_name(path.name + ".lock"))
        try:
            self._db, self._gap = open_file(
                path, self._reserve, self.notes, accept_loss=accept_loss, durable=durable
            )
            self.position: int = self._last()
            self._reserve.keep()
        except BaseException:
            self._holding.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let another service have it; more than once is fine."""
        with self._writing:
            self._db.close()
            self._broken = self._broken or JournalError(f"{self.path} is closed")
            self._holding.release()

    def lack(self) -> str:
        """Why no new work may be accepted: the disk is full, or was and has too little room yet; else ""."""
        if not self._is_low:
            return ""
        with self._writing:
            self._is_low = not self._reserve.keep()
        if not self._is_low:
            return ""
        what = "the disk is full, or the quota on it"
        return f"{self.path}: {what}; what ends jobs is recorded still, new ones once there is room"

    # --- events ----------------------------------------------------------------------------------------

    def append(self, events: Sequence[Event]) -> None:
        """Record `events`, all or none; on return they are on the disk.

        What was attached to jobs submitted or attempts over here is written with them. Raises
        JournalFullError with nothing recorded, or another JournalError.
        """
        if not events:
            return
        payloads, endings = self._beside.belonging_to(events)
        entry = _Entry(_ENCODER.encode(events), len(events), payloads, endings, may_spend=may_spend(events))
        self._waiting.append(entry)
        # whoever comes first writes for all that wait; the others find their part done
        with self._writing:
            if not entry.is_done:
                self._commit(self._drain())
        if entry.error is not None:
            raise entry.error
        self._beside.written(payloads, endings)

    def replay(self) -> Iterator[Event]:
        """Every event still kept, in order, as far as recorded now.

        Where a batch before the newest whole snapshot cannot be read, only those behind it; a note says so.
        """
        broken = self._gap
        if broken is None:
            return self._events_between(0, self.position)
        note = (
            f"{self.path}: batch {broken.seq} is broken ({broken.why}), and a snapshot stands for it:"
            " nothing that waits or runs is lost; of jobs over before that, the history is not shown"
        )
        self._say_once(note)
        return self._events_between(broken.seq, self.position)

    def resume(
        self,
        *,
        window: int = 2000,
        half_life_ms: int = 0,
        quantile_milli: int = 0,
        pupil: Pupil | None = None,
    ) -> World:
        """The world after everything recorded: the newest whole snapshot and the events behind it.

        Half-life of past usage and quantile of learnt run times are what the service's settings say; `pupil`
        learns what was learnt before. Raises JournalDamagedError where no snapshot can be read and the events
        before it are compacted away.
        """
        how = {"window": window, "half_life_ms": half_life_ms, "quantile_milli": quantile_milli}
        with self._writing:
            rows = list(damage.whole_snapshots(self._db))
        for at, body in rows:
            if world := _try_decode(body, **how):
                seq = at
                break
        else:
            self._check_whole()
            seq, world = 0, World(**how)
        if pupil is None:
            world.apply_all(self._events_between(seq, self.position))
        else:
            self._lessons.teach(pupil, world, seq, self._batches_between(seq, self.position))
        self._beside.lay_out()
        return world

    # --- what lies beside them -------------------------------------------------------------------------

    def attach(self, job: JobId, payload: bytes) -> None:
        """Keep `payload` for `job`, from the same commit on that records the job's submission."""
        self._beside.attach(job, payload)

    def payload(self, job: JobId) -> bytes | None:
        """What was attached to `job`, or None."""
        return self._beside.payload(job)

    def attach_ending(self, job: JobId, attempt: int, body: bytes) -> None:
        """Keep how an attempt went, from the same commit on that records that it is over."""
        self._beside.attach_ending(job, attempt, body)

    def endings(self, job: JobId) -> dict[int, bytes]:
        """What was attached to each attempt of `job` that is over, by attempt."""
        return self._beside.endings(job)

    def ending(self, job: JobId, attempt: int) -> bytes | None:
        """What was attached to one attempt; None where nothing was."""
        return self._beside.ending(job, attempt)

    def forget(self, jobs: Sequence[JobId]) -> None:
        """Drop payloads and endings of `jobs`."""
        self._beside.forget(jobs)
        for table in ("payloads", "endings"):
            self._write(f"DELETE FROM {table} WHERE job = ?", [(job,) for job in jobs])

    def note_guesses(self, guesses: bytes) -> None:
        """Keep what was said of newcomers, in the same commit as the next events; from any thread."""
        self._lessons.note(guesses)

    def keep_documents(self, body: bytes) -> None:
        """Keep what the settings follow from; the one before stays beside it."""
        newest = "(SELECT ifnull(max(seq), 0) FROM documents)"
        with self._writing:
            seq = 1 + int(self._db.execute(f"SELECT {newest}").fetchone()[0])
        self._write("INSERT INTO documents VALUES (?, ?, ?)", [(seq, checksum(seq, body), body)])
        self._write("DELETE FROM documents WHERE seq <= ?", [(seq - DOCUMENTS_KEPT,)])

    def documents(self) -> bytes | None:
        """What was kept last and is whole, or None."""
        rows = self._read("SELECT seq, crc, body FROM documents ORDER BY seq DESC", ())
        return next((bytes(body) for seq, crc, body in rows if is_whole(seq, crc, body)), None)

    def save(self, world: World, learnt: bytes = b"") -> None:
        """Keep `world`, which is the fold of everything recorded, so that a restart begins there.

        `learnt`: all that was learnt by then. Only the thread that appends and folds may call this.
        """
        seq, body = self.position, encode_world(world)
        keep = "(SELECT seq FROM snapshots ORDER BY seq DESC LIMIT ?)"
        oldest = "(SELECT min(seq) FROM snapshots)"
        kept = [("snapshots", body), *([("learnt", learnt)] if learnt else [])]
        with self._writing:
            self._transact(
                [
                    *((_REPLACE.format(table), [(seq, checksum(seq, what), what)]) for table, what in kept),
                    (f"DELETE FROM snapshots WHERE seq NOT IN {keep}", [(SNAPSHOTS_KEPT,)]),
                    (f"DELETE FROM learnt WHERE seq < {oldest}", [()]),
                    (f"DELETE FROM guesses WHERE seq <= {oldest}", [()]),
                ]
            )

    def compact(self) -> None:
        """Forget events that even the oldest snapshot kept has no need of."""
        self._write(
            "DELETE FROM batches WHERE seq <= (SELECT min(seq) FROM snapshots)"
            " AND (SELECT count(*) FROM snapshots) >= ?",
            [(SNAPSHOTS_KEPT,)],
        )

    def last_ms(self) -> int:
        """When the last thing on record happened; 0 where no event is. Raises JournalDamagedError."""
        with self._writing:
            last = int(self._db.execute("SELECT ifnull(max(seq), 0) FROM batches").fetchone()[0])
        return max((event.at for event in self._events_between(last - 1, last)), default=0)

    # --- the file --------------------------------------------------------------------------------------

    def _last(self) -> int:
        newest = [f"(SELECT ifnull(max(seq), 0) FROM {table})" for table in ("batches", "snapshots")]
        return int(self._db.execute(f"SELECT max({', '.join(newest)})").fetchone()[0])

    def _read(self, query: str, arguments: tuple[object, ...]) -> Rows:
        """Rows of what lies beside the events, up to the first that cannot be read; then a note says so."""
        rows: Rows = []
        try:
            with self._writing:
                rows.extend(self._db.execute(query, arguments))
        except sqlite3.DatabaseError as error:
            self._say_once(
                f"{self.path}: what jobs run, or how they ended, cannot be read everywhere ({error});"
                " a restart puts the file in order"
            )
        return rows

    def _batches_between(self, after: int, last: int) -> Iterator[tuple[int, list[Event]]]:
        return read_batches(self.path, self._fetch, after, last)

    def _events_between(self, after: int, last: int) -> Iterator[Event]:
        """Events of the batches after `after` up to `last`; the bounds are fixed when this is called."""
        return (event for _, events in self._batches_between(after, last) for event in events)

    def _fetch(self, query: str, arguments: tuple[object, ...]) -> Rows:
        with self._writing:
            return self._db.execute(query, arguments).fetchall()

    def _say_damage(self, what: str) -> None:
        self._say_once(f"{self.path}: {what}")

    def _say_once(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
            self.say(note)

    def _check_whole(self) -> None:
        """Without a snapshot to begin with, the events must be there from the first."""
        with self._writing:
            first = self._db.execute("SELECT min(seq) FROM batches").fetchone()[0]
        if self.position and first != 1:
            raise JournalDamagedError(
                f"{self.path}: no snapshot can be read, and events before batch {first} are gone"
            )

    def _drain(self) -> list[_Entry]:
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _commit(self, entries: list[_Entry]) -> None:
        """One transaction and one flush for all of `entries`."""
        batches, payloads, endings = [], [], []
        for seq, entry in enumerate(entries, self.position + 1):
            batches.append((seq, entry.events, checksum(seq, entry.body), entry.body))
            payloads += [(job, checksum(job, body), body) for job, body in entry.payloads]
            endings += [(*key, checksum(ending_key(*key), body), body) for key, body in entry.endings]
        guesses = self._lessons.take(self.position + 1)
        error: JournalError | None = None
        try:
            self._transact(
                [
                    ("INSERT INTO guesses VALUES (?, ?, ?)", guesses),
                    ("INSERT INTO batches VALUES (?, ?, ?, ?)", batches),
                    ("INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)", payloads),
                    ("INSERT OR REPLACE INTO endings VALUES (?, ?, ?, ?)", endings),
                ],
                may_spend=all(entry.may_spend for entry in entries),
            )
            self.position += len(entries)
            self._lessons.written()
        except JournalError as found:
            error = found
        for entry in entries:
            entry.is_done = True
            if error is not None:
                entry.error = type(error)(str(error))

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        with self._writing:
            self._transact([(statement, rows)])

    def _transact(self, changes: _Changes, *, may_spend: bool = False) -> None:
        """All or none of `changes`; with `may_spend`, on a full disk out of the reserve."""
        try:
            self._try(changes)
        except JournalFullError:
            self._is_low = True
            if not (may_spend and self._reserve.release()):
                raise
            self._try(changes)

    def _try(self, changes: _Changes) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, rows in changes:
                self._db.executemany(statement, rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> JournalError:
        """Our error for SQLite's; one that leaves the disk's state unknown closes the journal for good."""
        found = error_of(self.path, error)
        if type(found) is JournalError:
            self._broken = found
        return found


def _try_decode(body: bytes, **how: int) -> World | None:
    """The world of a snapshot, or None where an older version of ours wrote another shape."""
    try:
        return decode_world(body, **how)
    except msgspec.MsgspecError:
        return None
