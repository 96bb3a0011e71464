"""What the command line of a live site is handed: how to reach a service, how to be one, how to read jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

if TYPE_CHECKING:  # a list is printed without them
    from aliquot.control.card_views import CardView
    from aliquot.control.reservation_views import Reservation, ReservationView
    from aliquot.control.views import (
        Accepted,
        Configuration,
        InForce,
        JobDetail,
        JobSummary,
        LiveExplanation,
        QueueView,
        Site,
        SiteFile,
        Submission,
    )
    from aliquot.core.errors import AliquotError


class OutputPiece(NamedTuple):
    """Bytes of a job's output; go on from `offset` of `file`. `is_over`: there will be no more."""

    body: bytes
    offset: int
    file: int
    is_over: bool


class Line(Protocol):
    """A service somewhere else that is only read. Raises as `Remote`."""

    def read(self, path: str, **query: Any) -> bytes:
        """What it says to a GET, in JSON."""
        ...


class Remote(Protocol):
    """A service somewhere else. Everything raises AliquotErrors as the service does, and UnavailableError."""

    def site(self) -> Site:
        """What serves there."""
        ...

    def submit(self, asked: Submission) -> str:
        """Submit a job, or an array; its id, once it is on the disk."""
        ...

    def submit_and_see(self, asked: Submission, *, patience: float = 1.0) -> Accepted:
        """The same, and when it is expected to start, which may take `patience` seconds to find out."""
        ...

    def submit_all_and_see(self, asked: Sequence[Submission], *, patience: float = 1.0) -> list[Accepted]:
        """Submit many jobs, all or none, of which `after` may name earlier ones. Raises BatchError too."""
        ...

    def jobs(
        self,
        *,
        over: bool = True,
        mine: bool = False,
        limit: int | None = None,
        fold: bool = False,
        array: str | None = None,
    ) -> list[JobSummary]:
        """Jobs in order of submission; `fold`: one row for each array, `array`: only its jobs."""
        ...

    def job(self, job: str, *, phase: str | None = None, timeout: float = 0) -> JobDetail:
        """One job; with `phase`, once its phase is another or after `timeout` seconds (60 at most)."""
        ...

    def cancel(self, job: str, *, now: bool = False) -> None:
        """Give a job up; `now`: what runs has no grace."""
        ...

    def signal(self, job: str, number: int) -> bool:
        """Send a signal to its processes; False where none runs."""
        ...

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
        ...

    def explain(self, job: str) -> LiveExplanation:
        """Why it is where it is, or waits."""
        ...

    def gpus(self) -> list[CardView]:
        """The cards."""
        ...

    def queues(self) -> list[QueueView]:
        """The queues."""
        ...

    def rules(self) -> InForce:
        """What the service goes by."""
        ...

    def apply(self, configuration: Configuration) -> InForce:
        """Have it go by other documents from now on."""
        ...

    def reservations(self) -> list[ReservationView]:
        """Cards that are closed for a time, now or later."""
        ...

    def reserve(self, asked: Reservation) -> ReservationView:
        """Close cards for a time; what that closes."""
        ...

    def unreserve(self, name: str) -> None:
        """Take a reservation back."""
        ...

    def drain(self, node: str, *, drained: bool) -> bool:
        """No new work for a node, or work again; False for a card that was not out."""
        ...


class ServeAsk(msgspec.Struct, frozen=True):
    """A service to be. None: the usual; `simulate`: a shape of machine by name, or a file.

    `files`: documents that it goes by, of which `policy` may name a policy.
    `watch`: how often to look at the cards; `tolerance`: how long a job may use more memory of a card than it
    was granted. Durations such as 10s. `accept_loss`: begin though recorded events behind damage are lost.
    """

    simulate: str | None = None
    state: Path | None = None
    socket: Path | None = None
    policy: str | None = None
    watch: str | None = None
    tolerance: str | None = None
    files: tuple[Path, ...] = ()
    accept_loss: bool = False


class Written(NamedTuple):
    """A job as a document says it. `at`: what a service finds wrong with it, said of its place in there."""

    asked: Submission
    at: Callable[[AliquotError], AliquotError]


class Ready(NamedTuple):
    """A service that answers."""

    site: Site
    socket: Path


class Live(NamedTuple):
    """The doors. `serve` returns when the service was told to stop."""

    connect: Callable[[Path | None], Remote]
    dial: Callable[[Path | None], Line]
    serve: Callable[[ServeAsk, Callable[[Ready], None]], None]
    read_jobs: Callable[[Sequence[Path]], list[Written]]
    read_files: Callable[[Sequence[Path]], tuple[SiteFile, ...]]
    environment: Callable[[], Mapping[str, str]]
