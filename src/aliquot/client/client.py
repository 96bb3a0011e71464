"""Everything that a service can be asked, with the types of its answers.

A submission without a key is given one, so that an answer that was lost is asked for again and no job is
submitted twice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from aliquot.client.asking import PATIENCE_S, Asking, part_of, with_query
from aliquot.control.card_views import CardView
from aliquot.control.live import OutputPiece
from aliquot.control.reservation_views import Reservation, ReservationView
from aliquot.control.speech import decoded, encoded
from aliquot.control.views import (
    Accepted,
    Configuration,
    Done,
    InForce,
    JobDetail,
    JobSummary,
    LiveExplanation,
    QueueView,
    Site,
    Submission,
)

CANCEL_S: Final = 600.0
_T = TypeVar("_T")


class Client(Asking):
    """The service that listens at `path`.

    Raises SpecError, NotFoundError, ForbiddenError, ConflictError as the service does, and UnavailableError
    where none answers.
    """

    def site(self) -> Site:
        """What serves there."""
        return self._get("/v1", Site)

    def submit(self, asked: Submission) -> str:
        """Submit a job, or an array; its id, once it is on the disk."""
        return self.submit_and_see(asked, patience=0).id

    def submit_and_see(self, asked: Submission, *, patience: float = 1.0) -> Accepted:
        """The same, and when it is expected to start, which may take `patience` seconds to find out."""
        target = with_query("/v1/jobs", {"patience": patience})
        return self._post(target, _keyed(asked), Accepted, again=True)

    def submit_all(self, asked: Sequence[Submission]) -> list[str]:
        """Submit many jobs, all or none; their ids in order, once they are on the disk.

        `after` and `afterOk` may name an earlier one of them. Raises BatchError about the one that is wrong.
        """
        return [job.id for job in self._submit_all("/v1/batches", asked)]

    def submit_all_and_see(self, asked: Sequence[Submission], *, patience: float = 1.0) -> list[Accepted]:
        """The same, and when they are expected to start, which may take `patience` seconds to find out."""
        return self._submit_all(with_query("/v1/batches", {"patience": patience}), asked)

    def _submit_all(self, target: str, asked: Sequence[Submission]) -> list[Accepted]:
        return self._post(target, [_keyed(one) for one in asked], list[Accepted], again=True)

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

    def cancel(self, job: str, *, now: bool = False) -> None:
        """Give a job up; of a large array that takes a while to record. `now`: what runs has no grace."""
        self.ask("POST", with_query(f"{_at(job)}/cancel", {"now": now or None}), b"", CANCEL_S)

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
        target = with_query(f"{_at(job)}/output", asked)
        body, headers = self.ask("GET", target, None, timeout)
        return OutputPiece(
            body,
            int(headers["aliquot-offset"]),
            int(headers["aliquot-file"]),
            headers["aliquot-over"] == "true",
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
        body, _ = self.ask("PUT", "/v1/rules", encoded(configuration), 0, again=True)
        return decoded(body, InForce)

    def reservations(self) -> list[ReservationView]:
        """Cards that are closed for a time, now or later."""
        return self._get("/v1/reservations", list[ReservationView])

    def reserve(self, asked: Reservation) -> ReservationView:
        """Close cards for a time; what that closes, once it is in force."""
        return self._post("/v1/reservations", asked, ReservationView)

    def unreserve(self, name: str) -> None:
        """Take a reservation back."""
        at = part_of("/v1/reservations", name, "name", "as 'aliquot reservations' lists them")
        self.ask("DELETE", at, None, 0)

    def drain(self, node: str, *, drained: bool = True) -> bool:
        """No new work for a node, or work again; a card's UUID or number: work again.

        False for a card that was not out.
        """
        at = part_of("/v1/nodes", node, "node", "as 'aliquot gpus' lists nodes and cards")
        return self._post(f"{at}/drain", {"drained": drained}, Done).done

    def _get(self, path: str, kind: type[_T], **query: Any) -> _T:
        return decoded(self.read(path, **query), kind)

    def _post(self, path: str, value: object, kind: type[_T], *, again: bool = False) -> _T:
        said = encoded(value) if value is not None else b""
        body, _ = self.ask("POST", path, said, 0, again=again)
        return decoded(body, kind)


def _keyed(asked: Submission) -> Submission:
    return asked if asked.key else replace(asked, key=os.urandom(16).hex())


def _at(job: str) -> str:
    return part_of("/v1/jobs", job, "ID", "such as 12 or 12_0, as 'aliquot jobs' lists them")
