"""Asks a service over its Unix socket. Each thread has a connection of its own, kept for its next call.

Answers come as they were sent, and errors as what the service raised. What an answer means is up to whoever
asks, so that a list can be printed without loading all that a service may ever be asked.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec

from aliquot.client.wire import Answer, Wire, WireError
from aliquot.control.errors import BatchError, ConflictError, ForbiddenError, UnavailableError
from aliquot.control.words import is_name, quoted
from aliquot.core.errors import AliquotError, DocumentError, NotFoundError, SpecError

if TYPE_CHECKING:
    from aliquot.control.views import Mistake

PATIENCE_S: Final = 30.0
_TYPES: Final = frozenset({"application/json", "application/octet-stream"})
_KINDS: Final[dict[int, type[AliquotError]]] = {
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
}


class Asking:
    """The service that listens at `path`.

    Raises SpecError, NotFoundError, ForbiddenError, ConflictError, BatchError as the service does, and
    UnavailableError where none answers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = threading.local()

    def read(self, path: str, **query: Any) -> bytes:
        """What the service says to a GET, in JSON."""
        body, _ = self.ask("GET", with_query(path, query), None, float(query.get("timeout") or 0))
        return body

    def ask(
        self, method: str, target: str, body: bytes | None, timeout: float, *, again: bool = False
    ) -> tuple[bytes, Mapping[str, str]]:
        """The body and the headers of an answer that is none of an error.

        `timeout`: how long the service may take beside the usual; `again`: the question may be asked twice
        without being done twice.
        """
        kept = self._kept()
        try:
            answer = self._speak(kept, method, target, body, timeout)
        except (OSError, WireError) as error:
            # a connection that was kept may have been closed on the other side in the same moment
            if kept is None or not (again or method == "GET"):
                raise UnavailableError(self._describe(error)) from error
            try:
                answer = self._speak(None, method, target, body, timeout)
            except (OSError, WireError) as last:
                raise UnavailableError(self._describe(last)) from last
        if not 200 <= answer.status < 300:
            raise _error_of(answer.status, answer.body)
        kind = answer.headers.get("content-type", "")
        if kind not in _TYPES:
            raise UnavailableError(
                f"{self.path} is no service of Aliquot: it answers with {kind or 'no type'}"
            )
        return answer.body, answer.headers

    def _speak(
        self, kept: Wire | None, method: str, target: str, body: bytes | None, timeout: float
    ) -> Answer:
        wire = kept or Wire(self.path)
        answer = wire.ask(method, target, body, timeout + PATIENCE_S)
        self._own.wire = wire
        return answer

    def _kept(self) -> Wire | None:
        """This thread's connection, if it can still be spoken on."""
        wire: Wire | None = getattr(self._own, "wire", None)
        self._own.wire = None
        return wire if wire is not None and wire.is_open() else None

    def _describe(self, error: Exception) -> str:
        if isinstance(error, PermissionError):
            return f"{self.path} is {_owner_of(self.path)}: only its owner and root may use it"
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            from aliquot.client.starting import is_announced

            if is_announced(self.path):
                return f"the service at {self.path} is starting: it compiles, once; ask again soon"
            return f"no service answers at {self.path}; 'aliquot up' starts one, --socket names another"
        return f"the service at {self.path} did not answer ({error or type(error).__name__})"


def _owner_of(socket: Path) -> str:
    """Whose service a socket is, as far as one may know."""
    try:
        return f"{socket.owner()}'s own service"
    except (OSError, KeyError):  # behind a folder that may not be looked into, or of a user without a name
        return "another user's service"


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """`path` with what `query` says; None is not said."""
    said = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(said)}" if said else path


def part_of(path: str, name: str, field: str, hint: str) -> str:
    """`path` with `name` behind it. Raises SpecError that names `field` where no thing can have that name."""
    if not is_name(name):
        raise SpecError(f"{quoted(name)} cannot be right", field=field, value=name, hint=hint)
    return f"{path}/{quote(name, safe='')}"


def _error_of(status: int, body: bytes) -> AliquotError:
    from aliquot.control.views import Mistake

    try:
        mistake = msgspec.json.decode(body, type=Mistake)
    except msgspec.MsgspecError:
        return UnavailableError(f"the service answered {status}: {body[:200]!r}")
    error = _error_said(status, mistake)
    return error if mistake.index is None else BatchError(mistake.index, error)


def _error_said(status: int, mistake: Mistake) -> AliquotError:
    if status in {400, 413, 422}:
        if mistake.file:
            return DocumentError(
                mistake.error, file=mistake.file, line=mistake.line, field=mistake.field, hint=mistake.hint
            )
        return SpecError(mistake.error, field=mistake.field, hint=mistake.hint)
    if status in _KINDS:
        return _KINDS[status](mistake.error)
    return UnavailableError(mistake.error, is_full=status == 507)
