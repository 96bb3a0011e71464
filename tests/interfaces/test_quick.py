"""`aliquot jobs` without the parser asks and prints the same as with it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import pytest

from aliquot.bootstrap import make_experiments
from aliquot.control.live import Live
from aliquot.interfaces.cli.app import run_app
from aliquot.interfaces.cli.commands import ROWS, Doors, make_command
from aliquot.interfaces.cli.quick import FLAGS, SOCKET, read_ask, run_quickly
from tests.support.command import aliquot, complaint

NOTHING: Mapping[str, str] = {}


class Service:
    """One without jobs that notes what it is asked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.asked: list[tuple[Path | None, str, dict[str, Any]]] = []
        self._path: Path | None = None

    def doors(self) -> Live:
        """The ways to it."""
        return Live(_never, self.dial, _never, _never, _never, lambda: self.environment)

    def dial(self, path: Path | None) -> Service:
        """A line to it."""
        self._path = path
        return self

    def read(self, path: str, **query: Any) -> bytes:
        """What it says: nothing."""
        self.asked.append((self._path, path, query))
        return b"[]"


def _never(*_: object) -> NoReturn:
    raise AssertionError("nobody asks for this")


def told(words: Sequence[str], *, quickly: bool) -> tuple[int | None, object, bytes]:
    """The exit code, what was asked of the service, and what was printed."""
    service, out = Service(NOTHING), BytesIO()
    with redirect_stdout(TextIOWrapper(out, write_through=True)):
        code = (
            run_quickly(words, service.doors) if quickly else run_app(words, make_experiments, service.doors)
        )
        return code, service.asked, out.getvalue()


@pytest.mark.parametrize(
    "words",
    [
        [],
        *([flag] for flag in FLAGS),
        *(list(pair) for pair in itertools.combinations(("--all", "-m", "--each", "--json"), 2)),
        ["--all", "-a", "--json", "--mine", "-e", "--socket", "/s"],
        ["--socket", "one", "--socket", "two"],
    ],
    ids=" ".join,
)
def test_it_asks_and_prints_the_same(words: list[str]) -> None:
    quick = told(["jobs", *words], quickly=True)
    assert quick == told(["jobs", *words], quickly=False)
    assert quick[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "--help"],
        ["jobs", "-am"],
        ["jobs", "12"],
        ["jobs", "--socket=/s"],
        ["jobs", "--socket"],
        ["jobs", "--socket", "-a"],
        ["jobs", "--socket", "", "-a"],
        ["jobs", "--no-such"],
        ["job"],
        ["--version"],
        [],
    ],
    ids=" ".join,
)
def test_what_is_not_plain_is_left_to_the_parser(words: list[str]) -> None:
    assert told(words, quickly=True) == (None, [], b"")


def test_it_knows_every_option_of_the_list() -> None:
    (row,) = (row for row in ROWS if row.name == "jobs")
    command = make_command(row, Doors(make_experiments, Service(NOTHING).doors))
    assert {name for param in command.params for name in param.opts} == {*FLAGS, SOCKET}


def test_the_environment_names_a_socket_and_a_shell_that_completes() -> None:
    named = read_ask([], {"ALIQUOT_SOCKET": "/s"})
    assert named is not None
    assert named.socket == Path("/s")
    assert read_ask([], {"_ALIQUOT_COMPLETE": "complete_bash"}) is None
    nearer = read_ask(["--socket", "/t"], {"ALIQUOT_SOCKET": "/s"})
    assert nearer is not None
    assert nearer.socket == Path("/t")


def test_a_service_that_is_not_there_is_said_in_one_line() -> None:
    assert complaint(aliquot("jobs", "--socket", "/nowhere")).startswith("no service answers at /nowhere")
