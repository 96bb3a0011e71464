"""Bodies of requests that come slowly, in masses or not at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from aliquot.interfaces.api.bodies import Bodies
from aliquot.interfaces.api.routes import ROUTES
from tests.support.service import LiveService

MIB = 1 << 20
HEAD = b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n"


@pytest.fixture
def service() -> Iterator[LiveService]:
    with LiveService() as service:
        yield service


def test_who_goes_away_amid_a_question_is_no_news(service: LiveService) -> None:
    for sent in (HEAD + b"{", b"no HTTP at all\r\n\r\n"):
        with connect(service) as connection:
            connection.sendall(sent)
    assert service.client.wait(service.submit("true")).is_over
    said = service.stop()
    assert "Traceback" not in said
    assert "Invalid HTTP" not in said


def test_one_user_holds_no_more_than_a_bound_of_the_memory(service: LiveService) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(connect(service)).sendall(HEAD + b" " * 3_990_000)
        late = stack.enter_context(connect(service))
        late.sendall(HEAD + b" " * 3_000_000)
        assert late.recv(100).startswith(b"HTTP/1.1 503 ")
        assert service.client.gpus(), "who asks without a body is answered"
    assert service.client.wait(service.submit("true")).is_over, "what was held is free again"


def test_a_body_that_does_not_come_is_not_waited_for_without_end() -> None:
    async def never() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def read() -> None:
        route = next(route for route in ROUTES if route.body is not None)
        request = Request({"type": "http", "method": "POST", "headers": []}, never)
        await Bodies(patience_s=0.01).read(route, request, uid=1)

    with pytest.raises(HTTPException) as caught:
        asyncio.run(read())
    assert caught.value.status_code == 408


def connect(service: LiveService) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(service.socket))
    return connection
