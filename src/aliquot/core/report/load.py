"""Allocation by offered load: what the placement experiment of the openb traces reports."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.report.cells import asked_milli
from aliquot.core.report.charts import LoadPoint


class LoadCurve:
    """For each percent of capacity offered, the mean over its arrivals of what was booked after each.

    Several may arrive in one instant and be answered together, in order: what was booked after each of them
    is what was booked before all, and what they were granted so far. Nothing should leave meanwhile.
    """

    def __init__(self) -> None:
        self.percent = 0
        self._offered = 0
        self._capacity = 0
        self._answered = False
        self._before = 0  # booked before the arrivals that are not settled
        self._arrived: list[tuple[JobId, int]] = []  # with the percent offered then
        self._granted: dict[JobId, int] = {}
        self._sums: dict[int, tuple[int, int]] = {}  # percent -> (arrivals, booked after them)

    @property
    def is_answered(self) -> bool:
        """Whether the planner has spoken since the last arrival."""
        return self._answered or not self._arrived

    def arrive(self, job: Job, booked: int, capacity: int) -> None:
        """One more arrival; `booked` and `capacity` are the site's, in milli-cards, before it."""
        if self.is_answered:
            self.settle()
            self._before = booked
        self._answered = False
        self._offered += asked_milli(job)
        self._capacity = capacity
        if capacity:
            self.percent = (200 * self._offered + capacity) // (2 * capacity)
        self._arrived.append((job.id, self.percent))

    def answer(self, job: JobId, milli: int) -> None:
        """`job` was granted `milli`, or turned away with 0."""
        self._answered = True
        self._granted[job] = milli

    def settle(self) -> None:
        """Count the arrivals since the last time."""
        booked = self._before
        for job, percent in self._arrived:
            booked += self._granted.get(job, 0)
            count, total = self._sums.get(percent, (0, 0))
            self._sums[percent] = count + 1, total + booked
        self._arrived, self._granted, self._before = [], {}, booked

    def points(self, rates: Mapping[int, Fraction | None]) -> tuple[LoadPoint, ...]:
        """One point a percent; `rates` are the fragmentation rates sampled there."""
        return tuple(
            LoadPoint(
                percent,
                total / (count * self._capacity) if self._capacity else None,
                None if (rate := rates.get(percent)) is None else float(rate),
            )
            for percent, (count, total) in sorted(self._sums.items())
        )
