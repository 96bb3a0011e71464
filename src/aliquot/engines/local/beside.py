"""What lies beside the events of a journal: what each job runs, and how its attempts ended.

Attached before the event that it belongs to, and written in the same commit. What was written last stays at
hand, since it is asked for soon. What cannot be read, or is not what was written, is as if it had never been
there, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from aliquot.core.events import Ended, Event, JobSubmitted, StartRefused
from aliquot.core.ids import JobId
from aliquot.engines.local.schema import ending_key, is_whole

RECENT: Final = 256  # payloads and endings kept at hand

Rows = list[tuple[Any, ...]]
Read = Callable[[str, tuple[object, ...]], Rows]
Payloads = list[tuple[JobId, bytes]]
Endings = list[tuple[tuple[JobId, int], bytes]]


class Beside:
    """Payloads by job and endings by job and attempt. `read`: rows of a query, as far as they can be read.

    `say`: is told what is damaged. May be used from several threads.
    """

    def __init__(self, read: Read, say: Callable[[str], object]) -> None:
        self._read, self._say = read, say
        self._attached: dict[JobId, bytes] = {}
        self._endings: dict[tuple[JobId, int], bytes] = {}
        self._recent: dict[JobId, bytes] = {}  # on the disk, and most likely asked for soon
        self._recent_endings: dict[tuple[JobId, int], bytes] = {}

    def attach(self, job: JobId, payload: bytes) -> None:
        """To be written with the job's submission."""
        self._attached[job] = payload

    def attach_ending(self, job: JobId, attempt: int, body: bytes) -> None:
        """To be written with the end of the attempt."""
        self._endings[job, attempt] = body

    def belonging_to(self, events: Sequence[Event]) -> tuple[Payloads, Endings]:
        """What was attached to jobs submitted or attempts over in `events`."""
        # the jobs of an array share one body, under the array's name
        submitted = dict.fromkeys(
            event.job.id if event.job.array is None else JobId(event.job.array.name)
            for event in events
            if isinstance(event, JobSubmitted)
        )
        over = [(event.job, event.attempt) for event in events if isinstance(event, (Ended, StartRefused))]
        payloads = [(job, self._attached[job]) for job in submitted if job in self._attached]
        return payloads, [(key, self._endings[key]) for key in over if key in self._endings]

    def written(self, payloads: Payloads, endings: Endings) -> None:
        """They are on the disk."""
        for job, body in payloads:
            self._attached.pop(job, None)
            self._recent[job] = body
        for key, _ in endings:
            self._recent_endings[key] = self._endings.pop(key)
        _trim(self._recent)
        _trim(self._recent_endings)

    def lay_out(self) -> None:
        """Who resumes asks for what lies beside every job next: one look is quicker than thousands.

        The next append puts most of it away again.
        """
        self._recent |= self._payloads("")
        self._recent_endings |= self._ended("")

    def forget(self, jobs: Sequence[JobId]) -> None:
        """Keep nothing of `jobs` at hand."""
        for job in jobs:
            self._recent.pop(job, None)

    def payload(self, job: JobId) -> bytes | None:
        """What was attached to `job`, or None."""
        body = self._attached.get(job) or self._recent.get(job)
        if body is not None:
            return body
        return self._payloads("WHERE job = ?", job).get(job)

    def endings(self, job: JobId) -> dict[int, bytes]:
        """What was attached to each attempt of `job` that is over, by attempt."""
        found = self._ended("WHERE job = ? ORDER BY attempt", job)
        return {attempt: body for (_, attempt), body in found.items()}

    def ending(self, job: JobId, attempt: int) -> bytes | None:
        """What was attached to one attempt; None where nothing was."""
        body = self._recent_endings.get((job, attempt))
        return body if body is not None else self.endings(job).get(attempt)

    def _payloads(self, which: str, *arguments: object) -> dict[JobId, bytes]:
        found = {}
        for job, crc, body in self._read(f"SELECT job, crc, body FROM payloads {which}", arguments):
            if is_whole(job, crc, body):
                found[JobId(job)] = bytes(body)
            else:
                self._say(f"what job {job} runs is not what was recorded: its checksum is wrong")
        return found

    def _ended(self, which: str, *arguments: object) -> dict[tuple[JobId, int], bytes]:
        found = {}
        rows = self._read(f"SELECT job, attempt, crc, body FROM endings {which}", arguments)
        for job, attempt, crc, body in rows:
            if is_whole(ending_key(job, attempt), crc, body):
                found[JobId(job), int(attempt)] = bytes(body)
            else:
                self._say(f"how attempt {attempt} of job {job} ended is damaged: its checksum is wrong")
        return found


def _trim(recent: dict[Any, bytes]) -> None:
    """Only the newest stay at hand."""
    while len(recent) > RECENT:
        del recent[next(iter(recent))]
