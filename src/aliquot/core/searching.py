"""Searches for others to stop, shared out over plans: none takes long, and everybody's turn comes.

What one plan may look at is counted (`settings.Preemption.work`), never timed. Where that is not enough for
all who wait, a round begins: whoever was looked at in vain is recorded, and passed over until the others have
had their turn. Jobs that came since the round began may use half of what a plan may do, so those before them
are looked at after finitely many plans whatever comes. A round is over when none of these is left; another
follows if anything has happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aliquot.core.charging import Flavour
from aliquot.core.clearing import Cleared, Clearing, alike
from aliquot.core.hosting import as_units
from aliquot.core.ids import JobId
from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk
from aliquot.core.standing import Standing
from aliquot.core.steps import Search

AGAIN_MS: Final = 1000
"""When the next plan goes on where this one stopped, if nothing happens before."""

Key = tuple[object, ...]


class Searches:
    """Those of one plan."""

    def __init__(self, desk: Desk, standing: Standing | None, now: int) -> None:
        self._desk, self._standing, self._now = desk, standing, now
        self._rules = desk.settings.preemption
        self._left = 0 if self._rules is None else self._rules.work
        self._looked = 0
        self._has_begun = False  # with those who do not come late
        self._clearing: Clearing | None = None
        self._round = desk.world.tally.round
        self._done = self._known() if self._rules is not None else {}
        self._vain: dict[Key, JobId] = {}  # of this plan
        self._barred: set[JobId] = set()
        self._is_short = self._is_late_short = False

    def may(self, record: JobRecord) -> bool:
        """Whether it is looked for others to stop for the job of `record`, as far as that is known before."""
        rules = self._rules
        if rules is None:
            return False
        if self._done or self._vain:
            key = alike(record.job)
            if key in self._done or key in self._vain:
                return False
        if self._is_late(record):
            return 2 * self._left > rules.work and 2 * self._looked < rules.per_plan - 1
        return not self._has_begun or (self._left > 0 and self._looked < rules.per_plan)

    def puts_off(self, record: JobRecord) -> bool:
        """Whether the job of `record` would be looked at, but is only in a later plan."""
        rules = self._rules
        if rules is None or record.job.spot or self.may(record):
            return False
        return alike(record.job) not in self._done and alike(record.job) not in self._vain

    def concern(self, record: JobRecord) -> bool:
        """Whether a turn of `record` could matter here: it may be looked at, or has yet to be put off."""
        if self.is_settled():
            return False
        if self.may(record):
            return True
        noted = self._is_short or (self._is_late_short and self._is_late(record))
        return not noted and self.puts_off(record)

    def is_ruled_out(self, record: JobRecord) -> bool:
        """Whether quota says that it can't start and that nobody may be had: it need not be looked at."""
        return self._rules is not None and self._begun().is_ruled_out(record.job)

    def is_settled(self) -> bool:
        """Whether nobody is looked at any more in this plan, and somebody was put off; or nobody ever is."""
        rules = self._rules
        if rules is None:
            return True
        return self._is_short and self._has_begun and (self._left <= 0 or self._looked >= rules.per_plan)

    def clear(self, record: JobRecord, flavour: Flavour | None) -> Cleared | None:
        """As `Clearing.clear`; call it where it `may`."""
        rules = self._rules
        assert rules is not None
        clearing = self._begun()
        self._looked += 1
        late = self._is_late(record)
        if not late and not self._has_begun:  # the first of those who are due has what it needs
            self._left, self._has_begun = max(self._left, rules.work - rules.work // 2), True
        full = 2 * self._left >= rules.work
        cleared = clearing.clear(record, flavour, self._left)
        self._left -= clearing.work
        was_cut = clearing.was_cut and not full
        if was_cut:
            self._left = 0
        elif cleared is None or not cleared.victims:
            self._vain.setdefault(alike(record.job), record.job.id)
        return cleared

    def bar(self, jobs: Iterable[JobId]) -> None:
        """They are not to be stopped in this plan."""
        if self._clearing is None:
            self._barred.update(jobs)
            return
        for job in jobs:
            self._clearing.bar(job)

    def is_taken(self, job: JobId) -> bool:
        """Whether `job` is stopped in this plan, or barred."""
        return self._clearing is not None and self._clearing.is_taken(job)

    def put_off(self, record: JobRecord) -> None:
        """The job of `record` would have been looked at, and was not: in this round still, or in the next."""
        if self._is_late(record):
            self._is_late_short = True
        else:
            self._is_short = True

    def steps(self) -> list[Search]:
        """What is recorded of this plan's part of a round; none where it was enough for all."""
        vain = tuple(self._vain.values())
        if self._is_short:
            return [Search(vain)] if vain else []
        if self._round is None:
            return []
        if self._is_over:
            return [Search((), over=True)]
        return [Search(vain)] if vain else []

    def wake_ms(self) -> int | None:
        """When it goes on; None: it need not."""
        return self._now + AGAIN_MS if self._is_short or self._is_over else None

    def _begun(self) -> Clearing:
        rules, clearing, standing = self._rules, self._clearing, self._standing
        assert rules is not None
        if clearing is None:
            tree, book, flavours = None, None, None
            if standing is not None and not rules.across_queues:
                tree, book, flavours = standing.tree, standing.book, standing.flavours
            world = as_units(self._desk.world)
            clearing = Clearing(self._desk, world, rules, tree, book, self._now, flavours)
            self._clearing = clearing
            self.bar(self._barred)
        return clearing

    @property
    def _is_over(self) -> bool:
        """Whether everybody has had his turn, and there is cause for another round."""
        if self._round is None or self._is_short:
            return False
        return self._is_late_short or not self._round.is_alone(self._desk.world.version)

    def _known(self) -> dict[Key, JobId]:
        """Who was looked at in vain in this round."""
        jobs = self._desk.world.jobs
        found = (jobs.get(job) for job in (() if self._round is None else self._round.jobs))
        return {alike(record.job): record.job.id for record in found if record is not None}

    def _is_late(self, record: JobRecord) -> bool:
        """Whether it came since the round began: it may have half, so that those before it get their turn."""
        return self._round is not None and record.job.submitted_ms > self._round.since_ms
