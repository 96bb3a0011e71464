"""Requests into calls, answers into responses, mistakes into `Mistake` with the right status."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as Path

from aliquot.control.errors import BatchError, ConflictError, ForbiddenError, UnavailableError
from aliquot.control.views import Caller, Mistake
from aliquot.control.words import LONGEST_NAME, quoted, shortened
from aliquot.core.errors import AliquotError, DocumentError, NotFoundError, SpecError, TemporaryError
from aliquot.interfaces.api.bodies import Bodies
from aliquot.interfaces.api.openapi import describe_api
from aliquot.interfaces.api.output import Chunk
from aliquot.interfaces.api.routes import ROUTES, Call, Desk, Route

OFFSET, FILE, OVER = "Aliquot-Offset", "Aliquot-File", "Aliquot-Over"

_LOG: Final = logging.getLogger("aliquot.api")
_STATUS: Final[tuple[tuple[type[AliquotError], int], ...]] = (
    (SpecError, 422),
    (NotFoundError, 404),
    (ForbiddenError, 403),
    (ConflictError, 409),
    (UnavailableError, 503),
    (TemporaryError, 503),
)
_FULL: Final = 507
_NAMED: Final = re.compile(r"Object (?:contains unknown|missing required) field `(.*)`")
_LISTED: Final = re.compile(r"\[(\d+)\]\.?(.*)")  # the place of a mistake in a body that is a list
_ENCODER: Final = msgspec.json.Encoder()
_Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(desk: Desk) -> Starlette:
    """The application over `desk`. The caller is `scope["state"]["peer"]`, put there by the server."""
    described = _ENCODER.encode(describe_api(ROUTES, desk.site.version))

    async def describe(request: Request) -> Response:
        return Response(described, media_type="application/json")

    answer = partial(_answer, desk, Bodies())
    paths = [Path(route.path, partial(answer, route), methods=[route.method]) for route in ROUTES]
    paths.append(Path("/openapi.json", describe, methods=["GET"]))
    app = Starlette(
        routes=paths,
        exception_handlers={
            HTTPException: _refuse_http,
            AliquotError: _refuse,
            ClientDisconnect: _leave,
            Exception: _fail,
        },
    )
    app.router.redirect_slashes = False  # nothing is done for whoever left a name out
    return app


async def _answer(desk: Desk, bodies: Bodies, route: Route, request: Request) -> Response:
    try:
        return await _answer_flat(desk, bodies, route, request)
    except RecursionError:  # lists of lists of lists: nothing that anybody means
        return _mistake(422, Mistake("the body is nested too deeply", hint="see /openapi.json"))


async def _answer_flat(desk: Desk, bodies: Bodies, route: Route, request: Request) -> Response:
    """Raises RecursionError for what is nested deeper than Python's stack."""
    caller: Caller = request.scope["state"]["peer"]
    try:
        query = msgspec.convert(dict(request.query_params), route.query, strict=False)
        body = None if route.body is None else await bodies.read(route, request, caller.uid)
    except msgspec.ValidationError as error:
        return _mistake(422, _spec_mistake(error))
    except msgspec.DecodeError as error:
        return _mistake(400, Mistake(f"the body is not JSON: {error}", hint="see /openapi.json"))
    answer = await route.answer(desk, Call(caller, request.path_params, query, body))
    if isinstance(answer, Chunk):
        headers = {OFFSET: str(answer.offset), FILE: str(answer.file), OVER: str(answer.is_over).lower()}
        return Response(answer.body, media_type="application/octet-stream", headers=headers)
    return Response(_ENCODER.encode(answer), status_code=route.status, media_type="application/json")


def _spec_mistake(error: msgspec.ValidationError) -> Mistake:
    """`Expected `int`, got `str` - at `$.retries`` names its field after the dollar sign.

    Of one that is not known or missing, it names the place where it is or should be.
    """
    text, _, place = str(error).partition(" - at ")
    field = place.strip("`").removeprefix("$").removeprefix(".")
    listed = _LISTED.fullmatch(field)
    index, field = (None, field) if listed is None else (int(listed[1]), listed[2])
    if (named := _NAMED.match(text)) is not None:
        field = f"{field}.{named[1]}" if field else named[1]
    return Mistake(text, field=field, hint="see /openapi.json", index=index)


async def _refuse(request: Request, error: Exception) -> Response:
    if isinstance(error, BatchError):
        status, mistake = _mistake_of(error.error)
        return _mistake(status, replace(mistake, index=error.at))
    return _mistake(*_mistake_of(error))


def _mistake_of(error: Exception) -> tuple[int, Mistake]:
    """The status and the body that say `error`."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if isinstance(error, UnavailableError) and error.is_full:
        status = _FULL
    if isinstance(error, DocumentError) and error.file:  # what came by the API is in none
        return status, Mistake(error.message, error.field, error.hint, file=error.file, line=error.line)
    if isinstance(error, SpecError):
        return status, Mistake(error.message, error.field, error.hint)
    return status, Mistake(str(error))


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path, hint = request.url.path, ""
    said = error.detail
    if error.status_code in {404, 405}:
        hint = "see /openapi.json"
        said = (
            f"nothing is at {quoted(path)}"
            if error.status_code == 404
            else f"{quoted(path)} takes no {request.method}"
        )
    return _mistake(error.status_code, Mistake(said, field=shortened(path, LONGEST_NAME), hint=hint))


async def _leave(request: Request, error: Exception) -> Response:
    """Who asked is gone, amid the question: nobody hears the answer."""
    return Response(status_code=400)


async def _fail(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s", request.method, request.url.path, exc_info=error)
    return _mistake(500, Mistake("a bug in Aliquot; its log has the details"))


def _mistake(status: int, mistake: Mistake) -> Response:
    body: Any = _ENCODER.encode(mistake)
    return Response(body, status_code=status, media_type="application/json")
