"""Elastic jobs: the width one starts with, and the widths those that run are given anew.

A job starts with the widest width that has room now and uses its cards well enough at the present load
(`room.serial_parallel`). Once all turns are given, what is left and what elastic jobs hold is shared out anew
(`room.elastic`): whoever keeps its width keeps its cards, a change costs its pause and is made seldom, and
what is kept for others is not touched. A gang grows and shrinks by members, one that is to be spread where
fewest and most of them are; a job of one member on its node, and not where that has no room for more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aliquot.core.gangs import seat_next
from aliquot.core.grants import Grant, Seat, bits
from aliquot.core.growing import Gives, Growth
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.lifecycle import Phase
from aliquot.core.memo import need_of
from aliquot.core.pace import width_of
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.room.elastic import ElasticJob, share_cards
from aliquot.core.room.serial_parallel import Width, choose_width
from aliquot.core.seating import seat_all
from aliquot.core.settings import ElasticRules
from aliquot.core.shrinking import staying
from aliquot.core.siting import Desk, Seated
from aliquot.core.steps import Place, Resize, Step

TryJob = Callable[[JobRecord], Step | None]
"""Places one waiting job on the draft, if it has room now."""

IsFixed = Callable[[JobId], bool]


class _Stretchable(NamedTuple):
    """A running elastic job: what it holds, and how many cards one unit of its width is."""

    record: JobRecord
    grants: tuple[Grant, ...]
    unit: int
    width: int


def seat_elastic(desk: Desk, job: Job, load_milli: int) -> list[Seated] | None:
    """Seats at the best width that has room now; None where not even the first has."""
    assert job.elastic is not None
    work = float(job.estimate_ms or 1)
    left = [
        Width(cards, float(speed))
        for cards, speed in zip(job.elastic.widths, job.elastic.speeds_milli, strict=True)
    ]
    while left:
        best = choose_width(left, work, load_milli, desk.settings.floor)
        seated = seat_all(desk, job.sized(best.cards))
        if seated is not None:
            return seated
        left = [width for width in left if width.cards < best.cards]
    return None


def seat_late(desk: Desk, job: Job) -> list[Seated] | None:
    """Seats on what others have given up for it; an elastic job at the widest width it uses well enough."""
    return seat_all(desk, job) if job.elastic is None else seat_elastic(desk, job, 0)


def load_of(desk: Desk) -> int:
    """Cards that somebody holds, of all that may be used, in milli."""
    usable = idle = 0
    for chunk in desk.draft.chunks:
        usable += sum(mask.bit_count() for mask in chunk.usable.tolist())
        idle += sum(mask.bit_count() for mask in (chunk.idle & chunk.usable).tolist())
    return 1000 * (usable - idle) // usable if usable else 1000


def stretch(
    desk: Desk,
    now: int,
    waiting: Sequence[JobRecord],
    seat: TryJob,
    is_fixed: IsFixed,
    growth: Growth,
) -> list[Step]:
    """New widths of running elastic jobs, booked on the desk's draft, and the steps of those who start by it.

    `waiting` had no room in their turns; `seat` places one of them if it has now; `is_fixed` jobs are left as
    they are. Under quotas nobody grows beyond what his queue may take; what queues have borrowed is shared
    out among all, then what each owns among its own.
    """
    steps: list[Step] = []
    if desk.settings.elastic is None or not desk.world.elastic:
        return steps
    for leaf in growth.circles():
        changed = frozenset(step.job for step in steps if isinstance(step, Resize | Place))
        late = [one for one in waiting if one.job.id not in changed and growth.is_of(one.job, leaf)]
        is_left = _left_out(desk, is_fixed, changed, growth, leaf)
        steps += _stretch(desk, now, late, seat, is_left, growth, leaf)
    return steps


def give_way(
    desk: Desk, now: int, record: JobRecord, seat: TryJob, is_fixed: IsFixed, growth: Growth
) -> list[Step]:
    """Narrower widths of running elastic jobs by which the job of `record` starts, and its Place.

    Under quotas those of other queues give only what the queue of `record` has a right to (`room.reclaim`).
    """
    if desk.settings.elastic is None or not desk.world.elastic:
        return []
    gives = growth.lender_to(record)
    running, shares = _shared_out(desk, now, [record], is_fixed, growth, gives, _idle(desk))
    if not running:
        return []
    mark = desk.mark()
    steps = _shrink_all(desk, running, shares)
    placed = seat(record) if steps else None
    if placed is None:
        desk.rollback(mark)
        return []
    return [*steps, placed]


def rested_ms(world: Frozen, rules: ElasticRules | None, now: int) -> int | None:
    """When the next running elastic job may be changed that may not be now; None: there is none."""
    if rules is None:
        return None
    rested = (world.jobs[job].resized_ms + rules.dwell_ms for job in world.elastic)
    return min((at for at in rested if at > now), default=None)


def _left_out(
    desk: Desk, is_fixed: IsFixed, changed: frozenset[JobId], growth: Growth, leaf: int | None
) -> IsFixed:
    """Who keeps his width in one circle."""
    jobs = desk.world.jobs
    return lambda job: job in changed or is_fixed(job) or not growth.is_of(jobs[job].job, leaf)


def _stretch(
    desk: Desk,
    now: int,
    waiting: Sequence[JobRecord],
    seat: TryJob,
    is_fixed: IsFixed,
    growth: Growth,
    leaf: int | None,
) -> list[Step]:
    """One circle. Widths are given up only where somebody starts, or grows, by it."""
    free = min(_idle(desk), growth.room(leaf))
    running, shares = _shared_out(desk, now, waiting, is_fixed, growth, growth.lender(leaf), free)
    if not running:
        return []
    mark, owed = desk.mark(), growth.mark()
    steps = _shrink_all(desk, running, shares)
    for step in steps:
        growth.change(desk.world.jobs[step.job], step.placements)
    started = [place for record in waiting if (place := seat(record)) is not None] if steps else []
    grown = [
        wider
        for job, width in zip(running, shares, strict=True)
        if width > job.width and (wider := _grow_within(desk, job, width, growth)) is not None
    ]
    if steps and not started and not grown:
        desk.rollback(mark)
        growth.rollback(owed)
        return []
    return [*steps, *started, *grown]


def _shared_out(
    desk: Desk,
    now: int,
    waiting: Sequence[JobRecord],
    is_fixed: IsFixed,
    growth: Growth,
    gives: Gives,
    free: int,
) -> tuple[list[_Stretchable], list[int]]:
    """The running elastic jobs that may change, and the width each is to have, at least what `gives` says.

    `free`: cards that may be given out beside what they have.
    """
    rules = desk.settings.elastic
    running = [] if rules is None else [job for job in _running(desk) if not is_fixed(job.record.job.id)]
    if rules is None or not running:
        return [], []
    widths = growth.open_widths([(job.record, gives(job.record)) for job in running])
    return running, _shares(running, widths, waiting, rules, now, free)


def _shrink_all(desk: Desk, running: list[_Stretchable], shares: list[int]) -> list[Resize]:
    return [
        _shrink(desk, job, width) for job, width in zip(running, shares, strict=True) if width < job.width
    ]


def _running(desk: Desk) -> list[_Stretchable]:
    found = []
    for job in desk.world.elastic:
        record, grants = desk.world.jobs[job], desk.world.grants[job]
        if record.phase is not Phase.RUNNING or record.job.elastic is None:
            continue
        if any(grant.seat is None or not desk.draft.can_release(grant.seat) for grant in grants):
            continue
        width = width_of(record.job, [grant.placement for grant in grants])
        if width in record.job.elastic.widths and all(grant.placement.whole for grant in grants):
            unit = record.job.members[0].cards if len(record.job.members) > 1 else 1
            found.append(_Stretchable(record, grants, max(1, unit), width))
    return found


def _shares(
    running: list[_Stretchable],
    open_widths: Sequence[Sequence[int]],
    waiting: Sequence[JobRecord],
    rules: ElasticRules,
    now: int,
    free: int,
) -> list[int]:
    """The width of each that runs, counted beside those that wait; in cards, so that units may differ."""
    jobs = [_as_running(job, open_, rules, now) for job, open_ in zip(running, open_widths, strict=True)]
    held = sum(job.held for job in jobs)
    for record in waiting:
        asked = sum(request.cards for request in record.job.members)
        if asked:
            jobs.append(_as_waiting(record.job, asked))
    cards = share_cards(jobs, held + free, rules)
    return [given // job.unit for given, job in zip(cards, running, strict=False)]


def _as_running(job: _Stretchable, widths: Sequence[int], rules: ElasticRules, now: int) -> ElasticJob:
    """With those of its widths that are open; it is as slow at them as among all."""
    elastic = job.record.job.elastic
    assert elastic is not None
    speeds = [float(elastic.speed(width)) for width in widths]
    weight = (elastic.speeds_milli[0] / speeds[0]) ** (rules.evenness_milli / 1000)
    sizes = tuple(width * job.unit for width in widths)
    return ElasticJob(sizes, tuple(speeds), job.width * job.unit, now - job.record.resized_ms, weight)


def _as_waiting(job: Job, asked: int) -> ElasticJob:
    """A job that starts with all `asked` cards, or an elastic one that starts with those of any width."""
    if job.elastic is None:
        return ElasticJob((asked,), (1000.0,))
    unit = max(1, job.members[0].cards) if len(job.members) > 1 else 1
    sizes = tuple(width * unit for width in job.elastic.widths)
    return ElasticJob(sizes, tuple(float(speed) for speed in job.elastic.speeds_milli))


def _idle(desk: Desk) -> int:
    return sum(
        mask.bit_count() for chunk in desk.draft.chunks for mask in (chunk.idle & chunk.usable).tolist()
    )


def _shrink(desk: Desk, job: _Stretchable, width: int) -> Resize:
    """Give back members as `shrinking` has it, or the cards that leave the best linked set."""
    if len(job.record.job.members) > 1:
        kept = staying(desk, job.record.job, job.grants, width)
        for grant in job.grants:
            if grant.seat is not None and grant not in kept:
                desk.release(grant.seat)
        return _resize(desk, job, [grant.seat for grant in kept if grant.seat is not None])
    (grant,) = job.grants
    assert grant.seat is not None
    seat = _part(desk, job.record.job.sized(width), grant.seat, grant.seat.mask)
    assert seat is not None
    desk.release(grant.seat)
    desk.book(seat)
    return _resize(desk, job, [seat])


def _grow_within(desk: Desk, job: _Stretchable, width: int, growth: Growth) -> Resize | None:
    """As `_grow`, as far as others who grew in this plan have left of its queue."""
    ((*_, widest),) = growth.open_widths([(job.record, job.width)])
    width = min(width, widest)
    if width <= job.width:
        return None
    mark = desk.mark()
    step = _grow(desk, job, width)
    if step is not None and not growth.take(job.record, step.placements):
        desk.rollback(mark)  # on cards of another model it would be charged more
        return None
    return step


def _grow(desk: Desk, job: _Stretchable, width: int) -> Resize | None:
    """More members wherever they fit, or more cards on the same node; None where there is no room."""
    if len(job.record.job.members) > 1:
        mark = desk.mark()
        seats = [grant.seat for grant in job.grants if grant.seat is not None]
        for _ in range(job.width, width):
            more = seat_next(desk, job.record.job, seats)
            if more is None:
                desk.rollback(mark)
                return None
            seats.append(more.seat)
        if job.record.job.spread and job.record.job.replica_of:
            desk.note_copies(job.record.job.replica_of, seats[job.width :])
        return _resize(desk, job, seats)
    (grant,) = job.grants
    assert grant.seat is not None
    mark = desk.mark()
    desk.release(grant.seat)
    chunk, place = desk.draft.ledger.readable(grant.seat.row)
    seat = _part(desk, job.record.job.sized(width), grant.seat, int(chunk.idle[place] & chunk.usable[place]))
    if seat is None or not desk.draft.fits(seat):
        desk.rollback(mark)
        return None
    desk.book(seat)
    return _resize(desk, job, [seat])


def _part(desk: Desk, job: Job, held: Seat, free: int) -> Seat | None:
    """The seat of the only member of `job` on cards of `free` on the row of `held`, keeping what it can."""
    (request,) = job.members
    option, shape = desk.memo.options(request)[0]
    chunk, place = desk.draft.ledger.readable(held.row)
    kind = int(chunk.kind[place])
    free &= shape.eligible[kind]
    kept = held.mask & free
    if free.bit_count() < request.cards:
        return None
    if kept.bit_count() <= request.cards:
        mask = desk.choose_cards(kind, free, request.cards, need_of(request))
        if kept & ~mask:  # the best set leaves cards it has: add to them instead
            extra = [1 << card for card in bits(free & ~kept)][: request.cards - kept.bit_count()]
            mask = kept | sum(extra)
    else:
        mask = desk.choose_cards(kind, kept, request.cards, need_of(request))
    return desk.seat_at(option, shape, held.row, mask) if mask else None


def _resize(desk: Desk, job: _Stretchable, seats: list[Seat]) -> Resize:
    placements = tuple(desk.placement(seat) for seat in seats)
    return Resize(job.record.job.id, job.record.attempt, placements)
