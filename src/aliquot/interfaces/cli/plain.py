"""Plain text for a person or a pipe: columns, ages, values as lines or JSON. It loads nothing that draws."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from aliquot.control.words import visible
from aliquot.core.units import format_ms

_T = TypeVar("_T")
_REMEMBERED: Final = 4096


def show(value: _T, lines_of: Callable[[_T], Iterable[str]], *, as_json: bool) -> None:
    """Print a value as JSON or as lines."""
    if as_json:
        print_json(value)
    else:
        print_lines(lines_of(value))


def print_json(value: object) -> None:
    """Indented, as the API spells it."""
    print_said(msgspec.json.encode(value))


def print_said(said: bytes) -> None:
    """JSON as it came, indented."""
    sys.stdout.buffer.write(msgspec.json.format(said, indent=2) + b"\n")
    sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> None:
    """All at once: of thousands, a call each takes longer than making them. None of them rules a terminal."""
    sys.stdout.write("".join(f"{visible(line)}\n" for line in lines))
    sys.stdout.flush()


def say(line: str) -> None:
    """One line on standard error, for a person beside what is printed."""
    sys.stderr.write(f"{visible(line)}\n")
    sys.stderr.flush()


def complain(message: str) -> None:
    """A mistake of a person's, on standard error."""
    say(f"aliquot: error: {message}")


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of one width, each cell as wide as the widest of its column."""
    return lay_out(list(zip(*rows, strict=True)))


def lay_out(table: Sequence[Sequence[str]]) -> list[str]:
    """The same of a table by columns, each with its heading: making thousands of rows one by one is slow."""
    table = [
        column if "".join(column).isprintable() else [visible(cell) for cell in column] for column in table
    ]
    *widths, _ = (max(map(len, column)) for column in table)
    form = "".join(f"%-{width}s  " for width in widths) + "%s"
    return [line.rstrip() for line in map(form.__mod__, zip(*table, strict=True))]


def age(ms: int) -> str:
    """How long ago, in whole seconds."""
    return span(max(0, ms) // 1000 * 1000)


@lru_cache(_REMEMBERED)
def span(ms: int) -> str:
    """A length of time; what many rows say is put into words once."""
    return format_ms(ms)


def now_ms() -> int:
    """Of the clock on the wall."""
    return time.time_ns() // 1_000_000
