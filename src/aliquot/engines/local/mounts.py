"""Which cgroup hierarchies this host has: version 1, version 2, or both, from the kernel's list of mounts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

CONTROLS: Final = ("memory", "cpu", "cpuset", "pids", "devices")
"""What we enforce by cgroup. Hierarchies that carry nothing of it are left alone, version 2 apart."""


class Mount(NamedTuple):
    """One hierarchy: where it is, and which controllers it carries; a version 2 one may carry none."""

    version: int
    path: Path
    controllers: frozenset[str]


def find_mounts(root: Path = Path("/")) -> list[Mount]:
    """The hierarchies under `root`, in mount order; empty where there are none or they cannot be read."""
    try:
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = (_read_line(line, root) for line in text.splitlines())
    return [mount for mount in found if mount is not None]


def name_layout(mounts: list[Mount]) -> str:
    """`v1`, `v2`, `hybrid` or `none`, for a person."""
    versions = {mount.version for mount in mounts}
    return {frozenset({1}): "v1", frozenset({2}): "v2", frozenset({1, 2}): "hybrid"}.get(
        frozenset(versions), "none"
    )


def _read_line(line: str, root: Path) -> Mount | None:
    """`ID PARENT DEV ROOT POINT OPTIONS [TAGS] - TYPE SOURCE SUPER_OPTIONS`; None for another mount."""
    mount, _, filesystem = line.partition(" - ")
    fields, kind = mount.split(" "), filesystem.split(" ")
    if len(fields) < 6 or len(kind) < 3 or kind[0] not in {"cgroup", "cgroup2"}:
        return None
    path = root / _unescape(fields[4]).lstrip("/")
    if kind[0] == "cgroup2":
        return Mount(2, path, _offered(path))
    carried = frozenset(kind[2].split(",")) & frozenset(CONTROLS)
    return Mount(1, path, carried) if carried else None


def _offered(path: Path) -> frozenset[str]:
    try:
        return frozenset((path / "cgroup.controllers").read_text(encoding="ascii").split())
    except OSError:
        return frozenset()


def _unescape(text: str) -> str:
    """The kernel writes spaces and the like as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
