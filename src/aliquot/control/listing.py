"""Lives and a frozen world as the lists people ask for. Pure: values in, values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from aliquot.control.chronicle import Life
from aliquot.control.kept import Kept
from aliquot.control.views import CardUse, CardView, JobDetail, JobSummary, QueueView
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Card
from aliquot.core.lifecycle import HOLDING, Phase
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.settings import Settings
from aliquot.core.units import FULL

DEFAULT_QUEUE: Final = "default"
UNRUNNABLE: Final = 127  # what a shell reports for a command it cannot run


def summarise(life: Life, user_name: Callable[[int], str]) -> JobSummary:
    """A job as one row."""
    last = life.attempts[-1] if life.attempts else None
    return JobSummary(
        id=life.job.id,
        name=life.name,
        owner=-1 if life.owner is None else life.owner,
        user="" if life.owner is None else user_name(life.owner),
        queue=life.job.queue or DEFAULT_QUEUE,
        priority=life.job.priority,
        phase=life.phase.value,
        cards=sum(request.cards for request in life.job.members),
        attempt=last.number if last is not None else 1,
        submitted_ms=life.job.submitted_ms,
        started_ms=None if last is None else last.started_ms,
        over_ms=life.over_ms,
        exit_status=exit_status(life),
    )


def exit_status(life: Life) -> int | None:
    """The exit code of a job that is over: of its members, the first that is not 0; None where unknown."""
    if life.over_ms is None or not life.attempts:
        return None
    exits = [ending for ending in life.attempts[-1].exits if ending is not None]
    if not exits:
        return None
    codes = [UNRUNNABLE if ending.how not in {"exited", "signalled"} else ending.status for ending in exits]
    return next((code for code in codes if code), 0)


def describe(
    life: Life, world: Frozen, user_name: Callable[[int], str], kept: Kept | None, output: str | None
) -> JobDetail:
    """A job in full; without `kept` nothing that is its owner's business."""
    position = None
    if life.phase is Phase.PENDING:
        keys = (at for at, key in enumerate(world.pending, 1) if key[3] == life.job.id)
        position = next(keys, None)
    return JobDetail(
        job=summarise(life, user_name),
        attempts=life.attempts,
        position=position,
        waiting=len(world.pending),
        is_cancelled=life.is_cancelled,
        command=None if kept is None else kept.command,
        cwd=None if kept is None else kept.cwd,
        output=output,
    )


def card_views(world: Frozen, owner_of: Callable[[JobId], str]) -> list[CardView]:
    """Every card, node by node in their order."""
    uses: dict[CardId, list[CardUse]] = defaultdict(list)
    for job, grants in sorted(world.grants.items()):
        for grant in grants:
            vector = grant.placement.vector
            for card in grant.placement.cards:
                uses[card].append(CardUse(job, owner_of(job), vector.compute, vector.memory))
    return [
        _card_view(record, at, card, uses[card.uuid])
        for name in world.node_at
        for record in (world.nodes[name],)
        for at, card in enumerate(record.node.cards)
    ]


def queue_views(settings: Settings, lives: Sequence[Life]) -> list[QueueView]:
    """Configured queues in their order, then others that are in use."""
    names = [queue.name for queue in settings.queues]
    living = [life for life in lives if life.over_ms is None]
    names += sorted({life.job.queue or DEFAULT_QUEUE for life in living} - set(names))
    found = []
    for name in names or [DEFAULT_QUEUE]:
        own = [life for life in living if (life.job.queue or DEFAULT_QUEUE) == name]
        holding = [life for life in own if life.phase in HOLDING]
        held = (
            len(hold.cards) * hold.compute_milli
            for life in holding
            for hold in (life.attempts[-1].holds if life.attempts else ())
        )
        priority = settings.queue_priority(name)
        found.append(QueueView(name, priority, len(own) - len(holding), len(holding), sum(held)))
    return found


def _card_view(record: NodeRecord, index: int, card: Card, uses: Sequence[CardUse]) -> CardView:
    state = "ok"
    if not record.up:
        state = "away"
    elif card.uuid in record.faulty:
        state = "faulty"
    elif record.drained:
        state = "drained"
    return CardView(
        node=str(record.node.id),
        index=index,
        uuid=card.uuid,
        model=card.model.name,
        pci=card.pci,
        numa=card.numa,
        memory_mib=card.model.usable_mib,
        state=state,
        free_compute_milli=FULL - sum(use.compute_milli for use in uses),
        free_memory_mib=card.model.usable_mib - sum(use.memory_mib for use in uses),
        jobs=tuple(uses),
    )
