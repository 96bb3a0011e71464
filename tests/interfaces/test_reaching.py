"""Commands that cannot get at what they need: another user's service, a folder that is gone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aliquot.client import Client
from aliquot.client.starting import is_announced
from aliquot.control.errors import UnavailableError
from aliquot.engines.local.places import find_runtime
from tests.support.command import ROOT, aliquot, complaint
from tests.support.local import is_root, wait_for
from tests.support.service import environment

AS_NOBODY = """
import os, sys
from aliquot.bootstrap import make_experiments
from aliquot.bootstrap_live import make_live
from aliquot.interfaces.cli.app import run_app
from aliquot.interfaces.cli.quick import run_quickly
def run(words):
    code = run_quickly(words, make_live)
    return run_app(words, make_experiments, make_live) if code is None else code
own = os.environ["ALIQUOT_SOCKET"]
os.environ["ALIQUOT_SOCKET"] = "/nowhere"
sys.stderr = open(os.devnull, "w")
run(sys.argv[1:])  # loads all it needs from where nobody may not read
sys.stderr = sys.__stderr__
os.environ["ALIQUOT_SOCKET"] = own
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short name, that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="aliquot-") as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.mark.skipif(not is_root(), reason="only root may ask as somebody else")
@pytest.mark.parametrize("words", [("jobs",), ("gpus",), ("run", "--", "true")], ids=lambda words: words[0])
def test_of_another_users_service_it_is_said_whose_it_is(folder: Path, words: tuple[str, ...]) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen()
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, *words], env=environment() | {"ALIQUOT_SOCKET": str(path)},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip  # options only
    said = f"aliquot: error: {path} is root's own service: only its owner and root may use it\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_who_asks_while_a_service_compiles_is_told_that_it_starts(folder: Path) -> None:
    path = folder / "s" / "aliquot.sock"
    words = [sys.executable, "-m", "aliquot", "up", "--simulate", "l40s-4", "--state", str(path.parent)]
    variables = environment() | {"XDG_CACHE_HOME": str(folder / "c")}
    with subprocess.Popen(words, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as up:
        wait_for(lambda: is_announced(path), "it to say that it starts")
        with pytest.raises(UnavailableError, match=f"the service at {path} is starting"):
            Client(path).site()
        begun = Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text(encoding="ascii").split()
        up.kill()
        up.wait()
        for pid in map(int, begun):  # it had no time to
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(UnavailableError, match="no service answers"):
            Client(path).site()
    shutil.rmtree(find_runtime(path.parent), ignore_errors=True)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("run", "--", "true"), id="run"),
        pytest.param(("apply", "a.yaml"), id="apply"),
        pytest.param(("up", "--simulate", "l40s-4", "--state", "s"), id="up"),
        pytest.param(("simulate", str(ROOT / "examples/first"), "--json", "out.json"), id="simulate"),
    ],
)
def test_from_a_folder_that_is_gone_that_is_what_is_said(folder: Path, words: tuple[str, ...]) -> None:
    gone = folder / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "aliquot", *words],
        cwd=gone, env=environment(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip  # options only
    said = "aliquot: error: the folder you are in cannot be used: No such file or directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        pytest.param(("up", "--simulate", "l40s-4", "--state", ""), "--state", id="up"),
        pytest.param(("jobs", "--socket", ""), "--socket", id="jobs"),
        pytest.param(("simulate", ""), "FILE...", id="simulate"),
    ],
)
def test_a_path_that_is_empty_is_refused_and_nothing_is_written(
    folder: Path, words: tuple[str, ...], what: str
) -> None:
    said = complaint(aliquot(*words, cwd=folder))
    assert said == f"invalid value for '{what}': it is empty; a path is right (see aliquot {words[0]} --help)"
    assert list(folder.iterdir()) == []
