"""Room for a waiting job by moving others: one to a better place, or several out of the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.core.closing import Closing
from aliquot.core.defragging import gather
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.moving import Mover
from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Move


class Shifted(NamedTuple):
    """Seats, booked on the draft, and the moves that make them; whether these free more than is taken."""

    seats: list[Seated]
    moves: Sequence[Move]
    gives_back: bool


class Shifting:
    """Of one pass."""

    def __init__(self, desk: Desk, mover: Mover, closing: Closing, now: int) -> None:
        self._desk, self._mover, self._closing, self._now = desk, mover, closing, now
        self._gathered = 0

    def seats(self, record: JobRecord, job: Job, is_fixed: Callable[[JobId], bool]) -> Shifted | None:
        """Seats for `job`, which is that of `record` on cards it may be charged for.

        Jobs that are `is_fixed` stay where they are, and nobody is moved to where a window closes.
        """
        settings = self._desk.settings
        if not settings.rescue.share and settings.defrag is None:
            return None
        if job is not record.job:
            record = replace(record, job=job)
        self._closing.shut_all()
        rescued = self._mover.rescue(record)
        if rescued is not None:
            move, seat = rescued
            return Shifted([seat], (move,), gives_back=True)
        gathered = gather(self._desk, record, self._now, self._gathered, is_fixed)
        if gathered is not None:
            self._gathered += len(gathered.moves)
            return Shifted(gathered.seats, gathered.moves, gives_back=False)
        self._closing.shut_for(record)
        return None
