"""What is printed where not every character can be: in a terminal or a pipe whose encoding is no UTF-8."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.command import ROOT
from tests.support.service import LiveService, environment

CAT = "\u732b"
FIRST = ROOT / "examples/first"
JOB = f"apiVersion: aliquot.dev/v1\nkind: Job\nmetadata: {{name: {CAT}}}\n"
ASCII = {"PYTHONIOENCODING": "ascii"}
BARE_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


class Site:
    """A service with a job whose name few encodings have, and documents of the same."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        self.job = service.submit("echo hello; sleep 600", name=CAT)
        service.until_running(self.job)
        service.write("job.yaml", f"{JOB}spec: {{cpu: 1, command: echo}}\n")
        text = (FIRST / "first.yaml").read_text(encoding="utf-8")
        service.write("first.yaml", text.replace("name: train", f"name: {CAT}"))

    def say(self, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "aliquot", *(word.format(job=self.job) for word in words)],
            cwd=self.service.folder,
            env=environment() | {"ALIQUOT_SOCKET": str(self.service.socket)} | variables,
            capture_output=True,
            check=False,
            timeout=300,
        )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with LiveService() as service:
        yield Site(service)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("jobs",), id="jobs"),
        pytest.param(("jobs", "--json"), id="jobs in JSON"),
        pytest.param(("job", "{job}"), id="job"),
        pytest.param(("explain", "{job}"), id="explain"),
        pytest.param(("why", "{job}"), id="why"),
        pytest.param(("gpus",), id="gpus"),
        pytest.param(("queues",), id="queues"),
        pytest.param(("reservations",), id="reservations"),
        pytest.param(("top", "--once"), id="top"),
        pytest.param(("logs", "{job}"), id="logs"),
        pytest.param(("run", "--", "true"), id="run"),
        pytest.param(("submit", "job.yaml"), id="submit"),
        pytest.param(("policies",), id="policies"),
        pytest.param(("simulate", "first.yaml"), id="simulate"),
        pytest.param(("simulate", "first.yaml", "--json", "-"), id="simulate in JSON"),
        pytest.param(("explain", "first.yaml", "notebook"), id="explain of documents"),
        pytest.param(("--help",), id="help"),
    ],
)
def test_every_command_prints_what_it_can_and_spells_out_the_rest(site: Site, words: tuple[str, ...]) -> None:
    done = site.say(ASCII, *words)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert done.stdout or words[0] == "run"


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param({"PYTHONIOENCODING": "latin-1"}, id="latin-1"),
        pytest.param({"LC_ALL": "C"}, id="C"),
        pytest.param(BARE_C, id="C as it was once"),
    ],
)
@pytest.mark.parametrize("words", [("jobs",), ("top", "--once"), ("simulate", "first.yaml")], ids=" ".join)
def test_whatever_the_encoding_is_there_is_no_traceback(
    site: Site, variables: dict[str, str], words: tuple[str, ...]
) -> None:
    done = site.say(variables, *words)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_name_whose_characters_are_missing_is_spelt_by_their_codes(site: Site) -> None:
    done = site.say(ASCII, "jobs")
    assert b"\\u732b" in done.stdout
    assert CAT.encode() in site.say({"PYTHONIOENCODING": "utf-8"}, "jobs").stdout


def test_a_mistake_with_such_a_name_is_one_line(site: Site) -> None:
    done = site.say(BARE_C, "cancel", CAT)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr


def test_bars_are_drawn_with_what_the_encoding_has(site: Site) -> None:
    assert b"##########  100 %" in site.say(ASCII, "top", "--once").stdout
    assert b"..........  0 %" in site.say(ASCII, "top", "--once").stdout
    assert "\u2588".encode() in site.say({"PYTHONIOENCODING": "utf-8"}, "top", "--once").stdout
