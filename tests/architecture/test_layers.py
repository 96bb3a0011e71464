"""The layers of the design hold: import-linter's contracts of pyproject.toml, run as a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_every_import_goes_downwards(repository: Path, tmp_path: Path) -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--cache-dir", str(tmp_path)],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
