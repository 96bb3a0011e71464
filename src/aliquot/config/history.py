"""The small file that says what the columns of a table of past jobs mean.

columns:                       # which column holds what; submit, cards and a run time are needed
  submit: submitted_at
  duration: runtime            # or start and end
  cards: gpus
  queue: team
units: {time: iso, duration: minutes}
delimiter: ";"
unknown: ["", "n/a"]           # words that say nothing, whatever their case
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import flag, one_of, text
from aliquot.config.source import read_items
from aliquot.config.tree import Item
from aliquot.control.replaying import HistoryColumns

TIME_UNITS: Final = ("iso", "seconds", "milliseconds")
DURATION_UNITS: Final = ["seconds", "milliseconds", "minutes", "hours", "days", "clock"]
MEMORY_UNITS: Final = ["MiB", "GiB", "TiB", "MB", "GB", "TB"]
_PATTERN: Final = re.compile(r"%[A-Za-z]")

COLUMNS: Final[Table] = {
    "id": Field(text),
    "submit": Field(text, required=True),
    "start": Field(text),
    "end": Field(text),
    "duration": Field(text),
    "estimate": Field(text),
    "limit": Field(text),
    "cards": Field(text, required=True),
    "nodes": Field(text),
    "gpuMemory": Field(text, "memory"),
    "model": Field(text),
    "queue": Field(text),
    "user": Field(text),
    "priority": Field(text),
}


def _time_form(item: Item) -> str:
    """`iso`, `seconds`, `milliseconds`, or a pattern such as `%d.%m.%Y %H:%M`."""
    word = item.scalar()
    if word in TIME_UNITS:
        return word
    right = f"{', '.join(TIME_UNITS)}, or a pattern such as %d.%m.%Y %H:%M"
    if not _PATTERN.search(word):
        item.fail(f"{word!r} is no form of time", right)
    try:
        written = datetime(2026, 5, 31, 8, 30, 15, tzinfo=UTC).strftime(word)
        datetime.strptime(written, word)  # noqa: DTZ007 - only whether the pattern can be read
    except ValueError:
        item.fail(f"{word!r} is a pattern that can't be read", right)
    return word


def _delimiter(item: Item) -> str:
    word = {"tab": "\t", "\\t": "\t"}.get(item.scalar(), item.scalar())
    if len(word) != 1 or word in '"\r\n' or word.isalnum():
        item.fail(f"{word!r} can't stand between values", 'one sign such as "," or ";", or tab')
    return word


def _unknown(item: Item) -> tuple[str, ...]:
    return tuple("" if child.null else child.scalar().strip().casefold() for child in item.elements())


UNITS: Final[Table] = {
    "time": Field(_time_form, "time_form"),
    "duration": Field(one_of(DURATION_UNITS), "duration_unit"),
    "estimate": Field(one_of(DURATION_UNITS), "estimate_unit"),
    "limit": Field(one_of(DURATION_UNITS), "limit_unit"),
    "gpuMemory": Field(one_of(MEMORY_UNITS), "memory_unit"),
}
MAPPING: Final[Table] = {
    "columns": Field(lambda item: item, required=True),
    "units": Field(lambda item: read_fields(item, UNITS)),
    "delimiter": Field(_delimiter),
    "unknown": Field(_unknown),
    "share": Field(flag),
}


def read_history_columns(path: Path) -> HistoryColumns:
    """The mapping in `path`, YAML or JSON. Raises DocumentError, with file, line and field."""
    items = read_items([path])
    if len(items) > 1:
        items[1].fail("a second document", "one mapping of columns")
    values = read_fields(items[0], MAPPING)
    at: Item = values.pop("columns")
    columns: dict[str, Any] = read_fields(at, COLUMNS)
    if "duration" not in columns and not {"start", "end"} <= columns.keys():
        at.fail("nothing says how long a job ran", "add columns.duration, or columns.start and columns.end")
    units: dict[str, Any] = values.pop("units", {})
    for unit in ("estimate_unit", "limit_unit"):
        units.setdefault(unit, units.get("duration_unit", "seconds"))
    return HistoryColumns(**columns, **units, **values)
