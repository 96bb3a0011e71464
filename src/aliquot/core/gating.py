"""The gate of a job that finds no room, seen closer than a plan needs to: gang, links, scatter or room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from aliquot.core.columns import COMPUTE, MEMORY
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job, Request
from aliquot.core.lifecycle import Phase
from aliquot.core.placement.shapes import Shape
from aliquot.core.queueing.tree import home_of
from aliquot.core.queues import quotas_of
from aliquot.core.reasons import asked_of, cards_for, rows_of
from aliquot.core.records import JobRecord
from aliquot.core.siting import Desk
from aliquot.core.steps import Gate, Lack, Reason, Short, Shortfall, Wait
from aliquot.core.turns import TreeTurns, Turns

Ints = npt.NDArray[np.integer]
_DIMS: Final = ((COMPUTE, "compute"), (MEMORY, "memory"))


def with_own_gate(wait: Wait, record: JobRecord, turns: Turns) -> Wait:
    """`wait` at the gate its lack belongs to: what its queue may take at all, or what it may borrow.

    Where a hard maximum is in the way it is named, since nothing that others lend helps then. `turns`: as
    nobody has had one yet.
    """
    if wait.gate is not Gate.QUOTA or wait.lack is None or wait.lack.budget is not None:
        return wait
    if isinstance(turns, TreeTurns) and (capped := _capped(wait.lack, record, turns)) is not None:
        return replace(wait, lack=capped)
    return replace(wait, gate=Gate.BORROWING) if wait.lack.borrows else wait


def as_borrower(wait: Wait, record: JobRecord, turns: Turns | None) -> Wait | None:
    """The wait of a job told to wait for room that would have to borrow, where nothing is left to lend.

    To a plan that is a matter of room: whoever frees machines frees quota as well. To its owner it is the
    gate BORROWING, with what is asked and what is left. `turns`: as nobody has had one yet; None: only room
    is looked at.
    """
    lack = turns.lack_of_loan(record) if isinstance(turns, TreeTurns) else None
    return None if lack is None else replace(wait, gate=Gate.BORROWING, lack=lack)


def _capped(lack: Lack, record: JobRecord, turns: TreeTurns) -> Lack | None:
    """`lack` as the lowest queue tells it whose hard maximum the job would go beyond; None: there is none."""
    tree, book = turns.standing.tree, turns.standing.book
    slot = tree.slot.get(lack.resource)
    maxima = {
        queue.name: quota.maximum
        for queue in turns.standing.settings.queues
        for quota in quotas_of(queue)
        if quota.resource == lack.resource and isinstance(quota.maximum, int)
    }
    if slot is None:
        return None
    for node in tree.paths[home_of(tree, record.job.queue)]:
        name, used = tree.names[node], book.total[node][slot]
        most = maxima.get(name)
        if most is not None and used + lack.need > most:
            have = max(0, most - used)
            return replace(lack, have=have, queue=name, borrows=False, used=used, maximum=most)
    return None


def look_closer(
    desk: Desk, job: Job, missing: Request, seated: int, reasons: tuple[Reason, ...]
) -> tuple[Gate, Short | None]:
    """The gate of a job of which `seated` members find room and `missing` is the first that finds none.

    GANG: some of its members would fit. TOPOLOGY: a node has the cards, not linked as asked. FRAGMENTATION:
    the site has as much free as the member asks for, but no node has. Else FIT: too little is free in all.
    """
    if 0 < seated < job.least:
        return Gate.GANG, Short("members", job.least, seated)
    if any(reason.shortfall is Shortfall.LINK and reason.best is not None for reason in reasons):
        return Gate.TOPOLOGY, None
    scattered = _scattered(desk, missing)
    return (Gate.FIT, None) if scattered is None else (Gate.FRAGMENTATION, scattered)


def find_releasing(desk: Desk, job: Job, order: Sequence[int]) -> tuple[JobId, ...]:
    """Jobs that are over but for their last processes, or are given up, in whose room `job` would start.

    () where it would not start there either. What is stopped for somebody else is his. `order`: in which its
    members are seated. The desk is as before.
    """
    world = desk.world
    seats = [
        (owner, grant.seat)
        for owner, record in sorted(world.jobs.items())
        if record.phase is Phase.STOPPING and record.evicting is None and record.resizing is None
        for grant in world.grants.get(owner, ())
        if grant.seat is not None and desk.draft.can_release(grant.seat)
    ]
    if not seats or job.is_sited:
        return ()
    mark = desk.mark()
    for _, seat in seats:
        desk.draft.release(seat)
    desk.catch_up()
    found = [desk.seat(job.members[at]) for at in order]
    desk.rollback(mark)
    rows = [seated.seat.row for seated in found if seated is not None]
    if len(rows) < job.least:
        return ()
    return tuple(dict.fromkeys(owner for owner, seat in seats if seat.row in rows))


def _scattered(desk: Desk, request: Request) -> Short | None:
    """What is free in all and at most in one place, where the sum would do; None where it would not."""
    if not request.cards:
        return None
    _, shape = desk.memo.options(request)[-1]
    columns = list(_columns(desk, shape))
    if shape.whole:
        cards = Short("cards", shape.cards, *_sum_and_best([idle.sum(axis=1) for idle, _, _ in columns]))
        return cards if (cards.best or 0) < cards.need <= cards.have else None
    shorts = [_sliced(shape, columns, dim, name) for dim, name in _DIMS]
    if any(short.have < short.need for short in shorts):
        return None
    return max(shorts, key=lambda short: short.need / max(1, short.best or 0))


def _sliced(shape: Shape, columns: list[tuple[Ints, Ints, Ints]], dim: int, name: str) -> Short:
    """One dimension of shared cards: asked of all its cards, free in all, the most that one card has."""
    need = max((int(ask[:, dim].max(initial=0)) for _, _, ask in columns), default=0)
    return Short(name, need * shape.cards, *_sum_and_best([left[:, :, dim] for _, left, _ in columns]))


def _sum_and_best(parts: list[Ints]) -> tuple[int, int]:
    best = max((int(part.max(initial=0)) for part in parts), default=0)
    return sum(int(part.sum()) for part in parts), best


def _columns(desk: Desk, shape: Shape) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Of each chunk: idle cards that may serve [node, card], what such cards have left, what is asked."""
    for chunk, _, rows in rows_of(desk.draft.chunks, desk.world.rows):
        may, idle = cards_for(shape, chunk, rows)
        yield idle.astype(np.int64), chunk.left[:rows] * may[:, :, None], asked_of(shape, chunk.kind[:rows])
