"""The list of commands: each can be made, loads what it needs, and reads plain values as the parser does."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.bootstrap import make_experiments
from aliquot.bootstrap_live import make_live
from aliquot.interfaces.cli import commands
from aliquot.interfaces.cli.app import make_group
from aliquot.interfaces.cli.commands import REPLAYS, ROWS, Doors, Row, Shelf, make_command
from aliquot.interfaces.cli.help import Command
from tests.support.command import ROOT, aliquot

DOORS = Doors(make_experiments, make_live, lambda files: [])
CLI = Path(commands.__file__).parent


@pytest.mark.parametrize("row", [*ROWS, *REPLAYS], ids=lambda row: row.name)
def test_every_command_of_the_list_can_be_made_and_says_what_it_does(row: Row) -> None:
    command = make_command(row, DOORS)
    assert command.name == row.name
    assert command.help, "a page of its own"
    assert row.line.endswith("."), "a sentence"
    assert isinstance(command, Shelf) == bool(row.below)


def test_no_command_is_left_out_of_the_list() -> None:
    listed = {(row.module, f"add_{row.name}") for row in (*ROWS, *REPLAYS)}
    there = {
        (path.stem, node.name)
        for path in CLI.glob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("add_")
    }
    assert there == listed


def test_what_nobody_is_there_to_ask_is_not_on_the_list() -> None:
    alone = make_group(Doors(make_experiments))
    assert list(alone.commands) == ["simulate", "compare", "replay", "explain", "topology"]


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (("jobs", "--help"), ("msgspec", "numpy", "pydantic", "rich", "aliquot.interfaces.cli.virtual")),
        (("simulate", "--help"), ("msgspec", "numpy", "pydantic", "rich", "aliquot.interfaces.cli.live")),
        (("jobs", "--socket", "/nowhere"), ("numpy", "pydantic", "rich", "http.client", "yaml")),
    ],
    ids=" ".join,
)
def test_a_command_loads_what_it_needs(words: tuple[str, ...], heavy: tuple[str, ...]) -> None:
    program = (
        f"import sys; sys.argv = ['aliquot', *{words!r}]\n"
        "from aliquot.__main__ import main\n"
        "try: main()\n"
        f"finally: print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "src",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("aliquot unres", ["unreserve"]),
        ("aliquot replay p", ["philly", "pollux"]),
        ("aliquot jobs --a", ["--all"]),
        ("aliquot no", []),
    ],
)
def test_a_shell_completes_commands_and_options(words: str, found: list[str]) -> None:
    at = str(len(words.split()) - 1)
    done = aliquot(_ALIQUOT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=at)
    assert (done.code, done.out.split()) == (0, found)


def test_a_shell_is_given_its_script() -> None:
    assert "complete" in aliquot(_ALIQUOT_COMPLETE="source_bash").out


# --- values ----------------------------------------------------------------------------------------------


class Read:
    """What a command with one option of each kind was given."""

    def __init__(self) -> None:
        self.given: object = None

    def by(self, words: list[str], *, plainly: bool) -> object:
        """The values, or what is wrong with them."""
        app = typer.Typer(rich_markup_mode=None)

        @app.command(cls=Command if plainly else None)
        def take(
            whole: Annotated[int, typer.Option(min=-5, max=99)] = 3,
            share: Annotated[float, typer.Option(min=0)] = 0.5,
            path: Annotated[Path | None, typer.Option()] = None,
            word: Annotated[str, typer.Option()] = "",
            many: Annotated[list[int] | None, typer.Option(max=50)] = None,
        ) -> None:
            self.given = (whole, share, path, word, many)

        try:
            typer.main.get_command(app).main(words, "take", standalone_mode=False)
        except typer.TyperException as error:
            return error.format_message()
        return self.given


TEXTS = st.one_of(
    st.text(max_size=6).filter(lambda text: not text.startswith("-") and "\x00" not in text),
    st.integers(-200, 200).map(str),
    st.floats(-9, 9).map(str),
    st.sampled_from(["", " 7", "7.0", "1e1", "1_0", "007", "+7", "\u0661", "nan", "inf", "/", ".", "True"]),
)


@pytest.mark.parametrize("name", ["whole", "share", "path", "word", "many"])
@settings(deadline=None)
@given(text=TEXTS, again=TEXTS)
def test_plain_values_are_read_as_the_parser_reads_them(name: str, text: str, again: str) -> None:
    words = [f"--{name}={text}", f"--{name}={again}"]
    plain, usual = Read().by(words, plainly=True), Read().by(words, plainly=False)
    if name == "path" and not again:  # to the parser that is the folder one is in
        assert "it is empty" in str(plain)
        return
    assert repr(plain) == repr(usual)
    assert isinstance(plain, tuple | str)
