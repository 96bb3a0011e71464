"""What a caller submits twice under one key is one job, however often an answer was lost on its way.

A key belongs to its user. It is remembered with the job, on the disk, and forgotten with it.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import Future
from threading import RLock

import msgspec

from aliquot.control.chronicle import Chronicle
from aliquot.control.errors import ConflictError
from aliquot.control.views import Caller, Submission
from aliquot.core.ids import JobId


class Keys:
    """Keys of jobs on record, and of those on their way there. Held (`with`) from `find` to `claim`."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle
        self._lock = RLock()  # an answer may come, and end a claim, while claims are being made
        self._claims: dict[tuple[int, str], tuple[str, Future[JobId]]] = {}

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def find(self, caller: Caller, asked: Submission) -> Future[JobId] | None:
        """The job that `asked` is, None for a new one. Raises ConflictError where the key was another's."""
        if not asked.key:
            return None
        own = (caller.uid, asked.key)
        claim = self._claims.get(own)
        if claim is not None:
            digest, answer = claim
        elif (known := self._chronicle.keys.get(own)) is not None:
            digest, answer = known.digest, Future()
            answer.set_result(known.job)
        else:
            return None
        if digest != digest_of(asked):
            raise ConflictError(f"the key {asked.key!r} was used for another job; a new job needs a new key")
        return answer

    def claim(self, caller: Caller, asked: Submission, answer: Future[JobId]) -> None:
        """`asked` is on its way to the record, or already there, or was refused."""
        if asked.key:
            own = (caller.uid, asked.key)
            self._claims[own] = (digest_of(asked), answer)
            answer.add_done_callback(lambda _: self._release(own))

    def _release(self, own: tuple[int, str]) -> None:
        """Those on record are found there; those refused may be submitted again."""
        with self._lock:
            self._claims.pop(own, None)


def digest_of(asked: Submission) -> str:
    """Equal for equal submissions."""
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()
