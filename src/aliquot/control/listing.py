"""Lives and a frozen world as the lists people ask for. Pure: values in, values out."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from aliquot.control.arrays import array_of, fold
from aliquot.control.card_views import CardUse, CardView, Excess, Foreigner, TakenCard
from aliquot.control.chronicle import Life, held_width
from aliquot.control.endings import REFUSED, reason_of, status_of
from aliquot.control.giving_up import reason_given
from aliquot.control.kept import Kept
from aliquot.control.looking import Lookout
from aliquot.control.overbooked import gone_cards
from aliquot.control.quotas import DEFAULT_QUEUE
from aliquot.control.views import Accepted, CardGrant, JobDetail, JobSummary, Progress
from aliquot.core.health import Fault, Reading
from aliquot.core.ids import CardId, JobId
from aliquot.core.inventory import Card
from aliquot.core.lifecycle import Phase
from aliquot.core.queueing.outlook import Expected, Unsaid
from aliquot.core.records import Frozen, NodeRecord, queue_key
from aliquot.core.units import FULL

PEAK_FORMATS: Final = ("bf16", "fp16")  # what models are trained in; the first that a card's facts have


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
        members=len(life.job.members),
        array=array_of(life.job.id),
        attempt=last.number if last is not None else 1,
        submitted_ms=life.job.submitted_ms,
        started_ms=None if last is None else last.started_ms,
        over_ms=life.over_ms,
        exit_status=exit_status(life),
        reason=_reason_of(life),
        expected=expected if life.phase is Phase.PENDING else None,
        width=held_width(life),
        resizing=life.resizing,
    )


def _reason_of(life: Life) -> str:
    """Why it failed, was given up where nobody did that, or had to go back to its queue at the start."""
    if life.phase is Phase.CANCELLED:
        return reason_given(life)
    if not life.attempts:
        return ""
    if life.phase is Phase.PENDING:
        return REFUSED if life.attempts[-1].outcome == REFUSED else ""
    return reason_of(life.attempts[-1].exits) if life.phase is Phase.FAILED else ""


def exit_status(life: Life) -> int | None:
    """The exit code of a job that is over: that of its last attempt; None where unknown."""
    return None if life.over_ms is None or not life.attempts else status_of(life.attempts[-1].exits)


def list_jobs(
    lives: Iterable[Life],
    user_name: Callable[[int], str],
    table: Mapping[JobId, Expected],
    *,
    over: bool,
    owner: int | None,
    most: int | None,
    folded: bool,
) -> list[JobSummary]:
    """Rows of those asked for, the last `most`; `folded`: one for each array."""
    wanted = [life for life in lives if owner is None or life.owner == owner]
    if not folded:
        wanted = [life for life in wanted if over or life.over_ms is None]
        wanted = wanted if most is None else wanted[-most:]
        return [summarise(life, user_name, table.get(life.job.id)) for life in wanted]
    if not over:
        open_arrays = {array_of(life.job.id) for life in wanted if life.over_ms is None} - {""}
        wanted = [life for life in wanted if life.over_ms is None or array_of(life.job.id) in open_arrays]
    rows = fold([summarise(life, user_name, table.get(life.job.id)) for life in wanted])
    return rows if most is None else rows[-most:]


def describe(
    life: Life,
    world: Frozen,
    user_name: Callable[[int], str],
    kept: Kept | None,
    output: str | None,
    progress: tuple[Progress, ...],
    unenforced: tuple[str, ...],
    lookout: Lookout,
) -> JobDetail:
    """A job in full; without `kept` nothing that is its owner's business."""
    now = where_it_stands(life, world, lookout)
    return JobDetail(
        job=summarise(life, user_name, now.expected),
        attempts=life.attempts,
        position=now.position,
        waiting=now.waiting,
        is_cancelled=life.is_cancelled,
        command=None if kept is None else kept.command,
        cwd=None if kept is None else kept.cwd,
        output=output,
        progress=progress,
        queue_position=now.queue_position,
        queue_waiting=now.queue_waiting,
        expected=now.expected if life.phase is Phase.PENDING else None,
        promise=now.promise,
        unenforced=unenforced,
        gone=tuple(card for held in gone_cards(world).values() for card in held if _holds(life, card)),
    )


def _holds(life: Life, card: CardId) -> bool:
    last = life.attempts[-1] if life.attempts else None
    return last is not None and last.ended_ms is None and any(card in hold.cards for hold in last.holds)


