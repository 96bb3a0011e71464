"""The `aliquot` command in a process of its own, as a person runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent


class Done(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


def aliquot(*words: str | Path, cwd: Path = ROOT, stdin: str | None = None, **variables: str) -> Done:
    """Run `aliquot WORDS...` in `cwd`, with no terminal and no traces but those that `variables` name."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALIQUOT_")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100", "NO_COLOR": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", *map(str, words)],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def complaint(done: Done) -> str:
    """The one line of an error a person made; checks that it is that: code 2, no traceback, no output."""
    assert (done.code, done.out) == (2, ""), done
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("aliquot: error: ")
    return lines[0].removeprefix("aliquot: error: ")
