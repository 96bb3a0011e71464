"""Reading published CSV tables: every broken cell is named with file, line and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
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


def read_lines(path: Path, delimiter: str = ",", *, quoted: bool = True) -> Iterator[tuple[int, Row]]:
    """Every row with the line it ends on; the first names the columns. A row too short or long is an error.

    Not `quoted`: a quote is a sign like any other, as in output that never quotes.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as text:
            quote = '"' if quoted else None
            reader = csv.reader(text, delimiter=delimiter, quotechar=quote, strict=quoted)
            names = _names(path, next(reader, []))
            for cells in reader:
                if cells:
                    _check_length(path, reader.line_num, names, cells, delimiter)
                    yield reader.line_num, dict(zip(names, cells, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise DocumentError(f"can't be read: {problem}", file=str(path)) from None


def _names(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise DocumentError("is empty", file=str(path), line=1, hint="a first row that names the columns")
    for at, name in enumerate(names):
        if name and name in names[:at]:
            raise DocumentError(f"two columns named {name!r}", file=str(path), line=1, field=name)
    return names


def _check_length(path: Path, line: int, names: Sequence[str], cells: list[str], delimiter: str) -> None:
    if len(cells) != len(names):
        raise DocumentError(
            f"{len(cells)} values in {len(names)} columns",
            file=str(path),
            line=line,
            field=names[min(len(cells), len(names) - 1)],
            hint=f"as many values as the first row has, with {delimiter!r} between them",
        )


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
