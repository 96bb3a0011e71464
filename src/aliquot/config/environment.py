"""What the process environment says. Nothing else reads environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

USUAL_TRACES = Path("../shared/traces")


class Environment(msgspec.Struct, frozen=True):
    """`trace_folders`: where public traces may be, the likeliest first. `cache`: the user's cache folder.

    `socket`: that of the service; None where nothing is said. What the command line says comes before each.
    """

    trace_folders: tuple[Path, ...]
    cache: Path
    socket: Path | None = None


def read_environment(variables: Mapping[str, str]) -> Environment:
    """ALIQUOT_TRACES names a folder of traces, ALIQUOT_SHARED one that holds `traces`; ALIQUOT_SOCKET."""
    named = variables.get("ALIQUOT_TRACES")
    shared = variables.get("ALIQUOT_SHARED")
    folders = [Path(named)] if named else []
    if shared:
        folders.append(Path(shared) / "traces")
    cache = variables.get("XDG_CACHE_HOME") or Path(variables.get("HOME") or "/tmp") / ".cache"
    socket = variables.get("ALIQUOT_SOCKET")
    return Environment((*folders, USUAL_TRACES), Path(cache), Path(socket) if socket else None)
