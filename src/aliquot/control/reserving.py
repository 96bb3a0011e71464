"""Reservations of a live site: what its documents say, against what is in force."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aliquot.core.events import WindowCancelled, WindowMade
from aliquot.core.windows import Closure, Window


def changes_of(
    wanted: Sequence[Window], closures: Iterable[Closure], now: int
) -> list[WindowMade | WindowCancelled]:
    """What makes the windows in force those that are `wanted`, as far as these are not over."""
    there = {closure.window.name: closure.window for closure in closures}
    names = {window.name for window in wanted}
    gone = [WindowCancelled(0, name) for name, window in there.items() if name not in names]
    made = [
        WindowMade(0, window) for window in wanted if window.end_ms > now and there.get(window.name) != window
    ]
    return [*gone, *made]
