"""What a drawing hears from the meter as it measures."""

from __future__ import annotations

from typing import Protocol

from aliquot.core.grants import Placement
from aliquot.core.ids import CardId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.report.gauges import Sums
from aliquot.core.report.lives import Life


class Watcher(Protocol):
    """Someone who draws what the meter sees, such as `timeline.Recorder`. Times are inside the window."""

    def card(self, card: CardId, booked: int, up: int, at: int) -> None:
        """The milli-cards of one card that are booked, or that are up, changed by so much."""
        ...

    def submitted(self, job: Job, at: int, sums: Sums) -> None:
        """A job comes; `sums` are as they were before."""
        ...

    def placed(self, life: Life, placements: tuple[Placement, ...], at: int) -> None:
        """An attempt was granted."""
        ...

    def over(self, life: Life, outcome: Phase, at: int) -> None:
        """An attempt, or a job without one, is over; it waits again where `outcome` is PENDING."""
        ...

    def tick(self, at: int, sums: Sums) -> None:
        """An event has been folded."""
        ...
