"""The tables of the journal file, and the steps that bring an older file up to date.

A batch is what one `append` recorded, as JSON so that a person can read it with any SQLite tool. `crc` covers
a row's key and body, so one that was changed, or put in another's place, is noticed: SQLite itself has no
checksums of what it stores. A migration runs in one transaction: a crash in the middle leaves the older
version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final
from zlib import crc32

from aliquot.engines.local.errors import JournalVersionError

APPLICATION_ID: Final = 0x416C7174  # "Alqt", shown by `file`
VERSION: Final = 5

_BATCHES: Final = """
    CREATE TABLE batches (
        seq INTEGER PRIMARY KEY, events INTEGER NOT NULL, crc INTEGER NOT NULL, body BLOB NOT NULL
    )"""
_PAYLOADS: Final = "CREATE TABLE payloads (job TEXT PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL)"
# with rowids: without, each look-up reads the whole body of every row it passes, and an environment is large
_ENDINGS: Final = """
    CREATE TABLE endings (
        job TEXT, attempt INTEGER, crc INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (job, attempt)
    ) WITHOUT ROWID"""


def _by_number(name: str) -> str:
    return f"CREATE TABLE {name} (seq INTEGER PRIMARY KEY, crc INTEGER NOT NULL, body BLOB NOT NULL)"


_NUMBERED: Final = {name: _by_number(name) for name in ("snapshots", "documents", "learnt", "guesses")}
TABLES: Final = (_BATCHES, _PAYLOADS, _ENDINGS, *_NUMBERED.values())

_PAYLOADS_TO_4: Final = "CREATE TABLE payloads (job TEXT PRIMARY KEY, body BLOB NOT NULL)"
_ENDINGS_TO_4: Final = """
    CREATE TABLE endings (
        job TEXT, attempt INTEGER, body BLOB NOT NULL, PRIMARY KEY (job, attempt)
    ) WITHOUT ROWID"""
_OF_2: Final = (_BATCHES, _PAYLOADS_TO_4, _NUMBERED["snapshots"], _ENDINGS_TO_4)


def checksum(key: int | str, body: bytes) -> int:
    """What `crc` of the batch, snapshot or payload with this key must be."""
    return crc32(body, crc32(str(key).encode()))


def ending_key(job: str, attempt: int) -> str:
    """The key of how an attempt ended; no id holds a zero byte."""
    return f"{job}\0{attempt}"


def is_whole(key: int | str, crc: object, body: object) -> bool:
    """Whether `body` is what was recorded under `key`; a broken file may give anything."""
    return isinstance(body, bytes) and crc == checksum(key, body)


def prepare(db: sqlite3.Connection, path: str) -> None:
    """Make the tables, or bring them up to VERSION. Raises JournalVersionError for what is not ours."""
    version = _number(db, "user_version")
    application = _number(db, "application_id")
    if version == 0 and application == 0 and _is_blank(db):
        _in_transaction(db, _create)
        return
    if application != APPLICATION_ID:
        raise JournalVersionError(f"{path} is an SQLite file, but not a journal of Aliquot")
    if version > VERSION:
        raise JournalVersionError(
            f"{path} was written by a newer Aliquot (journal version {version}, this one reads up to"
            f" {VERSION}); start that version, or move the file away to begin anew"
        )
    while version < VERSION:
        _in_transaction(db, MIGRATIONS[version])
        version = _number(db, "user_version")


def _create(db: sqlite3.Connection) -> None:
    for statement in TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def _to_2(db: sqlite3.Connection) -> None:
    """Version 1 had one table, `events (seq, body)`, one event a row, without checksums."""
    for statement in _OF_2:
        db.execute(statement)
    for seq, body in db.execute("SELECT seq, body FROM events ORDER BY seq").fetchall():
        batch = b"[" + bytes(body) + b"]"
        db.execute("INSERT INTO batches VALUES (?, 1, ?, ?)", (seq, checksum(seq, batch), batch))
    db.execute("DROP TABLE events")
    db.execute("PRAGMA user_version = 2")


def _to_3(db: sqlite3.Connection) -> None:
    """Version 2 kept no documents: its services had built-in policies only."""
    db.execute(_NUMBERED["documents"])
    db.execute("PRAGMA user_version = 3")


def _to_4(db: sqlite3.Connection) -> None:
    """Version 3 kept payloads without rowids, so that a few large ones made every look-up slow."""
    db.execute("ALTER TABLE payloads RENAME TO older")
    db.execute(_PAYLOADS_TO_4)
    db.execute("INSERT INTO payloads SELECT job, body FROM older")
    db.execute("DROP TABLE older")
    db.execute("PRAGMA user_version = 4")


def _to_5(db: sqlite3.Connection) -> None:
    """Version 4 had no checksums of payloads and endings, and did not keep what was learnt."""
    db.create_function("checksum", 2, checksum, deterministic=True)
    for name, table, crc in (
        ("payloads", _PAYLOADS, "job, checksum(job, body)"),
        ("endings", _ENDINGS, "job, attempt, checksum(job || char(0) || attempt, body)"),
    ):
        db.execute(f"ALTER TABLE {name} RENAME TO older")
        db.execute(table)
        db.execute(f"INSERT INTO {name} SELECT {crc}, body FROM older")
        db.execute("DROP TABLE older")
    db.execute(_NUMBERED["learnt"])
    db.execute(_NUMBERED["guesses"])
    db.execute("PRAGMA user_version = 5")


MIGRATIONS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {
    1: _to_2, 2: _to_3, 3: _to_4, 4: _to_5,
}  # fmt: skip  # a table
"""From which version -> the step to the next."""


def _in_transaction(db: sqlite3.Connection, change: Callable[[sqlite3.Connection], None]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        change(db)
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _is_blank(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0)


def _number(db: sqlite3.Connection, pragma: str) -> int:
    return int(db.execute(f"PRAGMA {pragma}").fetchone()[0])
