"""The ways into a live site, for the command line. Nothing heavy is loaded before a service is started.

Apart from `bootstrap`, so that a command that only asks a service does not load what an experiment needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aliquot.client.asking import Asking
from aliquot.control.live import Live, Ready, Remote, ServeAsk

if TYPE_CHECKING:
    from aliquot.control.live import Written
    from aliquot.control.views import SiteFile

SOCKET: Final = "aliquot.sock"
ROOT_STATE, ROOT_RUN = Path("/var/lib/aliquot"), Path("/run/aliquot")


def make_live() -> Live:
    """The doors of a live site."""
    return Live(
        connect=_connect,
        dial=lambda path: Asking(path or _usual_socket()),
        serve=_serve,
        read_jobs=_read_jobs,
        read_files=_read_files,
        environment=lambda: dict(os.environ),
    )


def _connect(path: Path | None) -> Remote:
    from aliquot.client.client import Client

    return Client(path or _usual_socket())


def _serve(ask: ServeAsk, on_ready: Callable[[Ready], None]) -> None:
    from aliquot.bootstrap_local import serve_here
    from aliquot.config.environment import read_environment
    from aliquot.engines.local.places import find_runtime

    is_root = os.geteuid() == 0
    state = (ask.state or (ROOT_STATE if is_root else _own_state())).absolute()
    usual = read_environment(os.environ).socket or (ROOT_RUN if is_root else state) / SOCKET
    socket = ask.socket or (usual if ask.state is None else state / SOCKET)  # what is asked for comes first
    serve_here(ask, state, find_runtime(state, ROOT_RUN if ask.state is None else None), socket, on_ready)


def _read_jobs(paths: Sequence[Path]) -> list[Written]:
    from aliquot.config.submissions import read_submissions

    return read_submissions(paths)


def _read_files(paths: Sequence[Path]) -> tuple[SiteFile, ...]:
    from aliquot.config.source import text_files
    from aliquot.control.views import SiteFile

    return tuple(SiteFile(name, text) for name, text in text_files(paths))


def _own_state() -> Path:
    return Path.home() / ".local/state/aliquot"


def _usual_socket() -> Path:
    """One's own service where there is one, else the machine's."""
    own = _own_state() / SOCKET
    return own if os.geteuid() != 0 and own.exists() else ROOT_RUN / SOCKET
