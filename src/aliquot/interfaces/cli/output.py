"""What commands print: scorecards side by side, explanations, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from aliquot.control.encode import encode_json, write_json
from aliquot.control.experiments import Explanation
from aliquot.core.errors import SpecError
from aliquot.core.report.result import RunResult
from aliquot.interfaces.cli.expectations import predicted_lines
from aliquot.interfaces.cli.screen import Screen
from aliquot.interfaces.cli.sentences import explain_lines
from aliquot.interfaces.cli.tables import (
    band_table,
    difference_lines,
    failure_lines,
    queue_table,
    scorecard_table,
    standing_lines,
)

STDOUT: Final = Path("-")
PIPE_WIDTH: Final = 1000


class Outputs:
    """Where the results of a run go: a table, or JSON, and a report. Made before the run, shown after it.

    `json`: a file, or `-` for standard output in place of the table. Raises SpecError at once where a file
    could not be written or is one of `inputs`: better before a long run than after it.
    """

    def __init__(self, json: Path | None, report: Path | None, *, inputs: Sequence[Path] = ()) -> None:
        self._json, self._report = json, report
        if json is not None and json != STDOUT:
            _check_writable(json, "--json", inputs)
        if report is not None:
            _check_writable(report, "--report", inputs)
        if json is not None and json == report:
            raise SpecError(
                "is the report too", field="--json", value=str(json), hint="give each its own file"
            )

    def show(self, results: Sequence[RunResult], *, lines: Sequence[str] = ()) -> None:
        """Write the files asked for, each whole or not at all, then print; `lines` last."""
        if self._report is not None:
            from aliquot.interfaces.reports import write_report

            _write(
                "--report", self._report, lambda path: write_report(path, results, title=results[0].scenario)
            )
        said = [*difference_lines(results), *failure_lines(results), *predicted_lines(results)]
        said += [*standing_lines(results), *lines]
        if self._report is not None:
            said.append(f"Report: {self._report}")
        tables = (scorecard_table(results), queue_table(results), band_table(results))
        shown = [table for table in tables if table is not None]
        self.show_as(results, results[0].scenario, shown, said)

    def show_as(self, value: object, title: str, tables: Sequence[Table], lines: Iterable[str]) -> None:
        """Write `value` as JSON where that was asked for, and print it as `tables` and `lines` or as JSON."""
        if self._json is not None and self._json != STDOUT:
            _write("--json", self._json, lambda path: write_json(path, value))
        if self._json == STDOUT:
            _print_json(value)
            return
        console = _console()
        console.print(title, style="bold", markup=False, highlight=False)
        for at, table in enumerate(tables):
            if at:
                console.print()
            console.print(table)
        _print_lines(console, lines)


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """Print why a job is where it is."""
    if as_json:
        _print_json(explanation)
    else:
        _print_lines(_console(), explain_lines(explanation))


@contextmanager
def watch(label: str = "jobs") -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error where that is a terminal; None elsewhere."""
    console = Screen(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield advance


def _check_writable(path: Path, option: str, inputs: Sequence[Path]) -> None:
    """Raises SpecError where `path` can't be written, or would overwrite what was read."""
    problem = None
    if not path.parent.is_dir():
        problem = ("no such folder", f"make {path.parent} first")
    elif path.is_dir():
        problem = ("is a folder", "name a file in it")
    elif not os.access(path.parent, os.W_OK):
        problem = (f"no permission to write in {path.parent}", "choose another folder")
    elif path.resolve() in {file.resolve() for file in inputs}:
        problem = ("is one of the documents to read", "choose another name")
    if problem is not None:
        raise SpecError(f"{path}: {problem[0]}", field=option, value=str(path), hint=problem[1])


def _write(option: str, path: Path, write: Callable[[Path], object]) -> None:
    try:
        write(path)
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}", field=option, value=str(path)) from error


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(encode_json(value))
    sys.stdout.flush()


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    """Standard output; in a pipe nothing is wrapped or cut to a width."""
    return Screen() if sys.stdout.isatty() else Screen(width=PIPE_WIDTH)
