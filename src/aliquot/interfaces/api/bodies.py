"""Bodies of requests, read whole and within bounds, so that nobody fills the memory or holds it for ever."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from aliquot.interfaces.api.routes import MOST_BODY, Route

MOST_HELD: Final = 32 << 20  # bytes of one user that are on their way, beside one large body
PATIENCE_S: Final = 60.0  # for a whole body, or another piece of a large one


class Bodies:
    """Made for one event loop."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._turns: dict[int, asyncio.Lock] = {}  # of users who have sent something large
        self._held: Counter[int] = Counter()  # bytes by user, in bodies that are not large

    async def read(self, route: Route, request: Request, uid: int) -> object:
        """What is asked, as `route` has it. Raises HTTPException, and msgspec's errors where it is not.

        While another large one of the same user is read, the rest of this one waits in its connection.
        """
        try:
            body = await self._read(route.most, request, uid)
        except TimeoutError:
            raise HTTPException(408, f"the body did not come within {self._patience_s:g} s") from None
        return msgspec.json.decode(body, type=route.body)

    async def _read(self, most: int, request: Request, uid: int) -> bytes:
        pieces: list[bytes] = []
        size, held, is_large = 0, 0, False
        clock = asyncio.get_running_loop().time
        async with AsyncExitStack() as turn, asyncio.timeout(self._patience_s) as patience:
            try:
                async for piece in request.stream():
                    size += len(piece)
                    if size > most:
                        raise HTTPException(413, f"a body of more than {most >> 20} MiB")
                    pieces.append(piece)
                    if size <= MOST_BODY:
                        self._hold(uid, len(piece))
                        held += len(piece)
                        continue
                    if not is_large:
                        is_large = True
                        patience.reschedule(None)
                        await turn.enter_async_context(self._turns.setdefault(uid, asyncio.Lock()))
                        self._held[uid] -= held
                        held = 0
                    patience.reschedule(clock() + self._patience_s)
            finally:
                self._held[uid] -= held
        return b"".join(pieces)

    def _hold(self, uid: int, size: int) -> None:
        if self._held[uid] + size > MOST_HELD:
            raise HTTPException(503, f"more than {MOST_HELD >> 20} MiB of one user at once; send fewer")
        self._held[uid] += size
