"""When a live world is kept, so that a restart folds the last few thousand events instead of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from aliquot.core.events import Event
from aliquot.core.world import World


class Shelf(Protocol):
    """What keeps worlds."""

    def save(self, world: World, learnt: bytes = b"") -> None:
        """Keep `world`, which is the fold of everything recorded, and what was `learnt` by then."""
        ...


class SnapshotKeeper:
    """Watches a loop and saves its world once per `every` events, so that a restart never folds more.

    `learnt`: all that was learnt by now; to be asked after who learns has seen the events.
    """

    def __init__(self, shelf: Shelf, *, every: int, learnt: Callable[[], bytes] = lambda: b"") -> None:
        self._shelf, self._every, self._learnt, self._since = shelf, every, learnt, 0

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` were recorded and folded into `world`."""
        self._since += len(events)
        if self._since >= self._every:
            self._since = 0
            self._shelf.save(world, self._learnt())
