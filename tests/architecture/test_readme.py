"""What the README tells a newcomer to type exists: make targets, commands and their options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

READMES: Final = ("README.md", "README.zh.md")
FENCE: Final = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TARGET: Final = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


@pytest.mark.parametrize("readme", READMES)
def test_make_targets_of_the_readme_exist(readme: str, repository: Path) -> None:
    targets = set(TARGET.findall((repository / "Makefile").read_text(encoding="utf-8")))
    named = {words[1] for words in commands(repository / readme, "make")}
    assert named, f"{readme} shows no make command"
    assert named - targets == set()


@pytest.mark.parametrize("readme", READMES)
def test_files_linked_from_the_readme_exist(readme: str, repository: Path) -> None:
    text = (repository / readme).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (repository / link).exists()] == []


def test_both_languages_show_the_same_commands(repository: Path) -> None:
    english, chinese = (FENCE.findall((repository / name).read_text(encoding="utf-8")) for name in READMES)
    assert [strip_comments(block) for block in english] == [strip_comments(block) for block in chinese]


@pytest.mark.slow
@pytest.mark.parametrize("readme", READMES)
def test_commands_and_options_of_the_readme_exist(readme: str, repository: Path) -> None:
    if not (repository / "src/aliquot/__main__.py").exists():
        pytest.skip("the command line is not written yet")
    for words in commands(repository / readme, "aliquot"):
        names = [word for word in words[1:3] if re.fullmatch(r"[a-z][a-z-]*", word)]
        page = help_page(repository, names)
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert {option for option in options if option not in page} == set(), " ".join(words)


def commands(readme: Path, program: str) -> Iterator[list[str]]:
    """The words of each line that calls `program` in the fenced blocks; a trailing comment is dropped."""
    for block in FENCE.findall(readme.read_text(encoding="utf-8")):
        for line in strip_comments(block).replace("\\\n", " ").splitlines():
            words = line.removeprefix("$ ").split()
            if words and Path(words[0]).name == program:
                yield words


def strip_comments(block: str) -> str:
    lines = (re.sub(r"(^|\s+)#.*$", "", line).rstrip() for line in block.splitlines())
    return "\n".join(line for line in lines if line)


def help_page(root: Path, names: list[str]) -> str:
    """The help of `aliquot NAMES...`; a second word that is an argument, not a command, does no harm."""
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    environment["PYTHONPATH"] = str(root / "src")
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", *names, "--help"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
