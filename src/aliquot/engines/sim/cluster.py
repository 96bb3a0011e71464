"""The simulated cluster: ports `Cluster` and `Clock` over a pure `Forecast`. It adds nothing of its own."""

from __future__ import annotations

from collections.abc import Sequence

from aliquot.core.events import Event
from aliquot.core.forecast import Forecast
from aliquot.core.steps import Work


class SimCluster:
    """A cluster in virtual time. `now` is the time of the last happening observed."""

    resizes_in_place = True

    def __init__(self, forecast: Forecast) -> None:
        self.forecast = forecast

    @property
    def is_over(self) -> bool:
        """Whether the scenario has run out."""
        return self.forecast.is_over

    def now(self) -> int:
        """Virtual milliseconds since the scenario began."""
        return self.forecast.state.now

    def wake_at(self, at: int) -> None:
        """An empty instant at `at`."""
        self.forecast.wake_at(at)

    def observe(self) -> Sequence[Event]:
        """The next instant's events; empty when nothing will ever happen again."""
        return self.forecast.observe()

    def carry_out(self, steps: Sequence[Work]) -> None:
        """Begin the steps in virtual time."""
        self.forecast.carry_out(steps)
