"""The events of a journal, read in order, a few batches at a time and each held against its checksum."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from aliquot.core.events import Event
from aliquot.engines.local.errors import JournalDamagedError
from aliquot.engines.local.schema import is_whole

_PAGE: Final = 500  # batches read at a time
_DECODER: Final = msgspec.json.Decoder(list[Event])
_QUERY: Final = "SELECT seq, crc, body FROM batches WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"

Fetch = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]


def read_batches(path: Path, fetch: Fetch, after: int, last: int) -> Iterator[tuple[int, list[Event]]]:
    """Number and events of the batches after `after` up to `last`, which may grow meanwhile.

    `fetch`: rows of a query. Raises JournalDamagedError at the first batch that is not whole.
    """
    at = after
    while True:
        try:
            rows = fetch(_QUERY, (at, last, _PAGE))
        except sqlite3.DatabaseError as error:
            raise _unreadable(path, at, str(error)) from error
        if not rows:
            return
        for seq, crc, body in rows:
            if not is_whole(seq, crc, body):
                raise _unreadable(path, seq - 1, "a checksum is wrong")
            try:
                events = _DECODER.decode(body)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise _unreadable(path, seq - 1, str(error)) from error
            yield seq, events
        at = rows[-1][0]


def _unreadable(path: Path, at: int, why: str) -> JournalDamagedError:
    what = f"{path}: events behind batch {at} cannot be read ({why})"
    return JournalDamagedError(f"{what}; restore a copy, or move it away to begin anew")
