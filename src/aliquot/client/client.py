"""Asks a service over its Unix socket. Each thread has a connection of its own, kept for its next call.

A submission without a key is given one, so that an answer that was lost is asked for again and no job is
submitted twice.
"""

from __future__ import annotations

import http.client
import os
import select
import socket
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from aliquot.control.errors import ConflictError, ForbiddenError, UnavailableError
from aliquot.control.live import OutputPiece
from aliquot.control.views import (
    Accepted,
    CardView,
    Configuration,
    Done,
    InForce,
    JobDetail,
    JobSummary,
    LiveExplanation,
    Mistake,
    QueueView,
    Site,
    Submission,
)
from aliquot.core.errors import AliquotError, NotFoundError, SpecError

PATIENCE_S: Final = 30.0
_T = TypeVar("_T")
_KINDS: Final[dict[int, type[AliquotError]]] = {
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
}


class Client:
    """The service that listens at `path`.

    Raises SpecError, NotFoundError, ForbiddenError, ConflictError as the service does, and UnavailableError
    where none answers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = threading.local()

    def site(self) -> Site:
        """What serves there."""
        return self._get("/v1", Site)

    def submit(self, asked: Submission) -> str:
        """Submit a job, or an array; its id, once it is on the disk."""
        return self.submit_and_see(asked, patience=0).id

    def submit_and_see(self, asked: Submission, *, patience: float = 1.0) -> Accepted:
        """The same, and when it is expected to start, which may take `patience` seconds to find out."""
        target = _with_query("/v1/jobs", {"patience": patience})
        return self._post(target, _keyed(asked), Accepted, again=True)

    def submit_all(self, asked: Sequence[Submission]) -> list[str]:
        """Submit many jobs, all or none; their ids in order, once they are on the disk."""
        keyed = [_keyed(one) for one in asked]
        return [job.id for job in self._post("/v1/batches", keyed, list[Accepted], again=True)]

    def jobs(
        self,
        *,
        over: bool = True,
        mine: bool = False,
        limit: int | None = None,
        fold: bool = False,
        array: str | None = None,
    ) -> list[JobSummary]:
        """Jobs in order of submission, the newest `limit` of them; without those over if not `over`.

        `fold`: one row for each array. `array`: only its jobs.
        """
        return self._get(
            "/v1/jobs", list[JobSummary], over=over, mine=mine, limit=limit, fold=fold, array=array
        )

    def job(self, job: str, *, phase: str | None = None, timeout: float = 0) -> JobDetail:
        """One job; with `phase`, once its phase is another or after `timeout` seconds (60 at most)."""
        return self._get(_at(job), JobDetail, phase=phase, timeout=timeout)

    def wait(self, job: str) -> JobDetail:
        """Until nothing of a job is left."""
        detail = self.job(job)
        while not detail.is_over:
            detail = self.job(job, phase=detail.job.phase, timeout=PATIENCE_S)
        return detail

    def cancel(self, job: str) -> None:
        """Give a job up."""
        self._post(f"{_at(job)}/cancel", None, Done)

    def signal(self, job: str, number: int) -> bool:
        """Send a signal to its processes; False where none runs."""
        return self._post(f"{_at(job)}/signal", {"signal": int(number)}, Done).done

    def output(
        self,
        job: str,
        *,
        attempt: int | None = None,
        member: int = 0,
        offset: int = 0,
        file: int = 0,
        timeout: float = 0,
    ) -> OutputPiece:
        """What one member has printed from `offset` on; waits up to `timeout` seconds for something."""
        asked = {"attempt": attempt, "member": member, "offset": offset, "file": file, "timeout": timeout}
        target = _with_query(f"{_at(job)}/output", asked)
        body, headers = self._ask("GET", target, None, timeout)
        return OutputPiece(
            body,
            int(headers["Aliquot-Offset"]),
            int(headers["Aliquot-File"]),
            headers["Aliquot-Over"] == "true",
        )

    def explain(self, job: str) -> LiveExplanation:
        """Why it is where it is, or waits."""
        return self._get(f"{_at(job)}/explain", LiveExplanation)

    def gpus(self) -> list[CardView]:
        """The cards and what is free of them."""
        return self._get("/v1/gpus", list[CardView])

    def queues(self) -> list[QueueView]:
        """The queues and what is in them."""
        return self._get("/v1/queues", list[QueueView])

    def rules(self) -> InForce:
        """What the service goes by."""
        return self._get("/v1/rules", InForce)

    def apply(self, configuration: Configuration) -> InForce:
        """Have it go by other documents from now on; done once they are on the disk."""
        body, _ = self._ask("PUT", "/v1/rules", msgspec.json.encode(configuration), 0, again=True)
        return msgspec.json.decode(body, type=InForce)

    def drain(self, node: str, *, drained: bool = True) -> None:
        """No new work for a node, or work again; a card's UUID or number: work again."""
        self._post(f"/v1/nodes/{quote(node, safe='')}/drain", {"drained": drained}, Done)

    def _get(self, path: str, kind: type[_T], **query: Any) -> _T:
        body, _ = self._ask("GET", _with_query(path, query), None, float(query.get("timeout") or 0))
        return msgspec.json.decode(body, type=kind)

    def _post(self, path: str, value: object, kind: type[_T], *, again: bool = False) -> _T:
        said = msgspec.json.encode(value) if value is not None else b""
        body, _ = self._ask("POST", path, said, 0, again=again)
        return msgspec.json.decode(body, type=kind)

    def _ask(
        self, method: str, target: str, body: bytes | None, timeout: float, *, again: bool = False
    ) -> tuple[bytes, http.client.HTTPMessage]:
        """`again`: may be asked twice without being done twice."""
        kept = self._kept()
        try:
            answer, said = self._speak(kept, method, target, body, timeout)
        except (OSError, http.client.HTTPException) as error:
            # a connection that was kept may have been closed on the other side in the same moment
            if kept is None or not (again or method == "GET"):
                raise UnavailableError(self._describe(error)) from error
            try:
                answer, said = self._speak(None, method, target, body, timeout)
            except (OSError, http.client.HTTPException) as last:
                raise UnavailableError(self._describe(last)) from last
        if answer.status >= 400:
            raise _error_of(answer.status, said)
        return said, answer.headers

    def _speak(
        self, kept: _Connection | None, method: str, target: str, body: bytes | None, timeout: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = kept or _Connection(self.path)
        try:
            connection.be_patient(timeout + PATIENCE_S)
            connection.request(method, target, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        except BaseException:
            connection.close()
            raise
        self._own.connection = None if answer.will_close else connection
        return answer, said

    def _kept(self) -> _Connection | None:
        """This thread's connection, if it can still be spoken on."""
        connection: _Connection | None = getattr(self._own, "connection", None)
        self._own.connection = None
        return connection if connection is not None and connection.is_open() else None

    def _describe(self, error: Exception) -> str:
        if isinstance(error, PermissionError):
            return f"{self.path} may not be used by you; it is another user's service"
        if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
            return f"no service answers at {self.path}; 'aliquot up' starts one, --socket names another"
        return f"the service at {self.path} did not answer ({error or type(error).__name__})"


class _Connection(http.client.HTTPConnection):
    """HTTP over the socket at `path`."""

    def __init__(self, path: Path) -> None:
        super().__init__("aliquot")
        self._path, self._pid = path, os.getpid()

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))

    def __del__(self) -> None:
        self.close()

    def be_patient(self, seconds: float) -> None:
        """Wait no longer than this for anything."""
        self.timeout = seconds
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def is_open(self) -> bool:
        """Whether it is ours (not our parent's, before a fork), and no end has come on it."""
        if self._pid == os.getpid() and self.sock is not None:
            came, _, _ = select.select([self.sock], [], [], 0)
            if not came:
                return True
        self.close()
        return False


def _keyed(asked: Submission) -> Submission:
    return asked if asked.key else replace(asked, key=uuid.uuid4().hex)


def _error_of(status: int, body: bytes) -> AliquotError:
    try:
        mistake = msgspec.json.decode(body, type=Mistake)
    except msgspec.MsgspecError:
        return UnavailableError(f"the service answered {status}: {body[:200]!r}")
    if status in {400, 413, 422}:
        return SpecError(mistake.error, field=mistake.field, hint=mistake.hint)
    if status in _KINDS:
        return _KINDS[status](mistake.error)
    return UnavailableError(mistake.error, is_full=status == 507)


def _at(job: str) -> str:
    return f"/v1/jobs/{quote(job, safe='')}"


def _with_query(path: str, query: dict[str, Any]) -> str:
    said = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(said)}" if said else path
