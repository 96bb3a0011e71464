"""What commands print: scorecards side by side, explanations, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from aliquot.control.encode import encode_json, write_json
from aliquot.control.experiments import Explanation
from aliquot.core.errors import SpecError
from aliquot.core.report.result import RunResult
from aliquot.interfaces.cli.sentences import explain_lines
from aliquot.interfaces.cli.tables import difference_lines, scorecard_table, standing_lines


def show_results(results: Sequence[RunResult], *, as_json: bool, out: Path | None, report: Path | None) -> None:
    """Print the scorecards; write JSON and HTML where asked to."""
    for path in (out, report):
        if path is not None and not path.parent.is_dir():
            raise SpecError("no such folder", field=str(path), hint=f"make {path.parent} first")
    if report is not None:
        from aliquot.interfaces.reports import write_report  # noqa: PLC0415 - charts are heavy to load

        write_report(report, results, title=results[0].scenario)
    if out is not None:
        write_json(out, results)
    if as_json:
        sys.stdout.buffer.write(encode_json(results))
        sys.stdout.flush()
        return
    console = Console()
    console.print(scorecard_table(results))
    for line in (*difference_lines(results), *standing_lines(results)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if report is not None:
        console.print(f"report: {report}", markup=False, highlight=False, soft_wrap=True)


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """Print why a job is where it is."""
    if as_json:
        sys.stdout.buffer.write(encode_json(explanation))
        sys.stdout.flush()
        return
    console = Console()
    for line in explain_lines(explanation):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def watch(label: str = "jobs") -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error where that is a terminal; None elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None)

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield advance
