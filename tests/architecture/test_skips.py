"""A skip is loud, and with `ALIQUOT_NO_SKIP=1` it is a failure, wherever it comes from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ALL_KINDS: Final = """
import pytest

def test_that_passes(): pass

def test_that_skips_inside(): pytest.skip("no such machine")

@pytest.mark.skip(reason="marked away")
def test_that_is_marked(): pass

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_known_to_fail(): assert False
"""
WHOLE_MODULE: Final = "import pytest; pytest.skip('module left out', allow_module_level=True)"


@pytest.fixture
def project(tmp_path: Path, repository: Path) -> Path:
    """A little project under our own conftest."""
    shutil.copy(repository / "tests/conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_all_kinds.py").write_text(ALL_KINDS, encoding="utf-8")
    (tmp_path / "test_whole_module.py").write_text(WHOLE_MODULE, encoding="utf-8")
    return tmp_path


def test_skips_are_listed_with_their_reasons(project: Path) -> None:
    code, output = run_pytest(project, no_skip="")
    assert code == 0
    assert "1 passed, 3 skipped, 1 xfailed" in output
    assert "LEFT OUT" in output
    assert all(reason in output for reason in ("no such machine", "marked away", "module left out"))


def test_no_skip_turns_every_skip_into_a_failure_but_not_an_expected_one(project: Path) -> None:
    code, output = run_pytest(project, "--continue-on-collection-errors", no_skip="1")
    assert code == 1
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in output
    assert "ALIQUOT_NO_SKIP forbids it: no such machine" in output


def run_pytest(folder: Path, *arguments: str, no_skip: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "markers=chromium", *arguments],
        cwd=folder,
        env={**os.environ, "ALIQUOT_NO_SKIP": no_skip},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr
