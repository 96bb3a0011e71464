"""Waiting jobs for which a pass has no room at all: whoever is like one of them needs no turn in it.

On a full site nearly all who wait are refused one after the other. Once one of them finds no room even on
what is kept for others, and can get no reservation, the answer of all that ask the same is known, and they
are passed over where they stand. Where there is room only on what is kept, it is known of those that may use
no more of it than the one that was refused, until something else is kept. All that holds as long as nothing
is given back (`renew`), and for those alone whose turn could change nothing else: in a strict queue, within a
nominal that is held for them, or where others could be stopped for them, they have it as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.keeping import Keeper
from aliquot.core.records import JobRecord
from aliquot.core.seating import seat_all
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.standing import is_overdue
from aliquot.core.turns import Turns


class Hopeless:
    """Those of one pass. `needs_turn` says whether a job has a turn all the same; none has once `settled`."""

    def __init__(
        self,
        desk: Desk,
        keeper: Keeper,
        turns: Turns,
        now: int,
        needs_turn: Callable[[JobRecord], bool],
        settled: Callable[[], bool],
        explained: JobId | None,
    ) -> None:
        self._desk, self._keeper, self._turns, self._now = desk, keeper, turns, now
        self._needs_turn, self._settled, self._explained = needs_turn, settled, explained
        self._none: dict[Hashable, bool] = {}  # by likeness: whether there is no hope for any of them
        self._few: dict[
            Hashable, tuple[int, int]
        ] = {}  # else from which openings on, in which state of keeps
        self._answers = _answers_for_others(desk.settings, stretched=bool(desk.world.elastic))

    def note(self, record: JobRecord) -> None:
        """The job of `record` was refused on any card it may have; those like it may be passed over."""
        if not self._answers or not _asks_only_for_room(record.job, self._desk.settings):
            return
        overdue = is_overdue(record, self._desk.settings, self._now)
        likeness = self._turns.likeness(record)
        keeper = self._keeper
        if keeper.may_reserve(overdue=overdue):
            return
        none = self._none.get(likeness)
        if none is None:
            none = keeper.is_hopeless(record.job, lambda: seat_all(self._desk, record.job))
            self._none[likeness] = none
        if not none:
            state, least = self._few.get(likeness, (-1, 0))
            found = keeper.openings(record)
            self._few[likeness] = keeper.state, min(least, found) if state == keeper.state else found
        self._turns.drop(record, self._may_pass)

    def renew(self) -> None:
        """Something was given back: everybody has a turn again."""
        self._none.clear()
        self._few.clear()
        self._turns.restore()

    def _may_pass(self, job: JobId | None, likeness: Hashable) -> bool:
        """Whether `job` needs no turn; None: whether that is sure of all of this likeness."""
        none = self._none[likeness]
        if job is None:
            return none and self._explained is None and self._settled()
        if job == self._explained:
            return False
        if none and self._settled():
            return True
        record = self._desk.world.jobs[job]
        if not none:
            state, least = self._few[likeness]
            if state != self._keeper.state or self._keeper.openings(record) < least:
                return False
        return not self._needs_turn(record)


def _answers_for_others(settings: Settings, *, stretched: bool) -> bool:
    """Whether nothing of its own lets one in: others that narrow, moves together, its cards in parts."""
    if settings.scatter or settings.defrag is not None:
        return False
    return settings.elastic is None or not stretched


def _asks_only_for_room(job: Job, settings: Settings) -> bool:
    """Whether those like `job` ask for no less, and its end or others' cards let it in by no other way."""
    if job.is_sited or job.spread or job.elastic is not None or job.after:
        return False
    return settings.colocation is None or not job.may_share
