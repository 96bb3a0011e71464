"""The source tree as the tests of the house read it: parsed once, walked by many."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file: its path below the root (with `/`), its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module


@pytest.fixture(scope="session")
def tracked(repository: Path) -> list[Path]:
    """Every file that is or would be committed; without git, every file below the folders we write."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    names = listing.stdout.split("\0") if listing.returncode == 0 else walk_names(repository)
    files = (repository / name for name in sorted(filter(None, names)))
    return [file for file in files if file.is_file()]


@pytest.fixture(scope="session")
def sources(repository: Path) -> list[Source]:
    """Every module of the package, in path order."""
    return read_sources(repository, ["src"])


@pytest.fixture(scope="session")
def core_sources(sources: list[Source]) -> list[Source]:
    """The modules of the pure core."""
    return [source for source in sources if source.path.startswith("src/aliquot/core/")]


@pytest.fixture(scope="session")
def all_python(repository: Path) -> list[Source]:
    """Every Python file of the project: package, tests, benchmarks, scripts."""
    return read_sources(repository, ["src", "tests", "bench", "scripts"])


def read_sources(root: Path, folders: list[str]) -> list[Source]:
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    return [read_source(root, file) for file in files]


def read_source(root: Path, file: Path) -> Source:
    text = file.read_text(encoding="utf-8")
    return Source(file.relative_to(root).as_posix(), text, ast.parse(text))


def walk_names(root: Path) -> list[str]:
    folders = ("src", "tests", "bench", "scripts", "docs", "examples", "requirements", ".ci")
    inside = (file for folder in folders for file in (root / folder).rglob("*") if file.is_file())
    found = [*inside, *(file for file in root.iterdir() if file.is_file())]
    hidden = {"__pycache__"}
    return [file.relative_to(root).as_posix() for file in found if not hidden & set(file.parts)]
