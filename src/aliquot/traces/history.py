"""A site's own past as a scenario: the jobs of any table, on machines one names.

A row that does not say how long its job ran, or on how many cards, cannot be replayed: it is left out, and
counted in the notes; it is never taken as 0 or as endless. Time begins with the first submission.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from aliquot.control.replaying import Estimates
from aliquot.core.errors import DocumentError, SpecError
from aliquot.core.ids import JobId
from aliquot.core.inventory import CardModel, Node, Profile, accepts
from aliquot.core.jobs import Job, Request
from aliquot.core.queues import Queue
from aliquot.core.slices import Ask, Cut
from aliquot.core.units import FULL, format_ms
from aliquot.core.workload import Offer, Scenario
from aliquot.traces.estimates import draw_estimates
from aliquot.traces.plain_site import UNNAMED, UNNAMED_NOTE, WHOLE, Policies, gang

MOST_NAMED: Final = 5


class Past(msgspec.Struct, frozen=True):
    """One job as its table tells it. None is unknown. `cards_milli`: 1000 is one card, in all its parts."""

    id: str
    line: int
    submitted_ms: int  # since 1970
    ran_ms: int
    cards_milli: int
    started_ms: int | None = None
    nodes: int | None = None  # how many it was spread over, where it asked for that
    memory_mib: int | None = None  # of each card
    model: str | None = None
    queue: str | None = None
    user: str | None = None
    priority: int | None = None
    estimate_ms: int | None = None
    limit_ms: int | None = None  # it was, or would have been, ended after so long


class Table(msgspec.Struct, frozen=True):
    """What a file said: jobs in its order, why others were left out and how many, and remarks."""

    name: str
    file: str
    jobs: tuple[Past, ...]
    left_out: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    share: bool = False  # GPU memory asks for a part of a card


class Machines(msgspec.Struct, frozen=True):
    """The site: what of its scenario is not jobs, the queues that documents declare, policies for queues.

    `models`: names of card models by the words, casefolded, that may stand for them.
    """

    scenario: Scenario
    models: Mapping[str, tuple[str, ...]]
    policies: Callable[[tuple[Queue, ...]], Policies]
    queues: tuple[Queue, ...] = ()


def build_history(
    table: Table, machines: Machines, estimates: Estimates, seed: int, jobs: int | None
) -> Scenario:
    """`table` on `machines`, its first `jobs` at most. Raises DocumentError where no job is left."""
    past = sorted(table.jobs, key=lambda job: job.submitted_ms)[:jobs]
    if not past:
        out = "; ".join(f"{count} {why}" for why, count in table.left_out)
        raise DocumentError("has no job to replay", file=table.file, hint=out or "at least one row")
    site = machines.scenario
    asks = _Asks(table, machines)
    told = draw_estimates(estimates, [job.ran_ms for job in past], seed, [job.estimate_ms for job in past])
    first = past[0].submitted_ms
    if estimates is Estimates.NONE:  # a limit says how long a job runs at most, which is not nothing
        past = [msgspec.structs.replace(job, limit_ms=None) for job in past]
    offers = tuple(
        _offer(job, asks.members(job), seq, first, estimate)
        for seq, (job, estimate) in enumerate(zip(past, told, strict=True))
    )
    declared = {queue.name for queue in machines.queues}
    missing = sorted({job.queue for job in past if job.queue} - declared)
    notes = [*site.notes, *_notes(table, past, site.nodes, estimates), *asks.notes()]
    if declared and missing:
        notes.append(f"queues that no document declares have no quota: {', '.join(missing)}")
    return msgspec.structs.replace(
        site,
        name=table.name,
        offers=offers,
        policies=machines.policies((*machines.queues, *(Queue(name) for name in missing))),
        notes=tuple(notes),
    )


def recorded_waits(past: Iterable[Past]) -> str | None:
    """One sentence on how long these jobs waited when it happened; None where no start is known."""
    waits = sorted(job.started_ms - job.submitted_ms for job in past if job.started_ms is not None)
    if not waits:
        return None
    mean, p95 = sum(waits) // len(waits), waits[-(-95 * len(waits) // 100) - 1]
    return (
        f"as it happened, {len(waits):,} jobs waited {format_ms(mean)} in the mean, {format_ms(p95)} at the"
        f" 95th percentile, {format_ms(waits[-1])} at most"
    )


class _Asks:
    """What each past job asks of nodes here; remembers what it could not honour."""

    def __init__(self, table: Table, machines: Machines) -> None:
        nodes: Sequence[Node] = machines.scenario.nodes
        self._table, self._models = table, machines.models
        self._cards: dict[str, CardModel] = {
            card.model.name: card.model for node in nodes for card in node.cards
        }
        self._widest = max(len(node.cards) for node in nodes)
        self._unnamed = UNNAMED.name in self._cards
        self._unknown: Counter[str] = Counter()
        self._absent: Counter[str] = Counter()
        self._large = 0

    def members(self, job: Past) -> tuple[Request, ...]:
        profile = Profile(models=self._accepted(job))
        ask = WHOLE
        if job.memory_mib is not None:
            if self._unnamed:
                raise SpecError(
                    "a history with GPU memory needs cards of a known model",
                    field="--model",
                    hint="name one, such as --model A100-SXM4-40GB, or the site with --cluster",
                )
            if self._table.share and job.cards_milli <= FULL:
                ask = Ask(Cut.SHARED, memory_mib=job.memory_mib)
            else:
                profile = msgspec.structs.replace(profile, memory_mib=job.memory_mib)
            if not any(job.memory_mib <= model.usable_mib for model in self._cards.values()):
                self._large += 1
        if job.cards_milli < FULL:
            ask = Ask(Cut.SHARED, memory_mib=ask.memory_mib, compute_milli=job.cards_milli)
        cards = -(-job.cards_milli // FULL)
        return gang(cards, self._widest, job.nodes, ask=ask, profile=profile)

    def notes(self) -> list[str]:
        said = [UNNAMED_NOTE] if self._unnamed else []
        if self._unknown:
            jobs, words = sum(self._unknown.values()), ", ".join(sorted(self._unknown)[:MOST_NAMED])
            said.append(
                f"{jobs:,} jobs name a card model that is not in the catalogue ({words}): any card will do"
            )
        if self._absent:
            jobs, words = sum(self._absent.values()), ", ".join(sorted(self._absent)[:MOST_NAMED])
            said.append(
                f"{jobs:,} jobs name a card model that this site has none of ({words}): they never start"
            )
        if self._large:
            said.append(f"{self._large:,} jobs name more GPU memory than any card here has: they never start")
        return said

    def _accepted(self, job: Past) -> tuple[str, ...]:
        if job.model is None or self._unnamed:
            return ()
        word = job.model.casefold()
        bare = word.replace("_", "-").removeprefix("nvidia-")  # as Slurm names what it finds by itself
        names = self._models.get(word) or self._models.get(bare, ())
        if not names:
            self._unknown[job.model] += 1
        elif not any(accepts(Profile(models=names), model) for model in self._cards.values()):
            self._absent[job.model] += 1
        return names


def _offer(job: Past, members: tuple[Request, ...], seq: int, first: int, estimate: int | None) -> Offer:
    return Offer(
        Job(
            id=JobId(job.id),
            members=members,
            submitted_ms=job.submitted_ms - first,
            seq=seq,
            queue=job.queue or "",
            priority=job.priority or 0,
            estimate_ms=estimate,
            limit_ms=job.limit_ms,
            user=job.user or "",
        ),
        work_ms=max(1, job.ran_ms),
    )


def _notes(table: Table, past: Sequence[Past], nodes: Sequence[Node], estimates: Estimates) -> list[str]:
    began = datetime.fromtimestamp(past[0].submitted_ms / 1000, UTC).isoformat(" ", "seconds")[:19]
    site = f"{sum(len(node.cards) for node in nodes):,} cards in {len(nodes):,} nodes"
    notes = [
        f"{table.file}: {len(past):,} past jobs from {began} on, replayed on {site}",
        "processor and host memory are not counted",
    ]
    notes += [f"left out: {count:,} {why}" for why, count in table.left_out]
    waited = recorded_waits(past)
    if waited is not None:
        notes.append(waited)
    over = [job.ran_ms > job.limit_ms for job in past if job.limit_ms is not None]
    if over:
        notes.append(f"time limits end jobs: {len(over):,} of {len(past):,} have one, {sum(over):,} met it")
    known = sum(job.estimate_ms is not None for job in past)
    if estimates is Estimates.RECORDED:
        notes.append(
            f"run times the planner was told: those recorded, known for {known:,} of {len(past):,} jobs"
        )
    elif estimates is not Estimates.NONE:
        notes.append(f"run times the planner was told: {estimates.value}")
    return [*notes, *table.notes]
