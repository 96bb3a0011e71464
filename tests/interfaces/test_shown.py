"""What jobs and people have chosen, as it is shown: it commands no terminal and fills none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.client import Submission
from aliquot.control.speech import encoded, is_text
from aliquot.control.words import quoted, shortened, visible
from aliquot.core.errors import SpecError
from aliquot.interfaces.cli.live_text import LONGEST_COMMAND, command_text
from aliquot.interfaces.cli.plain import lay_out
from tests.support.command import complaint
from tests.support.service import LiveService, environment

RED: str = "\x1b[31m\x07\x9b2J\u202e"


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with LiveService() as running:
        yield running


@given(st.text(alphabet=st.characters()))
def test_what_is_shown_can_be_printed(text: str) -> None:
    assert visible(text).isprintable()
    assert quoted(text).isprintable()
    assert shortened(text, 10).isprintable()
    if text.isprintable():
        assert visible(text) == text


@given(st.lists(st.text(alphabet="a\x1b\n é作"), min_size=1, max_size=4))
def test_a_table_has_one_line_for_each_row(cells: list[str]) -> None:
    lines = lay_out([["HEAD", *cells], ["B", *cells]])
    assert len(lines) == len(cells) + 1
    assert all(line.isprintable() for line in lines)


def test_what_is_left_out_is_counted() -> None:
    assert quoted("x" * 70) == f"'{'x' * 60}' and 10 characters more"
    assert shortened("x" * 2100, 100) == f"{'x' * 100} ... and 2,000 characters more"
    assert command_text(("sh", "-c", "a b")) == "sh -c 'a b'"
    assert len(command_text(("sh", "-c", "x" * 4_000_000))) < LONGEST_COMMAND + 60


def test_a_job_that_would_paint_the_terminal_is_spelt_out(service: LiveService) -> None:
    script = f"printf '{RED}'; exit 3; # {RED}\n"
    job = service.client.submit(
        Submission(command=("sh", "-c", script), spec={"gpu": {}}, name="[red]a[/]", env={"X": RED})
    )
    service.client.wait(job)
    for words in (("job", job), ("jobs", "--all"), ("why", job), ("gpus",), ("queues",), ("top",)):
        done = service.run(*words)
        assert done.code == 0
        assert done.out.replace("\n", "").isprintable(), words
    assert "\\x1b[31m\\x07\\x9b2J\\u202e" in service.run("job", job).out
    assert "[red]a[/]" in service.run("jobs", "--all").out
    assert json.loads(service.run("job", job, "--json").out)["command"][2] == script
    assert service.run("logs", job).out == RED, "what it printed is printed as it is"


def test_names_are_no_markup_in_the_live_view(service: LiveService) -> None:
    job = service.client.submit(Submission(command=("sleep", "60"), spec={"gpu": {}}, name="[bold]b"))
    service.until_running(job)
    assert "[bold]b" in service.run("top", "--once").out
    service.client.cancel(job)


def test_a_huge_command_is_shortened_and_whole_in_json(service: LiveService) -> None:
    script = "true;" * 20_000
    job = service.client.submit(Submission(command=("sh", "-c", script), spec={"gpu": {}}))
    service.client.wait(job)
    said = service.run("job", job).out
    (line,) = [line for line in said.splitlines() if line.startswith("  command")]
    assert line.endswith("characters more")
    assert len(line) < LONGEST_COMMAND + 60
    assert json.loads(service.run("job", job, "--json").out)["command"] == ["sh", "-c", script]


def test_errors_that_quote_what_was_written_command_nothing(service: LiveService) -> None:
    for words in (("run", "--queue", RED, "true"), ("run", "--name", RED, "true"), ("job", RED), (RED,)):
        assert complaint(service.run(*words)).isprintable()


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("run", "--", b"\xff"), "command"),
        (("run", "--name", b"\xff", "true"), "name"),
        (("run", "--queue", b"\xff", "true"), "spec.queue"),
        (("run", "--env", b"A=\xff", "true"), "env.A"),
        (("reserve", b"\xff", "--duration", "1h"), "name"),
    ],
    ids=["a command", "a name", "a queue", "a variable", "a reservation"],
)
def test_bytes_that_are_no_text_are_named(
    service: LiveService, words: tuple[str | bytes, ...], field: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", *words],
        env=environment() | {"ALIQUOT_SOCKET": str(service.socket)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    (line,) = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert f"{field}: " in line
    assert "no text" in line or field == "name"


def test_a_variable_that_is_no_text_keeps_nobody_from_running(service: LiveService) -> None:
    done = service.run("run", "--", "sh", "-c", "echo $GOOD", GOOD="yes", BAD="\udcff")
    assert (done.code, done.out) == (0, "yes\n")
    assert done.err == "variable BAD is not passed on: it has bytes that are no text in UTF-8\n"


def test_where_a_field_is_no_text_is_said_down_to_the_key() -> None:
    assert (is_text("é作"), is_text("a\udcff")) == (True, False)
    with pytest.raises(SpecError, match=r"spec\.gpu\.model: '\\udcff' has bytes"):
        encoded(Submission(command=("x",), spec={"gpu": {"model": "\udcff"}}))
