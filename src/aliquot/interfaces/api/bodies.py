"""Bodies of requests, read whole. Each user has one large one at a time, so that nobody fills the memory."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from aliquot.interfaces.api.routes import MOST_BODY, Route


class Bodies:
    """Made for one event loop."""

    def __init__(self) -> None:
        self._turns: dict[int, asyncio.Lock] = {}  # of users who have sent something large

    async def read(self, route: Route, request: Request, uid: int) -> object:
        """What is asked, as `route` has it. Raises HTTPException, and msgspec's errors where it is not.

        While another large one of the same user is read, the rest of this one waits in its connection.
        """
        pieces, size, is_large = [], 0, False
        async with AsyncExitStack() as turn:
            async for piece in request.stream():
                size += len(piece)
                if size > route.most:
                    raise HTTPException(413, f"a body of more than {route.most >> 20} MiB")
                pieces.append(piece)
                if size > MOST_BODY and not is_large:
                    is_large = True
                    await turn.enter_async_context(self._turns.setdefault(uid, asyncio.Lock()))
            return msgspec.json.decode(b"".join(pieces), type=route.body)
