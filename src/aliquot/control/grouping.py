"""One append for a whole turn: what was seen, what was decided, and only then anyone is told.

The flush of a record costs more than all else in a turn, so a turn has one instead of two. Nothing that was
folded meanwhile is shown to anybody or acted upon before it is on the disk. Who thinks long must not keep
those waiting who only want to know that they were heard: what is held for too long is flushed from another
thread. Where the record then fails, the folded world is ahead of it and has to be made anew from what is
recorded.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from aliquot.control.loop import Observer
from aliquot.core.events import Event
from aliquot.core.world import World
from aliquot.ports import Journal

PATIENCE_S: Final = 0.02


class Group:
    """Port `Journal` in front of `record`, and the loop's only observer in front of `observers`.

    With `is_eager` every append is recorded at once, so that one that fails has not been folded.
    """

    def __init__(self, record: Journal, observers: Sequence[Observer]) -> None:
        self._record, self._observers = record, observers
        self._held: list[Event] = []
        self._world: World | None = None
        self._lock = threading.RLock()  # while it is held the loop cannot append, and so not fold either
        self._is_folded = threading.Event()
        self._closed = threading.Event()
        self.is_eager = False
        self.patience_s = PATIENCE_S
        threading.Thread(target=self._watch, name="aliquot-group", daemon=True).start()

    @property
    def is_holding(self) -> bool:
        """Whether something is folded that is not recorded."""
        return bool(self._held)

    def append(self, events: Sequence[Event]) -> None:
        """Hold `events` until `flush`. Raises what the record raises, if eager."""
        with self._lock:
            if self.is_eager:
                self._record.append(events)
            else:
                self._is_folded.clear()
                self._held.extend(events)

    def replay(self) -> Iterator[Event]:
        """What is recorded."""
        return self._record.replay()

    def see(self, events: Sequence[Event], world: World) -> None:
        """After `events` were folded into `world`."""
        with self._lock:
            self._world = world
            if self.is_eager:
                self._show(events)
            else:
                self._is_folded.set()

    def flush(self) -> None:
        """Record what is held and show it. Raises what the record raises; then all of it is still held."""
        with self._lock:
            self._is_folded.clear()
            if not self._held:
                return
            self._record.append(self._held)
            held, self._held = self._held, []
            self._show(held)

    def forget(self) -> None:
        """Give up what is held; the caller makes the world anew."""
        with self._lock:
            self._is_folded.clear()
            self._held = []

    def close(self) -> None:
        """No more is held."""
        self._closed.set()
        self._is_folded.set()

    def _show(self, events: Sequence[Event]) -> None:
        assert self._world is not None
        for observer in self._observers:
            observer.see(events, self._world)

    def _watch(self) -> None:
        """Flush what is folded and held for longer than `patience_s`: the loop thinks."""
        while self._is_folded.wait() and not self._closed.is_set():
            since = self._held
            if self._closed.wait(self.patience_s):
                return
            # whatever is wrong, the loop's own flush meets it too, and says so
            with self._lock, contextlib.suppress(Exception):
                if self._is_folded.is_set() and self._held is since:
                    self.flush()
