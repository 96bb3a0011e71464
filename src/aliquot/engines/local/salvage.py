"""Rows of broken tables that can be read, each by itself, so that a page that is gone takes its own only.

This is about what lies beside the events: what jobs run, how attempts ended, snapshots, documents, what was
learnt. A listing
ends at the first page that cannot be read, so keys are listed from both ends, of the table and of its index,
and then every row is fetched alone. Events are `damage`'s: of them the order counts and every single one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from aliquot.engines.local.schema import ending_key, is_whole

Row = tuple[Any, ...]


class _Table(NamedTuple):
    """How to list the keys of a table, and to fetch one row by its key."""

    name: str
    keys: tuple[str, ...]
    fetch: str
    is_whole: Callable[[Row], bool]


def _by_seq(name: str) -> _Table:
    """A table of (seq, crc, body)."""
    listed = tuple(f"SELECT seq FROM {name} ORDER BY seq {way}" for way in ("ASC", "DESC"))
    fetch = f"SELECT seq, crc, body FROM {name} WHERE seq = ?"
    return _Table(name, listed, fetch, lambda row: is_whole(*row))


_INDEX: Final = "INDEXED BY sqlite_autoindex_payloads_1 ORDER BY job"  # SQLite's own name of a primary key
_PAYLOADS: Final = _Table(
    "payloads",
    tuple(
        f"SELECT rowid FROM payloads {how} {way}"
        for how in (_INDEX, "NOT INDEXED ORDER BY rowid")
        for way in ("ASC", "DESC")
    ),
    "SELECT job, crc, body FROM payloads WHERE rowid = ?",
    lambda row: is_whole(*row),
)
_ENDINGS: Final = _Table(
    "endings",
    tuple(f"SELECT job, attempt FROM endings ORDER BY job {way}, attempt {way}" for way in ("ASC", "DESC")),
    "SELECT job, attempt, crc, body FROM endings WHERE job = ? AND attempt = ?",
    lambda row: is_whole(ending_key(row[0], row[1]), row[2], row[3]),
)
_NUMBERED: Final = tuple(_by_seq(name) for name in ("snapshots", "documents", "learnt", "guesses"))
TABLES: Final = (*_NUMBERED, _PAYLOADS, _ENDINGS)


def find_unreadable(db: sqlite3.Connection) -> tuple[str, ...]:
    """Names of these tables that SQLite cannot read to their end."""
    return tuple(table.name for table in TABLES if not _is_readable(db, table))


def _is_readable(db: sqlite3.Connection, table: _Table) -> bool:
    try:
        return bool(db.execute(f"PRAGMA quick_check({table.name})").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


def salvage(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy every row of these tables that can be read."""
    for table in TABLES:
        for row in readable_rows(old, table):
            marks = ", ".join("?" * len(row))
            new.execute(f"INSERT OR REPLACE INTO {table.name} VALUES ({marks})", row)


def readable_rows(db: sqlite3.Connection, table: _Table) -> Iterator[Row]:
    """Whole rows, each once, in no order that means anything."""
    keys = dict.fromkeys(key for query in table.keys for key in read_until_fault(db, query))
    for key in keys:
        for row in read_until_fault(db, table.fetch, key):
            if table.is_whole(row):
                yield row


def read_until_fault(db: sqlite3.Connection, query: str, arguments: Row = ()) -> Iterator[Row]:
    """Rows, up to the first that SQLite cannot read."""
    try:
        yield from db.execute(query, arguments)
    except sqlite3.DatabaseError:
        return
