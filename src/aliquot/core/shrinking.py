"""At which narrower widths a running job could go on, and what each of them would leave free.

An elastic job has the widths it names; a gang that was written with a minimum can do without its last
members. A job of one member keeps the best linked of its cards, on its node. It answers and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.grants import Grant, GrantState, Seat
from aliquot.core.growing import asked_for
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.pace import width_of, widths_of
from aliquot.core.records import JobRecord
from aliquot.core.room.lodgers import Level
from aliquot.core.siting import Desk

MOST_LEVELS: Final = 8
"""Numbers of members a gang is looked at with; between the widest and its minimum some are left out then."""


def levels_of(desk: Desk, record: JobRecord, grants: Sequence[Grant]) -> tuple[Level, ...]:
    """The widest first, each with what it leaves free beyond the one before; none where it can't shrink."""
    job = record.job
    if record.phase is not Phase.RUNNING or job.is_sited or job.together is not None:
        return ()
    if any(grant.state is not GrantState.RUNNING or grant.seat is None for grant in grants):
        return ()
    if not all(
        grant.placement.whole and desk.draft.can_release(grant.seat) for grant in grants if grant.seat
    ):
        return ()
    widths = _narrower(job, len(grants), width_of(job, [grant.placement for grant in grants]))
    if not widths:
        return ()
    if len(job.members) == 1:
        plain = len(grants) == 1 and grants[0].placement.whole
        return _by_cards(desk, job, grants[0], widths) if plain else ()
    return _by_members(desk, job, grants, widths)


def _narrower(job: Job, members: int, now: int) -> list[int]:
    """Falling from below the width `now`."""
    widths = [width for width in reversed(widths_of(job, members)) if width < now]
    if job.elastic is not None or not widths:
        return widths
    step = -(-len(widths) // MOST_LEVELS)
    return [*widths[step - 1 : -1 : step], widths[-1]]


def _by_members(desk: Desk, job: Job, grants: Sequence[Grant], widths: Sequence[int]) -> tuple[Level, ...]:
    levels, before = [], len(grants)
    for width in widths:
        freed = tuple(grant.seat for grant in grants[width:before] if grant.seat is not None)
        left = tuple(grant.placement for grant in grants[:width])
        seats = [grant.seat for grant in grants[:width] if grant.seat is not None]
        levels.append(Level(width, freed, tuple(seats), asked_for(desk.world, job, left), left))
        before = width
    return tuple(levels)


def _by_cards(desk: Desk, job: Job, grant: Grant, widths: Sequence[int]) -> tuple[Level, ...]:
    """Only cards are counted as free; what comes free of cpu and host memory is small, and not relied on."""
    assert grant.seat is not None
    held, mask, levels = grant.seat, grant.seat.mask, []
    chunk, place = desk.draft.ledger.readable(held.row)
    for width in widths:
        (request,) = job.sized(width).members
        option, shape = desk.memo.options(request)[0]
        kept = desk.choose_cards(int(chunk.kind[place]), mask, width, need_of(request))
        if not kept:
            break
        seat = desk.seat_at(option, shape, held.row, kept)
        left = (desk.placement(seat),)
        freed = Seat(held.row, mask & ~kept, held.vector, True)
        rest = (held._replace(mask=kept),)
        levels.append(Level(width, (freed,), rest, asked_for(desk.world, job, left), left))
        mask = kept
    return tuple(levels)
