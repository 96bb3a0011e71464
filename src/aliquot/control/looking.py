"""Foresight beside a live loop: looks ahead now and then, for a moment only, and never stops the service."""

from __future__ import annotations

import time
from typing import Final

from aliquot.control.foresight import Foresight
from aliquot.control.predicting import Budget
from aliquot.core.ids import JobId
from aliquot.core.queueing.outlook import Expected
from aliquot.core.settings import Settings
from aliquot.core.world import World

LOOK_S: Final = 0.05  # of looking ahead at a time; then what is not found is unknown
APART_MS: Final = 2000  # between two looks, so that they cost little however much happens
TURNS: Final = 500


class Lookout:
    """Call `look` between turns. A mistake in looking ahead is kept in `failure`; jobs go on all the same."""

    def __init__(self, settings: Settings, world: World) -> None:
        self.foresight = Foresight(settings, _budget, keep=True)
        self.foresight.resume(world)
        self.failure: Exception | None = None
        self._looked: int | None = None

    def look(self, world: World, now: int) -> int | None:
        """Look again where something has happened; in how many ms to come back, None where all is known."""
        if not self.foresight.is_stale:
            return None
        if self._looked is not None and 0 <= now - self._looked < APART_MS:
            return APART_MS - (now - self._looked)
        self._looked = now
        try:
            self.foresight.look(world, now)
        except Exception as error:  # what is expected is then unknown, which is no reason to stop serving
            self.failure = error
            self.foresight.is_stale = False
            self.foresight.table, self.foresight.promises = {}, {}
        return None

    def expect(self, world: World, now: int, job: JobId) -> Expected | None:
        """When a waiting job is expected to start; None where looking ahead failed."""
        try:
            return self.foresight.expect(world, now, (job,))[job]
        except Exception as error:  # as above
            self.failure = error
            return None


def _budget() -> Budget:
    end = time.monotonic() + LOOK_S
    return Budget(TURNS, lambda: time.monotonic() >= end)
