"""Reading published CSV tables: every broken cell is named with file, line and column."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from aliquot.core.errors import DocumentError

Row = dict[str, str]


def read_table(path: Path, columns: tuple[str, ...]) -> list[Row]:
    """Rows of a CSV file that has all of `columns`; row i stands on line i + 2."""
    try:
        with path.open(newline="", encoding="utf-8") as text:
            reader = csv.DictReader(text)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise DocumentError(
                    f"no column {missing[0]!r}", file=str(path), line=1, hint=f"columns {', '.join(columns)}"
                )
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise DocumentError(f"can't be read: {problem}", file=str(path)) from None
    for line, row in enumerate(rows, start=2):
        for name in columns:
            if row[name] is None:
                raise DocumentError(
                    "has no value: the row is cut short", file=str(path), line=line, field=name
                )
    return rows


def whole(path: Path, line: int, row: Row, column: str, least: int = 0) -> int:
    """A whole number of at least `least`."""
    text = row[column].strip()
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise broken_cell(path, line, column, text, f"a whole number, {least} or more")
    return int(text)


def number(path: Path, line: int, row: Row, column: str, least: float = 0.0) -> float:
    """A finite number of at least `least`."""
    text = row[column].strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= least):
        raise broken_cell(path, line, column, text, f"a number, {least:g} or more")
    return value


def broken_cell(path: Path, line: int, column: str, value: object, hint: str) -> DocumentError:
    """The error of one cell; `hint` says what would be right."""
    return DocumentError(
        f"{value!r} is no {column}", file=str(path), line=line, field=column, value=value, hint=hint
    )
