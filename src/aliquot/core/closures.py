"""The windows in force, as the fold of their events. What each closes is settled when it is made."""

from __future__ import annotations

from collections.abc import Mapping

from aliquot.core.allotment import allot
from aliquot.core.events import WindowCancelled, WindowMade
from aliquot.core.holdings import Holdings
from aliquot.core.ids import CardId
from aliquot.core.lengths import ends_at, told
from aliquot.core.records import NodeRecord
from aliquot.core.windows import Closure

_NEVER = 2**60


class Closures:
    """All that are not over, by start, then by age; those that are over go when the next is made."""

    def __init__(self) -> None:
        self.all: tuple[Closure, ...] = ()

    def make(self, event: WindowMade, held: Holdings, version: int) -> None:
        """A window, unless it is over already; it takes the place of one with its name."""
        window = event.window
        rest = tuple(
            one for one in self.all if one.window.name != window.name and one.window.end_ms > event.at
        )
        if window.end_ms <= event.at:
            self.all = rest
            return
        parts = allot(window, held.nodes, held.node_at, rest, lambda record: _busy_until(record, held))
        new = Closure(window, parts, version)
        self.all = tuple(sorted((*rest, new), key=lambda one: (one.window.start_ms, one.made)))

    def cancel(self, event: WindowCancelled) -> None:
        """The window of that name is open; nothing changes where there is none."""
        self.all = tuple(one for one in self.all if one.window.name != event.name)


def _busy_until(record: NodeRecord, held: Holdings) -> Mapping[CardId, int]:
    """When each card of the node that somebody holds is expected to be free; in doubt never."""
    found: dict[CardId, int] = {}
    for grant in held.grants_on(record.row):
        job = held.jobs[grant.id.job]
        end = ends_at(job, lambda record: told(record.job))
        until = _NEVER if end is None else end
        for card in grant.placement.cards:
            found[card] = max(until, found.get(card, 0))
    return found
