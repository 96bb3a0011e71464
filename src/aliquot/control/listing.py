"""Lives and a frozen world as the lists people ask for. Pure: values in, values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from aliquot.control.chronicle import Life
from aliquot.control.kept import Kept
from aliquot.control.views import (
    CardGrant,
    CardUse,
    CardView,
    Foreigner,
    JobDetail,
    JobSummary,
    Progress,
    QueueView,
)
from aliquot.core.health import Reading
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Card
from aliquot.core.lifecycle import HOLDING, Phase
from aliquot.core.promise import Answer, Crowding, Promise
from aliquot.core.queueing.outlook import Expected
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.settings import Settings
from aliquot.core.units import FULL

DEFAULT_QUEUE: Final = "default"
PEAK_FORMATS: Final = ("bf16", "fp16")  # what models are trained in; the first that a card's facts have
UNRUNNABLE: Final = 127  # what a shell reports for a command it cannot run


def summarise(life: Life, user_name: Callable[[int], str], expected: Expected | None = None) -> JobSummary:
    """A job as one row; `expected`: its start, while it waits."""
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
        expected=expected if life.phase is Phase.PENDING else None,
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
    life: Life,
    world: Frozen,
    user_name: Callable[[int], str],
    kept: Kept | None,
    output: str | None,
    progress: tuple[Progress, ...] = (),
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
        progress=progress,
    )


def card_views(
    world: Frozen,
    owner_of: Callable[[JobId], str],
    readings: Mapping[CardId, Reading] = MappingProxyType({}),
    user_of: Callable[[int], str] = lambda pid: "",
) -> list[CardView]:
    """Every card, node by node in their order, with the last `readings`; `user_of` names whose a pid is."""
    uses: dict[CardId, list[CardUse]] = defaultdict(list)
    for job, grants in sorted(world.grants.items()):
        for grant in grants:
            vector = grant.placement.vector
            for card in grant.placement.cards:
                used = _used_by(job, readings.get(card))
                uses[card].append(CardUse(job, owner_of(job), vector.compute, vector.memory, used))
    return [
        _card_view(record, at, card, uses[card.uuid], readings.get(card.uuid), user_of)
        for name in world.node_at
        for record in (world.nodes[name],)
        for at, card in enumerate(record.node.cards)
    ]


def queue_views(
    settings: Settings,
    lives: Sequence[Life],
    promises: Mapping[JobId, Promise] = MappingProxyType({}),
    crowding: Crowding | None = None,
) -> list[QueueView]:
    """Configured queues in their order, then others that are in use; `promises` of those that wait."""
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
        answers = [promises[life.job.id].answer for life in own if life.job.id in promises]
        at_risk, cannot = answers.count(Answer.AT_RISK), answers.count(Answer.CANNOT)
        counts = (len(own) - len(holding), len(holding), sum(held))
        found.append(QueueView(name, priority, *counts, at_risk, cannot, crowding))
    return found


def peak_of(world: Frozen, hold: CardGrant) -> float | None:
    """Floating-point operations a second that a member's cards could do; None where one is not known."""
    models = {card.uuid: card.model for record in world.nodes.values() for card in record.node.cards}
    total = 0.0
    for uuid in hold.cards:
        model = models.get(CardId(uuid))
        gflops = None if model is None else next(filter(None, map(model.flops_of, PEAK_FORMATS)), None)
        if gflops is None:
            return None
        total += gflops * 1e9 * hold.compute_milli / FULL
    return total or None


def _used_by(job: JobId, reading: Reading | None) -> int | None:
    """Memory of a job's processes on a card; None where one is not known."""
    if reading is None or reading.processes is None:
        return None
    sizes = [process.memory_mib for process in reading.processes if process.job == job]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _foreign(reading: Reading | None, user_of: Callable[[int], str]) -> tuple[Foreigner, ...] | None:
    if reading is None or reading.processes is None:
        return None
    return tuple(
        Foreigner(process.pid, user_of(process.pid), process.memory_mib)
        for process in reading.processes
        if process.job is None
    )


def _card_view(
    record: NodeRecord,
    index: int,
    card: Card,
    uses: Sequence[CardUse],
    reading: Reading | None,
    user_of: Callable[[int], str],
) -> CardView:
    crowd = [(compute, memory) for name, compute, memory in record.crowd if name == card.uuid]
    taken = [*crowd, *((use.compute_milli, use.memory_mib) for use in uses)]
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
        free_compute_milli=max(0, FULL - sum(compute for compute, _ in taken)),
        free_memory_mib=max(0, card.model.usable_mib - sum(memory for _, memory in taken)),
        jobs=tuple(uses),
        used_mib=None if reading is None else reading.used_mib,
        busy_percent=None if reading is None else reading.busy_percent,
        foreign=_foreign(reading, user_of),
    )
