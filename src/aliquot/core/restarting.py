"""Changes of width where a job has to be stopped and started again for them.

What was worked out as if widths changed at once is taken apart in time. A job that changes holds what it has
until it has ended, and what it goes on with is kept for it firmly from now on; so it grows only into cards
that are free already. Who starts on what others give up has it kept until they have ended. Where cards go
from one elastic job to another, the first gives them up now, and the second grows in a later plan.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from aliquot.core.closing import Closing
from aliquot.core.grants import Placement, Seat, beyond
from aliquot.core.growing import Growth
from aliquot.core.ids import JobId
from aliquot.core.keeping import KEPT_FOR_MS, Keeper
from aliquot.core.pace import width_of
from aliquot.core.records import seat_of
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk
from aliquot.core.steps import Gate, Place, Plan, Reserve, Resize, Step, Wait

IsFixed = Callable[[JobId], bool]


class Restarts:
    """How widths change in one pass: at once, or by restart where the engine has no other way."""

    def __init__(self, desk: Desk, keeper: Keeper, closing: Closing, now: int, growth: Growth) -> None:
        self._desk, self._keeper, self._closing, self._now = desk, keeper, closing, now
        self._growth = growth

    def change(
        self, make: Callable[[IsFixed], list[Step]], is_stopped: IsFixed, waits: JobId | None = None
    ) -> list[Step]:
        """The steps of `make`, which is told who must be left as he is, with the draft as they leave it.

        `waits`: the job of which the plan has to say that it waits, where it does not start at once.
        """
        if self._desk.settings.resizes_in_place:
            return make(is_stopped)
        mark, owed = self._desk.mark(), self._growth.mark()
        made = make(lambda job: is_stopped(job) or self._is_fenced(job))
        self._desk.rollback(mark)
        self._growth.rollback(owed)
        changed = [step for step in made if isinstance(step, Resize)]
        starts = [step for step in made if isinstance(step, Place)]
        for_job = starts[0].job if len(starts) == 1 else None
        steps: list[Step] = [self._keep(start) for start in starts]
        if waits is None:  # else whoever asks charges it
            for start in starts:
                self._growth.change(self._desk.world.jobs[start.job], start.placements)
        steps += [step for one in changed if (step := self._restart(one, for_job)) is not None]
        if waits is not None and steps:
            steps.append(Wait(waits, Gate.RELEASE, others=tuple(step.job for step in changed)))
        return steps

    def _is_fenced(self, job: JobId) -> bool:
        """Whether a window would keep the job from what it holds, if it started there now."""
        return self._closing.covers(self._desk.world.jobs[job], job)

    def _keep(self, start: Place) -> Reserve:
        """What others give up for a job is its own once they have ended."""
        record = self._desk.world.jobs[start.job]
        until = self._now + KEPT_FOR_MS
        return self._keeper.keep_firmly(record, self._seats(start.placements), self._now, until)

    def _restart(self, step: Resize, for_job: JobId | None) -> Resize | None:
        """The same by restart, with what it takes beyond what it holds; None where that is not free yet.

        What others give up is theirs, and charged to their queues, until they have ended.
        """
        world, draft = self._desk.world, self._desk.draft
        job, grants = world.jobs[step.job].job, world.grants[step.job]
        held = [grant.seat for grant in grants if grant.seat is not None]
        more = beyond(self._seats(step.placements), held)
        was, width = width_of(job, [grant.placement for grant in grants]), width_of(job, step.placements)
        if not all(draft.fits(seat) for seat in more):
            return None
        if width > was and not self._growth.take(world.jobs[step.job], step.placements):
            return None
        for seat in more:
            self._desk.book(seat)
        return replace(step, restart=True, was=was, width=width, for_job=for_job if width < was else None)

    def _seats(self, placements: tuple[Placement, ...]) -> tuple[Seat, ...]:
        nodes = self._desk.world.nodes
        found = (seat_of(placement, nodes[placement.node]) for placement in placements)
        return tuple(seat for seat in found if seat is not None)


def with_restarts(plan: Plan, settings: Settings) -> Plan:
    """`plan` where those who are narrowed for others are stopped for it, within the grace of preemption."""
    rules = settings.preemption
    if settings.resizes_in_place or rules is None:
        return plan
    steps = tuple(
        replace(step, restart=True, grace_ms=rules.grace_ms)
        if isinstance(step, Resize) and not step.restart
        else step
        for step in plan.steps
    )
    return replace(plan, steps=steps)
