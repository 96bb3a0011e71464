"""Opening the file of the journal: made or brought up to date, put in order where it is broken."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from aliquot.engines.local import damage, schema
from aliquot.engines.local.damage import Damage
from aliquot.engines.local.errors import JournalError, JournalFullError, JournalReadOnlyError
from aliquot.engines.local.reserve import Reserve
from aliquot.engines.local.salvage import find_unreadable

_FULL: Final = {sqlite3.SQLITE_FULL}
_UNWRITTEN: Final = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_SHMSIZE}
"""What SQLite makes of a quota that is used up, among other things: it knows full disks only."""

_PROBE: Final = 1 << 20  # bytes; about what a large commit takes
_READ_ONLY: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}


class Opened(NamedTuple):
    """The file, and the last batch that is missing or broken where a snapshot stands for it."""

    db: sqlite3.Connection
    gap: Damage | None


def open_file(path: Path, reserve: Reserve, notes: list[str], *, accept_loss: bool, durable: bool) -> Opened:
    """The file at `path`, in order; what a person should be told goes to `notes`. Raises JournalErrors.

    On a full disk that is done out of `reserve`.
    """
    try:
        db = _connect(path, durable=durable)
    except sqlite3.DatabaseError as error:
        if not isinstance(error, sqlite3.OperationalError):
            notes.append(damage.put_aside(path, None, accept_loss=accept_loss))
            return Opened(_connect(path, durable=durable), None)
        found = error_of(path, error)
        if isinstance(found, JournalFullError) and reserve.release():
            return open_file(path, reserve, notes, accept_loss=accept_loss, durable=durable)
        raise found from error
    broken = damage.find_damage(db)
    if broken is not None:
        db.close()
        notes.append(damage.put_aside(path, broken, accept_loss=accept_loss))
        db = _connect(path, durable=durable)
    gap, unreadable = damage.last_broken(db), find_unreadable(db)
    if gap is not None and gap.is_unreadable:
        unreadable = ("batches", *unreadable)
    if unreadable:
        db.close()
        notes.append(damage.put_in_order(path, unreadable))
        db = _connect(path, durable=durable)
        gap = damage.last_broken(db)
    return Opened(db, gap)


def make_folder(folder: Path) -> None:
    """The folder of the file. Raises JournalReadOnlyError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalReadOnlyError(f"{folder} cannot be made ({error.strerror})") from error


def error_of(path: Path, error: sqlite3.Error) -> JournalError:
    """Our error for SQLite's; a plain JournalError where the disk's state is no longer certain."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    if code in _FULL or (extended in _UNWRITTEN and lacks_room(path)):
        return JournalFullError(
            f"{path}: the disk is full, or the quota on it; nothing was recorded, free some space"
        )
    if code in _READ_ONLY:
        return JournalReadOnlyError(f"{path} may not be written ({error})")
    return JournalError(
        f"{path}: {error}; the journal is closed until the service is restarted, since what is on"
        " the disk is no longer certain"
    )


def lacks_room(path: Path) -> bool:
    """Whether a file beside `path` could not grow now, for want of room or of quota."""
    probe = path.with_name(path.name + ".probe")
    try:
        handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, _PROBE)
        finally:
            os.close(handle)
            probe.unlink()
    except OSError as error:
        return error.errno in {errno.ENOSPC, errno.EDQUOT}
    return False


def _connect(path: Path, *, durable: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        schema.prepare(db, str(path))
    except BaseException:
        db.close()
        raise
    return db
