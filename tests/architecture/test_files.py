"""What is committed runs anywhere: no path of one machine, no registry address, no empty name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

# Written in pieces, so that this file passes its own test.
REGISTRIES: Final = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("deb", "debian", "org"),
        ("maven", "apache", "org"),
    )
)
HOME: Final = re.compile(r"(?<![\w.~$}])/(?:home|Users|root|work)/[\w.-]+")
# Names that say nothing of what a module holds.
EMPTY_NAMES: Final = {"util", "utils", "helper", "helpers", "misc", "common", "base", "manager", "info"}
LARGEST_FILE: Final = 2 * 1024 * 1024


def test_no_file_names_a_folder_of_one_machine(tracked: list[Path], repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}:{number}: {line.strip()[:120]}"
        for path in tracked
        for number, line in enumerate(read_text(path).splitlines(), 1)
        if HOME.search(line) or str(repository) + "/" in line
    ]
    assert found == []


def test_no_file_names_a_package_registry(tracked: list[Path], repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}: {host}"
        for path in tracked
        for host in REGISTRIES
        if host in read_text(path)
    ]
    assert found == []


def test_files_stay_small_enough_to_clone_and_read(tracked: list[Path], repository: Path) -> None:
    large = [str(path.relative_to(repository)) for path in tracked if path.stat().st_size > LARGEST_FILE]
    assert large == []


def test_modules_are_named_for_what_they_hold(tracked: list[Path], repository: Path) -> None:
    package = (path.relative_to(repository) for path in tracked if path.suffix == ".py")
    found = [path.as_posix() for path in package if EMPTY_NAMES & {*path.parts[:-1], path.stem}]
    assert found == []


def test_shell_scripts_stop_at_the_first_error(tracked: list[Path], repository: Path) -> None:
    scripts = [path for path in tracked if read_text(path).startswith("#!/usr/bin/env bash")]
    found = [
        str(path.relative_to(repository)) for path in scripts if "set -euo pipefail" not in read_text(path)
    ]
    assert found == []


def read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
