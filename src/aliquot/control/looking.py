"""Foresight beside a live loop: looks ahead now and then, for a moment only, and never stops the service."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from aliquot.control.foresight import Foresight
from aliquot.control.predicting import Budget
from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import Expected
from aliquot.core.settings import Settings
from aliquot.core.world import World

LOOK_S: Final = 0.05  # of looking ahead at a time; then what is not found is unknown
APART_MS: Final = 2000  # between two looks, so that they cost little however much happens
REST: Final = 40  # times as long as the last look took: where thousands wait, looks are rarer
TURNS: Final = 500
MOST: Final = 100  # waiting jobs, from which on there is no time for more than counts


class Lookout:
    """Call `look` between turns. A mistake in looking ahead is kept in `failure`; jobs go on all the same.

    `clock`: seconds that only rise, to see how long looking takes.
    """

    def __init__(self, settings: Settings, world: World, clock: Callable[[], float] = time.monotonic) -> None:
        self.foresight = Foresight(settings, self._budget, keep=True)
        self.foresight.resume(world)
        self.failure: Exception | None = None
        self._clock = clock
        self._looked: int | None = None
        self._apart = APART_MS

    def look(self, world: World, now: int) -> int | None:
        """Look again where something has happened; in how many ms to come back, None where all is known."""
        if not self.foresight.is_stale:
            return None
        if self._looked is not None and 0 <= now - self._looked < self._apart:
            return self._apart - (now - self._looked)
        self._looked, began = now, self._clock()
        try:
            self.foresight.look(world, now)
        except Exception as error:  # what is expected is then unknown, which is no reason to stop serving
            self.failure = error
            self.foresight.is_stale = False
            self.foresight.table, self.foresight.promises = {}, {}
        self._apart = max(APART_MS, int((self._clock() - began) * 1000) * REST)
        return None

    def expect(self, world: World, now: int, job: JobId) -> Expected | None:
        """When a waiting job is expected to start; None where looking ahead failed."""
        try:
            return self.foresight.expect(world, now, (job,))[job]
        except Exception as error:  # as above
            self.failure = error
            return None

    def _budget(self) -> Budget:
        end = self._clock() + LOOK_S
        return Budget(TURNS, lambda: self._clock() >= end, MOST)
