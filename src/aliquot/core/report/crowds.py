"""How long a site was crowded: nearly all its cards in use for a while, and jobs waiting or slowed meanwhile.

Busy cards alone are no fault, they are what a site is for; jobs that wait beside idle cards are another one.
The rule is the one by which a live service flags crowding (`promise.CrowdRules`); whom it presses is counted
here by what happened, not by what was expected.
"""

from __future__ import annotations

from aliquot.core.promise import CrowdRules
from aliquot.core.report.gauges import Sums
from aliquot.core.units import FULL


class Crowds:
    """Time counts from when the site has been full for `rules.for_ms`. Call `settle` after each event."""

    def __init__(self, sums: Sums, rules: CrowdRules = CrowdRules()) -> None:  # noqa: B008 - a frozen value
        self._sums, self._rules = sums, rules
        self._full_since: int | None = None
        self._past = 0  # ms of earlier spells
        self._pressed: dict[str | None, int] = {}  # jobs that wait or are slowed, by queue; None: all
        self._began: dict[str | None, int] = {}
        self._totals: dict[str | None, int] = {}

    def settle(self, at: int) -> None:
        """Whether the site is full from `at` on."""
        cards = self._sums.up_milli.value - self._sums.closed_milli.value
        busy = cards - self._sums.free_cards.value * FULL
        if cards > 0 and busy * FULL >= cards * self._rules.busy_milli:
            self._full_since = at if self._full_since is None else self._full_since
        elif self._full_since is not None:
            self._past, self._full_since = self._clock(at), None

    def press(self, queue: str, jobs: int, at: int) -> None:
        """So many jobs of `queue` more wait, or are slowed by their neighbours."""
        for who in (queue, None):
            before = self._pressed.get(who, 0)
            self._pressed[who] = before + jobs
            if before == 0:
                self._began[who] = self._clock(at)
            elif before + jobs == 0:
                self._totals[who] = self.until(who, at, pressed=before)

    def until(self, queue: str | None, at: int, *, pressed: int | None = None) -> int:
        """For how many ms up to `at` jobs of `queue` (None: any) were pressed while the site was crowded."""
        pressed = self._pressed.get(queue, 0) if pressed is None else pressed
        open_ = self._clock(at) - self._began[queue] if pressed else 0
        return self._totals.get(queue, 0) + open_

    def _clock(self, at: int) -> int:
        """How long the site had been full for long enough, in all."""
        if self._full_since is None:
            return self._past
        return self._past + max(0, at - self._full_since - self._rules.for_ms)
