"""A journal file that cannot be read to its end: what is whole is kept, the rest is put aside, never erased.

Damage at the tail is a write that never came to be acknowledged or a disk that lost one: the service goes on
with everything before it. Damage with whole batches behind it means acknowledged work would vanish, and only
a person may accept that. Damage of what lies beside the batches takes no job from the record; the service
goes on without what cannot be read. SQLite itself drops a torn last transaction; this is about what it cannot
notice.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from aliquot.engines.local import schema
from aliquot.engines.local.disk import sync
from aliquot.engines.local.errors import JournalDamagedError
from aliquot.engines.local.salvage import read_until_fault, salvage
from aliquot.engines.local.schema import is_whole

Row = tuple[Any, ...]


class Damage(NamedTuple):
    """The first batch that is not whole, why, and how many whole ones lie behind it.

    `is_unreadable`: SQLite cannot get at it, and so cannot delete it either.
    """

    seq: int
    why: str
    whole_behind: int
    is_unreadable: bool = False


_LOST: Final = {
    "batches": "Of jobs that were over before the newest snapshot, history may be lost",
    "payloads": "A job of which it is lost what it runs will fail when it is its turn",
    "endings": "Of some jobs that are over it may be lost how they ended",
    "documents": "Queues and policy may be older ones: look, and apply the documents again",
    "learnt": "What was learnt of run times and starts may be learnt anew",
    "guesses": "How right some predicted starts were is not known",
    "snapshots": "This start took longer for it, and nothing is lost",
}
"""What people should know, by the table that was broken."""


def find_damage(db: sqlite3.Connection) -> Damage | None:
    """The first damage behind the newest whole snapshot, or None."""
    expected = newest_snapshot(db) + 1
    rows = _rows(db, "SELECT seq, events, crc, body FROM batches WHERE seq >= ? ORDER BY seq", expected)
    first = next(rows, None)
    if isinstance(first, tuple) and expected == 1:
        expected = first[0]  # a migrated or compacted file may begin later
    while first is not None:
        why = _fault(first, expected)
        if why:
            return Damage(expected, why, _whole_behind(db, expected))
        expected += 1
        first = next(rows, None)
    return None


def newest_snapshot(db: sqlite3.Connection) -> int:
    """The batch that the newest whole snapshot holds the world after; 0 where there is none."""
    return next((seq for seq, _ in whole_snapshots(db)), 0)


def whole_snapshots(db: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """Number and body of every whole snapshot that can be read, the newest first."""
    for key in list(read_until_fault(db, "SELECT seq FROM snapshots ORDER BY seq DESC")):
        for seq, crc, body in read_until_fault(db, "SELECT seq, crc, body FROM snapshots WHERE seq = ?", key):
            if is_whole(seq, crc, body):
                yield int(seq), bytes(body)


def last_broken(db: sqlite3.Connection) -> Damage | None:
    """The last batch up to the newest whole snapshot that is not whole; None where all are that are kept."""
    expected = newest_snapshot(db)
    query = "SELECT seq, events, crc, body FROM batches WHERE seq <= ? ORDER BY seq DESC"
    for row in _rows(db, query, expected):
        if isinstance(row, tuple) and row[0] < expected:
            return Damage(expected, "missing", 0)
        if why := _fault(row, expected):
            return Damage(expected, why, 0, isinstance(row, str))
        expected -= 1
    return None


def put_aside(path: Path, damage: Damage | None, *, accept_loss: bool) -> str:
    """Rebuild `path` from what is whole before `damage`; returns the sentence for the log.

    `damage` None: the file as a whole is no readable database. Nothing may have it open. Raises
    JournalDamagedError where that would lose whole batches and `accept_loss` was not said, or the file
    cannot be rebuilt.
    """
    if not accept_loss:
        _refuse_loss(path, damage)
    aside, kept = _replace(path)
    what = f"batch {damage.seq} ({damage.why})" if damage else "the file (not a readable database)"
    return f"{path}: {what} is broken; kept {kept} batches before it, put the file aside as {aside}"


def put_in_order(path: Path, tables: Sequence[str]) -> str:
    """The same where pages of `tables` cannot be read; no event that the newest snapshot lacks is on them."""
    aside, _ = _replace(path)
    lost = "; ".join(_LOST[table] for table in tables)
    return (
        f"{path}: pages of {', '.join(tables)} cannot be read. Nothing that waits or runs is lost from the"
        f" record, and what else can be read is kept; put the file aside as {aside}. {lost}"
    )


def _replace(path: Path) -> tuple[Path, int]:
    """Put the file aside and a rebuilt one in its place: where the old one is, and the batches of the new."""
    try:
        aside = _copy(path)
        fresh = path.with_name(path.name + ".rebuilt")
        kept = _rebuild(path, fresh)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        fresh.replace(path)
        sync(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise JournalDamagedError(
            f"{path} is broken and cannot be put in order ({error}); it is as it was. It takes twice its size"
            f" of room in a folder that may be written"
        ) from error
    return aside, kept


def _refuse_loss(path: Path, damage: Damage | None) -> None:
    if damage is None:
        raise JournalDamagedError(
            f"{path} is no readable database; restore a copy, or begin anew without what was in"
            " it, which is put aside: aliquot up --accept-loss"
        )
    if damage.whole_behind:
        raise JournalDamagedError(
            f"{path}: batch {damage.seq} is broken ({damage.why}) and {damage.whole_behind} whole batches"
            " lie behind it; restore a copy, or accept that what came after it is lost:"
            " aliquot up --accept-loss"
        )


def _fault(row: Row | str, expected: int) -> str:
    """What is wrong with a batch, or ""."""
    if isinstance(row, str):
        return row
    seq, _, crc, body = row
    if seq != expected:
        return f"missing; the next one is {seq}"
    return "" if is_whole(seq, crc, body) else "its checksum is wrong"


def _whole_behind(db: sqlite3.Connection, seq: int) -> int:
    """Whole batches after `seq`, found from the end, so that an unreadable page in between hides none."""
    count = 0
    query = "SELECT seq, events, crc, body FROM batches WHERE seq > ? ORDER BY seq DESC"
    for row in _rows(db, query, seq):
        if not isinstance(row, tuple):
            break
        count += not _fault(row, row[0])
    return count


def _rows(db: sqlite3.Connection, query: str, first: int | str) -> Iterator[Row | str]:
    """Rows, and at the first that SQLite cannot read its complaint, which is the last."""
    try:
        yield from db.execute(query, (first,))
    except sqlite3.DatabaseError as error:
        yield str(error)


def _copy(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copy2(source, aside.with_name(aside.name + suffix))
    return aside


def _rebuild(path: Path, fresh: Path) -> int:
    """A new file with whole snapshots, what hangs on jobs, and whole batches up to a fault; counts these."""
    fresh.unlink(missing_ok=True)
    new = sqlite3.connect(fresh, isolation_level=None)
    old = sqlite3.connect(path, isolation_level=None)
    try:
        old.execute("PRAGMA writable_schema=ON")  # lets SQLite read a file that is shorter than it says
        new.execute("PRAGMA synchronous=FULL")
        schema.prepare(new, str(fresh))
        new.execute("BEGIN")
        salvage(old, new)
        kept = _carry_batches(old, new, newest_snapshot(new))
        new.execute("COMMIT")
    finally:
        old.close()
        new.close()
    return kept


def _carry_batches(old: sqlite3.Connection, new: sqlite3.Connection, snapshot: int) -> int:
    """Copy whole batches; behind the newest snapshot only without a gap."""
    count = last = 0
    for row in _readable(old):
        seq = row[0]
        expected = seq if seq <= snapshot or (not count and not snapshot) else max(last, snapshot) + 1
        if _fault(row, expected):
            if seq <= snapshot:
                continue  # the snapshot stands for it
            break
        new.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", row)
        count, last = count + 1, seq
    return count


def _readable(db: sqlite3.Connection) -> Iterator[Row]:
    """Batches in order: those before the first page that cannot be read, and those behind the last."""
    query, last = "SELECT seq, events, crc, body FROM batches WHERE seq > ? ORDER BY seq", 0
    is_cut = False
    for row in _rows(db, query, last):
        if isinstance(row, tuple):
            last = row[0]
            yield row
        else:
            is_cut = True
    if not is_cut:
        return
    lowest: int | None = None
    for row in _rows(db, "SELECT seq FROM batches WHERE seq > ? ORDER BY seq DESC", last):
        if isinstance(row, tuple):
            lowest = row[0]
    if lowest is not None:
        yield from (row for row in _rows(db, query, lowest - 1) if isinstance(row, tuple))
