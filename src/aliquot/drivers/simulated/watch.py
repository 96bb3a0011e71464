"""Listens to the critical errors of simulated cards."""

from __future__ import annotations

import threading
import time

from aliquot.core.ids import CardId
from aliquot.drivers.nvml.readings import CardFault


class SimulatedWatch:
    """Every fault of the cards it knows, raised after it was made."""

    def __init__(
        self, changed: threading.Condition, faults: list[CardFault], cards: tuple[CardId, ...]
    ) -> None:
        self._changed, self._faults, self._cards = changed, faults, cards
        self._seen = len(faults)

    @property
    def unwatched(self) -> tuple[CardId, ...]:
        """None."""
        return ()

    def wait(self, timeout_ms: int) -> tuple[CardFault, ...]:
        """Faults since the last call."""
        until = time.monotonic() + timeout_ms / 1000
        with self._changed:
            while True:
                fresh = self._faults[self._seen :]
                self._seen = len(self._faults)
                ours = tuple(fault for fault in fresh if fault.card in self._cards)
                left = until - time.monotonic()
                if ours or left <= 0:
                    return ours
                self._changed.wait(left)

    def close(self) -> None:
        """Nothing is held."""