def where_it_stands(life: Life, world: Frozen, lookout: Lookout) -> Accepted:
    """The place of a job in line, when it starts or has started, and what becomes of its bounds.

    Places are those of the last look ahead; of a job that came after it, by priority and time alone.
    """
    seen, job = lookout.seen, life.job
    if life.phase is not Phase.PENDING:
        granted = life.attempts[-1].granted_ms if life.attempts else None
        expected = None if granted is None else Expected.exactly(granted)
        promise = None if granted is None else lookout.foresight.kept(job, granted)
        return Accepted(job.id, phase=life.phase.value, expected=expected, promise=promise)
    place = seen.places.get(job.id)
    if place is None:
        at, waiting = bisect_left(world.pending, queue_key(job)), len(world.pending)
        position = at + 1 if at < waiting and world.pending[at][3] == job.id else None
    else:
        position, waiting = place.position, place.waiting
    expected = seen.table.get(job.id) or Expected(unsaid=Unsaid.NOT_YET)
    return Accepted(
        id=job.id,
        phase=life.phase.value,
        position=position,
        waiting=waiting,
        queue_position=None if place is None else place.queue_position,
        queue_waiting=0 if place is None else place.queue_waiting,
        expected=expected,
        promise=seen.promises.get(job.id) or lookout.foresight.promise(job, seen.at_ms, expected),
    )


def card_views(
    world: Frozen,
    owner_of: Callable[[JobId], str],
    readings: Mapping[CardId, Reading] = MappingProxyType({}),
    user_of: Callable[[int], str] = lambda pid: "",
    excesses: Mapping[JobId, Sequence[Excess]] = MappingProxyType({}),
    faults: Mapping[CardId, Fault] = MappingProxyType({}),
) -> list[CardView]:
    """Every card, node by node in their order, with the last `readings`; `user_of` names whose a pid is.

    `excesses`: who uses more than he was granted; `faults`: why cards take no work. Behind a node's own
    cards stand those that are granted on it and not there any more.
    """
    uses: dict[CardId, list[CardUse]] = defaultdict(list)
    for job, grants in sorted(world.grants.items()):
        for grant in grants:
            vector = grant.placement.vector
            for card in grant.placement.cards:
                used = _used_by(job, readings.get(card))
                since = next((one.since_ms for one in excesses.get(job, ()) if one.card == card), None)
                use = CardUse(job, owner_of(job), vector.compute, vector.memory, used, since)
                uses[card].append(use)
    gone = gone_cards(world)
    found = []
    for name in world.node_at:
        record = world.nodes[name]
        found += [
            _card_view(
                record, at, card, uses[card.uuid], readings.get(card.uuid), user_of, faults.get(card.uuid)
            )
            for at, card in enumerate(record.node.cards)
        ]
        found += [_gone_view(record, card, uses[card]) for card in sorted(gone.get(name, ()))]
    return found


def taken_cards(
    world: Frozen,
    readings: Mapping[CardId, Reading],
    user_of: Callable[[int], str],
    faults: Mapping[CardId, Fault] = MappingProxyType({}),
) -> tuple[TakenCard, ...]:
    """What of each card is taken beyond all grants, and by whom, or why it is out, as last seen."""
    holders: dict[CardId, set[str]] = defaultdict(set)
    for job, grants in world.grants.items():
        for card in (card for grant in grants for card in grant.placement.cards):
            holders[card].add(job)
    found = []
    for name in world.node_at:
        record = world.nodes[name]
        index_of = {card.uuid: at for at, card in enumerate(record.node.cards)}
        found += [
            TakenCard(
                str(name),
                index_of[card],
                card,
                memory,
                compute,
                _foreign(readings.get(card), user_of, holders[card]) or (),
            )
            for card, compute, memory in record.crowd
            if card in index_of and card not in record.faulty
        ]
        found += [
            TakenCard(
                str(name), at, card.uuid, card.model.usable_mib, FULL, fault=_why(faults.get(card.uuid))
            )
            for at, card in enumerate(record.node.cards)
            if card.uuid in record.faulty
        ]
    return tuple(found)


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


def _foreign(
    reading: Reading | None, user_of: Callable[[int], str], holders: Collection[str]
) -> tuple[Foreigner, ...] | None:
    """Processes of none of `holders`, the jobs that hold some of the card; None where nobody knows."""
    if reading is None or reading.processes is None:
        return None
    return tuple(
        Foreigner(process.pid, user_of(process.pid), process.memory_mib, process.job or "")
        for process in reading.processes
        if process.job not in holders
    )


def _gone_view(record: NodeRecord, card: CardId, uses: Sequence[CardUse]) -> CardView:
    return CardView(
        node=str(record.node.id),
        index=None,
        uuid=card,
        model="",
        pci="",
        numa=None,
        memory_mib=None,
        state="gone",
        free_compute_milli=0,
        free_memory_mib=0,
        jobs=tuple(uses),
    )


def _card_view(
    record: NodeRecord,
    index: int,
    card: Card,
    uses: Sequence[CardUse],
    reading: Reading | None,
    user_of: Callable[[int], str],
    fault: Fault | None,
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
    closed = FULL, card.model.usable_mib
    taken = taken if state == "ok" else [*taken, closed]
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
        foreign=_foreign(reading, user_of, {use.job for use in uses}),
        fault=fault.word if fault is not None and state == "faulty" else "",
    )


def _why(fault: Fault | None) -> str:
    return "it was found faulty" if fault is None else fault.text
