"""What a waiting job was told a moment ago holds for the next that is like it, as long as nothing changed.

Most of those who wait, wait for room, and one after the other would be refused by the same state of the
draft. Whatever could make a difference is in the key, or keeps the job from being compared at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from aliquot.core.charging import Flavour, narrowed
from aliquot.core.ids import JobId
from aliquot.core.jobs import Request
from aliquot.core.keeping import Keeper
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.turns import Turns


class Again:
    """Refusals of one pass, all of one state of what is booked and kept."""

    def __init__(self, desk: Desk, keeper: Keeper, turns: Turns, explained: JobId | None) -> None:
        self._desk, self._keeper, self._turns, self._explained = desk, keeper, turns, explained
        self._state = (-1, -1)
        self._refused: set[Hashable] = set()
        self._single: dict[Hashable, Request] = {}  # refused for this, in this state of what is kept
        self._rescues = desk.settings.rescue.share > 0
        self._is_plain = _is_plain(desk.world, desk.settings)

    def key(self, record: JobRecord, ways: Sequence[Flavour]) -> Hashable:
        """Equal for jobs of which the second would be refused where the first was; None: not to be compared.

        `ways`: those there is quota for. Call it where nobody can be stopped for the job any more.
        """
        job, keeper = record.job, self._keeper
        if not self._is_plain or job.spot or job.elastic is not None or job.together is not None:
            return None
        likeness, overdue = self._turns.likeness(record)
        if keeper.may_reserve(overdue=overdue) or keeper.holds(job.id) or self._turns.is_strict(record):
            return None
        if job.id == self._explained:
            return None
        how = (job.scatter, job.spread, job.groups, job.wish)
        models = tuple(flavour.model for flavour in ways)
        return (likeness, overdue, keeper.openings(record), models, how)

    def refuse(self, record: JobRecord, ways: Sequence[Flavour], key: Hashable) -> None:
        """The job, with this `key`, was refused, in the state that is."""
        self._look()
        self._refused.add(key)
        job = record.job
        plain = not (job.scatter or job.is_sited or self._rescues)
        if plain and len(job.members) == 1 and len(ways) == 1:
            self._single[key] = narrowed(job, ways[0].model).members[0]

    def is_refused(self, key: Hashable) -> bool:
        """Whether one was, and nothing has changed since.

        One of a single member, which nobody would be moved for, is refused until something is given back:
        until then the desk remembers it.
        """
        self._look()
        if key in self._refused:
            return True
        request = self._single.get(key)
        return request is not None and self._desk.is_refused(request)

    @property
    def state(self) -> tuple[int, int]:
        """What is booked and what is kept, as numbers."""
        return self._desk.state, self._keeper.state

    def _look(self) -> None:
        state = (self._desk.state, self._keeper.state)
        if state != self._state:
            self._refused.clear()
            if state[1] != self._state[1]:
                self._single.clear()
            self._state = state


def _is_plain(world: Frozen, settings: Settings) -> bool:
    """Whether no windows, elastic jobs or moves for wide jobs give every job an answer of its own."""
    stretched = settings.elastic is not None and bool(world.elastic)
    return not world.closures and not stretched and settings.defrag is None
