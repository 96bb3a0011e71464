"""At which narrower widths a running job could go on, and what each of them would leave free.

An elastic job has the widths it names; a gang that was written with a minimum can do without its last
members, or where it is to be spread without those that are crowded most. A job of one member keeps the best
linked of its cards, on its node. It answers and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aliquot.core.gangs import kin_of
from aliquot.core.grants import Grant, GrantState, Seat
from aliquot.core.growing import asked_for
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.pace import width_of, widths_of
from aliquot.core.records import JobRecord
from aliquot.core.room.lodgers import Level
from aliquot.core.siting import Desk
from aliquot.core.spreading import keep_order
from aliquot.core.wishes import Level as Nearness

MOST_LEVELS: Final = 8
"""Numbers of members a gang is looked at with; between the widest and its minimum some are left out then."""


def levels_of(desk: Desk, record: JobRecord, grants: Sequence[Grant]) -> tuple[Level, ...]:
    """The widest first, each with what it leaves free beyond the one before; none where it can't shrink."""
    job = record.job
    if job.elastic is None and len(job.members) == 1:
        return ()
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


def staying(desk: Desk, job: Job, grants: Sequence[Grant], width: int) -> list[Grant]:
    """The `width` members that stay where a gang gives up the others, in their order.

    The first; of one that is to be spread, and whose members are alike, those that are balanced best.
    """
    order = _keep_order(desk, job, grants)
    return [grants[at] for at in sorted(order[:width])]


def _keep_order(desk: Desk, job: Job, grants: Sequence[Grant]) -> list[int]:
    """Numbers of `grants`, those that stay longest first."""
    seats = [grant.seat for grant in grants if grant.seat is not None]
    if not job.spread or job.is_sited or len(set(job.members)) > 1 or len(seats) < len(grants):
        return list(range(len(grants)))
    return keep_order(desk.split(Nearness.RACK), kin_of(desk, job, seats))


def _narrower(job: Job, members: int, now: int) -> list[int]:
    """Falling from below the width `now`."""
    widths = [width for width in reversed(widths_of(job, members)) if width < now]
    if job.elastic is not None or not widths:
        return widths
    step = -(-len(widths) // MOST_LEVELS)
    return [*widths[step - 1 : -1 : step], widths[-1]]


def _by_members(desk: Desk, job: Job, grants: Sequence[Grant], widths: Sequence[int]) -> tuple[Level, ...]:
    order, levels, before = _keep_order(desk, job, grants), list[Level](), len(grants)
    for width in widths:
        kept = [grants[at] for at in sorted(order[:width])]
        freed = tuple(seat for at in order[width:before] if (seat := grants[at].seat) is not None)
        left = tuple(grant.placement for grant in kept)
        seats = tuple(grant.seat for grant in kept if grant.seat is not None)
        levels.append(Level(width, freed, seats, asked_for(desk.world, job, left), left))
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
