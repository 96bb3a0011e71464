"""What people submit, on its way to the record: read against the rules, all of a batch or none.

Whoever submits the same under the same key gets the job of then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import PurePath
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from aliquot.control.batch import Batch, blaming, not_there
from aliquot.control.books import Books
from aliquot.control.errors import ForbiddenError, UnavailableError
from aliquot.control.intake import Behind, Intake, Submitted
from aliquot.control.kept import Kept, encode_kept
from aliquot.control.keys import Keys, digest_of
from aliquot.control.room import Room
from aliquot.control.views import Caller, Submission
from aliquot.control.words import LONGEST_NAME, visible
from aliquot.core.errors import NotFoundError, SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import After
from aliquot.core.settings import Settings

MOST: Final = 20_000  # submissions in one batch: while it is read, nobody else is answered


class _Call(NamedTuple):
    """What is submitted at once. `known`: whose key was used before; `place`: the others, in order."""

    caller: Caller
    asked: Sequence[Submission]
    settings: Settings
    batch: Batch
    known: Sequence[Future[JobId] | None]
    place: Mapping[int, int]


class Accepting:
    """Takes up submissions for `intake`, as `books` know the jobs before them."""

    def __init__(self, books: Books, intake: Intake, room: Room) -> None:
        self._books, self._intake, self._room = books, intake, room
        self._keys = Keys(books.chronicle)

    def accept(self, caller: Caller, asked: Sequence[Submission], settings: Settings) -> list[Future[JobId]]:
        """Accept all, or none; the last to be done is the last of them.

        Raises BatchError about the job that is wrong; about all, SpecError, Forbidden- and UnavailableError.
        """
        if not self._books.is_admin(caller) and self._books.parts.uid != 0:
            raise ForbiddenError(
                "this service runs jobs only as the user who started it; ask root to run it for everyone"
            )
        self._room.must_be_there()
        if len(asked) > MOST:
            raise SpecError(f"{len(asked)} jobs at once", hint=f"{MOST} at most; an array is one of them")
        _check_keys(asked)
        with self._keys:
            known = self._find(caller, asked)
            fresh = [at for at, answer in enumerate(known) if answer is None]
            place = {at: number for number, at in enumerate(fresh)}
            call = _Call(caller, asked, settings, Batch(asked), known, place)
            answers = self._intake.submit_all([self._read(call, at) for at in fresh])
            for at, answer in zip(fresh, answers, strict=True):
                self._keys.claim(caller, asked[at], answer)
        given = iter(answers)
        return [next(given) if job is None else job for job in known]

    def _find(self, caller: Caller, asked: Sequence[Submission]) -> list[Future[JobId] | None]:
        """The jobs that were submitted before, under the same keys."""
        known = []
        for at, one in enumerate(asked):
            with blaming(at):
                known.append(self._keys.find(caller, one))
        return known

    def _read(self, call: _Call, at: int) -> Submitted:
        asked = call.asked[at]
        with blaming(at):
            wanted = self._books.parts.read(asked, call.caller, call.settings)
            after, behind = self._edges(call, at, wanted.jobs[0].after)
        jobs = wanted.jobs
        if after != jobs[0].after:
            jobs = tuple(replace(job, after=after) for job in jobs)
        kept = Kept(
            call.caller.uid, asked.name or _name_of(asked.command), asked.command, asked.cwd,
            msgspec.Raw(wanted.payload), asked.key, digest_of(asked) if asked.key else "",
        )  # fmt: skip  # two lines read better than seven
        return Submitted(jobs, encode_kept(kept), wanted.indices, behind)

    def _edges(
        self, call: _Call, at: int, edges: Sequence[After]
    ) -> tuple[tuple[After, ...], tuple[Behind, ...]]:
        """Those to jobs with an id, and those to jobs of the same batch that have none yet."""
        after: list[After] = []
        behind: list[Behind] = []
        for edge in edges:
            earlier = call.batch.find(at, edge)
            if earlier is not None and (place := call.place.get(earlier)) is not None:
                behind.append(Behind(place, edge.when))
                continue
            known = None if earlier is None else call.known[earlier]
            after += self._resolve(call.caller, edge if known is None else replace(edge, on=_id_of(known)))
        return tuple(after), tuple(behind)

    def _resolve(self, caller: Caller, edge: After) -> list[After]:
        """One waits for jobs one may see; for an array, for all of it."""
        try:
            return [replace(edge, on=life.job.id) for life in self._books.owned(caller, edge.on)]
        except NotFoundError as error:
            raise not_there(edge) from error


def _name_of(command: Sequence[str]) -> str:
    """What a job without a name is called: its program, as `aliquot run` has it."""
    return visible(PurePath(command[0]).name)[:LONGEST_NAME]


def _check_keys(asked: Sequence[Submission]) -> None:
    seen: set[str] = set()
    for at, one in enumerate(asked):
        if one.key and one.key in seen:
            with blaming(at):
                raise SpecError(
                    "the same key twice", field="key", value=one.key, hint="one key for each job of a batch"
                )
        seen.add(one.key)


def _id_of(known: Future[JobId]) -> JobId:
    """The id of a job that was submitted before. Raises UnavailableError while that is being recorded."""
    if not known.done():
        raise UnavailableError("what it waits for is being recorded under its key; submit it again")
    return known.result()
