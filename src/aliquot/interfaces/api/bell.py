"""Lets coroutines wait for something that another thread brings about."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


class Bell:
    """Made within a running event loop. `ring` and `close` may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self.is_closed = False

    def ring(self) -> None:
        """Something has changed."""
        with contextlib.suppress(RuntimeError):  # the event loop is gone, and so is everyone who waits
            self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """Nobody waits any longer."""
        self.is_closed = True
        self.ring()

    async def wait(self, timeout: float) -> None:
        """Return at the next ring, or after `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._rung.wait(), timeout)

    async def until(self, holds: Callable[[], bool], timeout: float) -> None:
        """Return once `holds`, or after `timeout` seconds."""
        end = self._loop.time() + timeout
        while not holds() and not self.is_closed and (left := end - self._loop.time()) > 0:
            await self.wait(left)

    def _wake(self) -> None:
        self._rung.set()
        self._rung = asyncio.Event()
