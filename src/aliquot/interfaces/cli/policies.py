"""`aliquot policies`: the policies there are, what each is for, and every value that one of them sets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from aliquot.interfaces.cli.help import Command, examples
from aliquot.interfaces.cli.options import JsonFlag

if TYPE_CHECKING:  # loading what draws takes longer than all the rest of `--help`
    from rich.table import Table

Page = tuple[str, str, tuple[tuple[str, str, str], ...]]
"""A policy: its name, what it is, and rows of field, value, the value without it."""

Policies = Callable[[Sequence[Path]], Sequence[Page]]
PIPE_WIDTH: Final = 1000
GOALS: Final = ("performance", "utilisation", "fairness", "stability")

NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", show_default=False, help="Show every value of this one."),
]
FilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Documents whose policies come before the built-in ones."
    ),
]


def add_policies(app: typer.Typer, policies: Policies) -> None:
    """The command, with what knows the policies."""

    @app.command(
        name="policies",
        cls=Command,
        epilog=examples(
            "aliquot policies",
            "aliquot policies internal-platform",
            "aliquot policies night -f site.yaml --json",
        ),
    )
    def show(name: NameArgument = None, file: FilesOption = None, json: JsonFlag = False) -> None:
        """List the policies there are, or show every value that NAME sets, as one writes it in a document.

        A document of kind Policy with `preset: NAME` starts from the weights of that preset; each field
        that it names replaces that value and no other.
        """
        pages = policies(file or ())
        if name is None:
            _print(_list_of(pages), [_plain(page) for page in pages], as_json=json)
            return
        page = _find(pages, name)
        if not json:
            typer.echo(f"{page[0]}: {page[1]}\n")
        _print(_table_of(page), _plain(page), as_json=json)


def _find(pages: Sequence[Page], name: str) -> Page:
    from aliquot.control.naming import not_found

    found = next((page for page in pages if page[0] == name), None)
    if found is None:
        raise not_found("policy", name, (page[0] for page in pages))
    return found


def _plain(page: Page) -> dict[str, Any]:
    name, about, rows = page
    return {"name": name, "about": about, "fields": {field: value for field, value, _ in rows}}


def _list_of(pages: Sequence[Page]) -> Table:
    """One row a policy; weights only where somebody weighed."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for goal in GOALS:
        table.add_column(goal, justify="right", no_wrap=True)
    table.add_column("what it is")
    for name, about, rows in pages:
        values = {field: value for field, value, _ in rows}
        table.add_row(name, *(values.get(f"objectives.{goal}", "") for goal in GOALS), about)
    return table


def _table_of(page: Page) -> Table:
    """Every value; those that differ from the default are bold, with the default beside them."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title in ("field", "value", "without it"):
        table.add_column(title, no_wrap=True)
    for field, value, usual in page[2]:
        if value == usual:
            table.add_row(field, value, "")
        else:
            table.add_row(field, f"[bold]{value}[/bold]", usual)
    return table


def _print(table: Table, plain: Any, *, as_json: bool) -> None:
    from aliquot.control.encode import encode_json

    if as_json:
        sys.stdout.buffer.write(encode_json(plain))
    else:
        from aliquot.interfaces.cli.screen import Screen

        console = Screen()
        width = console.width if console.is_terminal else PIPE_WIDTH
        Screen(width=width).print(table)
