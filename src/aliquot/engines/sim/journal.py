"""The record of the `sim` engine: a list in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aliquot.core.events import Event


class MemoryJournal:
    """Keeps events as they are. `keep=False` forgets them, for runs of millions."""

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = keep
        self._events: list[Event] = []

    def append(self, events: Sequence[Event]) -> None:
        """Record events in order."""
        if self._keep:
            self._events.extend(events)

    def replay(self) -> Iterator[Event]:
        """Everything recorded, in order."""
        return iter(list(self._events))
