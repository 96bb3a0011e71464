"""Listens on a Unix socket and learns from the kernel who is on the other end of each connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from aliquot.control.errors import UnavailableError
from aliquot.control.service import Service
from aliquot.control.views import Caller, Site
from aliquot.core.errors import SpecError
from aliquot.interfaces.api.app import make_app
from aliquot.interfaces.api.bell import Bell
from aliquot.interfaces.api.routes import Desk

MOST_EACH: Final = 500  # connections of one user: whoever took all there are would shut everyone out
SWITCH_S: Final = 0.001  # between two turns of threads: an answer need not wait for a long thought
_UCRED: Final = struct.Struct("=iII")  # pid, uid, gid
_LONGEST: Final = 107  # bytes the kernel allows for the name of a socket


class _Protocol(H11Protocol):
    """HTTP whose requests carry the `Caller` in their state. Nobody but root may hold many connections."""

    uid = -1

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer = caller_of(transport.get_extra_info("socket"))
        self.app_state, self.uid = {**self.app_state, "peer": peer}, peer.uid
        others = sum(getattr(other, "uid", None) == self.uid for other in self.connections)
        if self.uid and others > MOST_EACH:
            transport.abort()


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    service: Service,
    path: Path,
    site: Site,
    on_ready: Callable[[], None],
    *,
    mode: int,
    reread: Callable[[Service], None] | None = None,
) -> None:
    """Start `service` and answer for it at `path` until SIGTERM or SIGINT; then stop it. Jobs go on.

    `mode`: permissions of the socket. `reread`: done on SIGHUP, in a thread; None: SIGHUP ends it too.
    Raises SpecError where `path` cannot be listened on, UnavailableError
    where the service could not go on by itself.
    """
    sys.setswitchinterval(SWITCH_S)
    listening = listen(path, mode)
    try:
        asyncio.run(_serve(service, listening, site, on_ready, reread))
    finally:
        listening.close()
        path.unlink(missing_ok=True)
    if service.failure is not None:
        raise UnavailableError(f"the service stopped: {service.failure}") from service.failure


def listen(path: Path, mode: int) -> socket.socket:
    """A socket at `path`; one left by a service that is gone is replaced. Raises SpecError."""
    if len(os.fsencode(path)) > _LONGEST:
        raise SpecError(
            f"a path of more than {_LONGEST} bytes", field="--socket", value=str(path), hint="a shorter one"
        )
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_dead(path)
        listening.bind(str(path))
        path.chmod(mode)
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise SpecError(
            f"cannot listen at {path}: {error.strerror or error}", field="--socket", value=str(path),
            hint="a path in a folder you may write",
        ) from error  # fmt: skip  # one thought
    except BaseException:
        listening.close()
        raise
    return listening


def caller_of(connection: socket.socket) -> Caller:
    """Who connected, as the kernel noted it then."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, gid = _UCRED.unpack(credentials)
    return Caller(uid, gid)


async def _serve(
    service: Service,
    listening: socket.socket,
    site: Site,
    on_ready: Callable[[], None],
    reread: Callable[[Service], None] | None,
) -> None:
    bell = Bell()
    app = make_app(Desk(service, bell, site))
    config = uvicorn.Config(
        app, http=_Protocol, ws="none", lifespan="off", access_log=False, log_config=None,
        timeout_graceful_shutdown=2, server_header=False,
    )  # fmt: skip  # options only
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what is no HTTP is answered, and is no news
    server = _Server(config)

    def leave() -> None:
        server.should_exit = True
        bell.close()

    def change() -> None:
        bell.ring()
        if service.failure is not None:
            loop.call_soon_threadsafe(leave)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, leave)
    if reread is not None:
        loop.add_signal_handler(signal.SIGHUP, loop.run_in_executor, None, reread, service)
    service.on_change = change
    service.start()
    try:
        on_ready()
        await server.serve(sockets=[listening])
    finally:
        await asyncio.to_thread(service.stop)


def _remove_dead(path: Path) -> None:
    """Take away a socket that nobody listens at. Raises SpecError where somebody does."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SpecError(
        f"another service answers at {path}",
        field="--socket",
        value=str(path),
        hint="stop it",
    )
