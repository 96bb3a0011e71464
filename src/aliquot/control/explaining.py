"""Why a job of a live site is where it is, or waits: what the planner says of it."""

from __future__ import annotations

from aliquot.control.chronicle import Life
from aliquot.control.views import LiveExplanation
from aliquot.core.lifecycle import Phase
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.settings import Settings
from aliquot.core.steps import Place
from aliquot.core.world import World


def explain_live(
    life: Life,
    world: World,
    settings: Settings,
    policy: str,
    place: Place | None,
    memo: Memo,
    now: int,
) -> LiveExplanation:
    """`place`: the choice that put the job where it is, None where it is not known any more."""
    frozen = world.freeze()
    job = life.job
    waits = life.phase is Phase.PENDING and job.id in frozen.jobs
    keys = [key[3] for key in frozen.pending] if waits else []
    grants = frozen.grants.get(job.id, ())
    is_scored = place is not None and bool(grants) and grants[0].id.attempt == place.attempt
    if not is_scored and grants:
        place = Place(job.id, grants[0].id.attempt, tuple(grant.placement for grant in grants))
    return LiveExplanation(
        job=job.id,
        phase=life.phase.value,
        policy=policy,
        placement=tuple(part for part, weight in settings.policy if weight > 0),
        at_ms=now,
        submitted_ms=job.submitted_ms,
        placed_ms=life.attempts[-1].granted_ms if life.attempts and not waits else None,
        place=place if grants else None,
        is_scored=is_scored,
        wait=explain_wait(frozen, settings, job.id, memo, now) if waits else None,
        position=keys.index(job.id) + 1 if waits else None,
        waiting=len(frozen.pending),
    )
