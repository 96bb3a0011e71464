"""A site's history in a table of its own making: a mapping says which column holds what.

Every cell is either read exactly, or one of the words that mean "unknown", or an error that names file,
line, column, value and what would be right. Nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, TypeVar

from aliquot.control.naming import not_found
from aliquot.control.replaying import HistoryColumns
from aliquot.core.errors import DocumentError, QuantityError
from aliquot.core.units import FULL, parse_fraction, parse_memory
from aliquot.traces.history import Past, Table
from aliquot.traces.moments import parse_duration, parse_time
from aliquot.traces.tables import Row, broken_cell, read_lines

ValueT = TypeVar("ValueT")
MOST_CARDS: Final = 100_000
NO_DURATION: Final = "without a run time"
NO_CARDS: Final = "without a number of cards"
NO_CARD: Final = "with no card"
NO_LIMIT: Final = "unlimited"
NO_SUBMIT: Final = "without a submit time"


def read_csv_history(path: Path, columns: HistoryColumns) -> Table:
    """The jobs of `path`. Raises DocumentError for the first cell that is neither right nor unknown."""
    jobs: list[Past] = []
    left_out: Counter[str] = Counter()
    lines: dict[str, int] = {}
    checked = False
    for line, row in read_lines(path, columns.delimiter):
        if not checked:
            _check_columns(path, columns, row)
            checked = True
        job = _Cells(path, line, row, columns).job()
        if isinstance(job, str):
            left_out[job] += 1
            continue
        if job.id in lines:
            hint = f"an id of its own: line {lines[job.id]} has it"
            raise broken_cell(path, line, columns.id or "id", job.id, hint)
        lines[job.id] = line
        jobs.append(job)
    return Table(path.stem, str(path), tuple(jobs), tuple(left_out.items()), share=columns.share)


def _check_columns(path: Path, columns: HistoryColumns, row: Row) -> None:
    said = (
        columns.submit, columns.cards, columns.id, columns.start, columns.end, columns.duration,
        columns.estimate, columns.limit, columns.nodes, columns.memory, columns.model, columns.queue,
        columns.user, columns.priority,
    )  # fmt: skip  # one name a word
    for column in said:
        if column is not None and column not in row:
            raise DocumentError(str(not_found("column", column, row)), file=str(path), line=1)


class _Cells:
    """One row, read by what its columns mean."""

    def __init__(self, path: Path, line: int, row: Row, columns: HistoryColumns) -> None:
        self._path, self._line, self._row, self._columns = path, line, row, columns

    def job(self) -> Past | str:
        """The job of this row, or why it cannot be replayed."""
        columns = self._columns
        submitted = self._time(columns.submit)
        started = self._time(columns.start)
        cards = self._read(columns.cards, _cards_milli, f"a whole number up to {MOST_CARDS}, or a part of 1")
        ran = self._ran(started)
        nodes = self._read(columns.nodes, _count(1, MOST_CARDS), f"a whole number from 1 to {MOST_CARDS}")
        if submitted is None:
            return NO_SUBMIT
        if started is not None and started < submitted:
            self._fail(
                columns.start, f"no earlier than {columns.submit}, {self._row[columns.submit].strip()}"
            )
        if cards is None:
            return NO_CARDS
        if cards == 0:
            return NO_CARD
        if ran is None:
            return NO_DURATION
        return Past(
            id=self._word(columns.id) or f"line-{self._line}",
            line=self._line,
            submitted_ms=submitted,
            ran_ms=ran,
            cards_milli=cards,
            started_ms=started,
            nodes=nodes,
            memory_mib=self._read(
                columns.memory, self._memory, "an amount of memory such as 16384 MiB or 16 GiB"
            ),
            model=self._word(columns.model),
            queue=self._read(
                columns.queue, _queue, "names joined by single slashes, such as ai-lab/training"
            ),
            user=self._word(columns.user),
            priority=self._read(columns.priority, int, "a whole number"),
            estimate_ms=self._duration(columns.estimate, columns.estimate_unit),
            limit_ms=self._limit(),
        )

    def _ran(self, started: int | None) -> int | None:
        columns = self._columns
        ended = self._time(columns.end)
        if started is not None and ended is not None and ended < started:
            self._fail(
                columns.end, f"no earlier than {columns.start}, {self._row[columns.start or ''].strip()}"
            )
        ran = self._duration(columns.duration, columns.duration_unit)
        if ran is None and started is not None and ended is not None:
            ran = ended - started
        return ran

    def _time(self, column: str | None) -> int | None:
        return self._read(column, lambda text: parse_time(text, self._columns.time_form))

    def _duration(self, column: str | None, unit: str) -> int | None:
        return self._read(column, lambda text: parse_duration(text, unit))

    def _limit(self) -> int | None:
        """None where there is none, or it is unknown. Raises DocumentError."""

        def parse(text: str) -> int | None:
            if text.casefold() == NO_LIMIT:
                return None
            limit = parse_duration(text, self._columns.limit_unit)
            if not limit:
                raise ValueError("more than 0, or unlimited")
            return limit

        return self._read(self._columns.limit, parse)

    def _memory(self, text: str) -> int:
        return parse_memory(text, "", plain=self._columns.memory_unit)

    def _word(self, column: str | None) -> str | None:
        return self._read(column, lambda text: text)

    def _read(self, column: str | None, parse: Callable[[str], ValueT], right: str = "") -> ValueT | None:
        """The cell of `column`, or None where there is no such column or it says "unknown"."""
        if column is None:
            return None
        text = self._row[column].strip()
        if text.casefold() in self._columns.unknown:
            return None
        try:
            return parse(text)
        except QuantityError as problem:
            raise broken_cell(self._path, self._line, column, text, right or problem.hint) from None
        except ValueError as problem:
            raise broken_cell(self._path, self._line, column, text, right or str(problem)) from None

    def _fail(self, column: str | None, right: str) -> NoReturn:
        assert column is not None
        raise broken_cell(self._path, self._line, column, self._row[column].strip(), right)


def _cards_milli(text: str) -> int:
    """Milli-cards: a whole number of cards, or a part of one, rounded down to thousandths."""
    part = parse_fraction(text, "")
    milli = int(part * FULL)
    if part > MOST_CARDS or (part > 1 and part.denominator != 1) or (part and not milli):
        raise ValueError(text)
    return milli


def _count(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and least <= int(text) <= most):
            raise ValueError(text)
        return int(text)

    return parse


def _queue(text: str) -> str:
    if any(part.strip() != part or part in {"", "*"} for part in text.split("/")):
        raise ValueError(text)
    return text
