"""How many cards are asked for, over how many there are: what one's fair part is measured by."""

from __future__ import annotations

from aliquot.core.report.gauges import Gauge

EVEN = 1000
"""Contention in thousandths where all that is asked for fits; it is never below."""


class Contention:
    """The piecewise constant contention, and its integral. `up` is the gauge of milli-cards that are up."""

    def __init__(self, up: Gauge, at: int) -> None:
        self._up = up
        self._asked = 0
        self._gauge = Gauge(at)
        self._gauge.value = EVEN

    def ask(self, milli: int, at: int) -> None:
        """So many milli-cards more are asked for, or the cards that are up changed (0)."""
        self._asked += milli
        up = self._up.value
        self._gauge.put(max(EVEN, self._asked * 1000 // up) if up else EVEN, at)

    def until(self, at: int) -> int:
        """The integral up to `at`."""
        return self._gauge.until(at)

    def average(self, began: int | None, span: int, at: int) -> int:
        """Over the last `span` ms, before which `until` read `began`; as it is now where that is unknown."""
        return self._gauge.value if began is None or span <= 0 else (self.until(at) - began) // span
