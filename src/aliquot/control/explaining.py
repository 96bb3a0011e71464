"""Why a job of a live site is where it is, or waits: what the planner says of it."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from aliquot.control.chronicle import Life
from aliquot.control.endings import REFUSED
from aliquot.control.foresight import find_places
from aliquot.control.looking import Lookout
from aliquot.control.quotas import overcommits_of
from aliquot.control.views import LiveExplanation
from aliquot.core.hosting import company_of
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.queueing.outlook import Expected, Unsaid
from aliquot.core.settings import Settings
from aliquot.core.steps import Place
from aliquot.core.world import World

MANY: Final = 1000  # who wait; to line them all up for one answer would hold up the loop


def explain_live(
    life: Life,
    world: World,
    settings: Settings,
    policy: str,
    place: Place | None,
    memo: Memo,
    now: int,
    lookout: Lookout,
) -> LiveExplanation:
    """`place`: the choice that put the job where it is, None where it is not known any more."""
    frozen = world.freeze()
    job = life.job
    waits = life.phase is Phase.PENDING and job.id in frozen.jobs
    grants = frozen.grants.get(job.id, ())
    is_scored = place is not None and bool(grants) and grants[0].id.attempt == place.attempt
    if not is_scored and grants:
        place = Place(job.id, grants[0].id.attempt, tuple(grant.placement for grant in grants))
    if place is not None:
        place = replace(place, company=company_of(frozen, job.id))
    placed_ms = life.attempts[-1].granted_ms if life.attempts and not waits else None
    said = LiveExplanation(
        job=job.id,
        phase=life.phase.value,
        policy=policy,
        placement=tuple(part for part, weight in settings.policy if weight > 0),
        at_ms=now,
        submitted_ms=job.submitted_ms,
        placed_ms=placed_ms,
        place=place if grants else None,
        resizing=life.resizing,
        is_scored=is_scored,
        waiting=len(frozen.pending),
        queue=job.queue,
        promise=None if placed_ms is None else lookout.foresight.kept(job, placed_ms),
    )
    if not waits:
        return said
    expected = lookout.seen.table.get(job.id) or Expected(unsaid=Unsaid.NOT_YET)
    line = lookout.seen.places if len(frozen.pending) > MANY else {}
    stands = line.get(job.id) or find_places(frozen, settings, now, memo)[job.id]
    return replace(
        said,
        wait=explain_wait(frozen, settings, job.id, memo, now),
        **stands._asdict(),
        expected=expected,
        promise=lookout.foresight.promise(job, now, expected),
        overcommits=overcommits_of(frozen, settings, job.queue),
        refused=_refused(life),
    )


def _refused(life: Life) -> str:
    """Why the host did not begin its last attempt; "" where it did."""
    last = life.attempts[-1] if life.attempts else None
    return last.text if last is not None and last.outcome == REFUSED else ""
