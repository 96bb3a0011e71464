"""How the site was divided among its queues: quotas met, borrowing, and Jain's index, never alone.

Per queue and resource, over the window, from the integrals of `claims`:

    satisfaction   min(usage, nominal, wanted) / min(nominal, wanted); 1 where nothing of its own was wanted
    borrowed       usage beyond nominal / usage; unknown where nothing was used
    got            usage / min(entitled, wanted), of the resource it got most of: what Jain's index compares

A queue of nominal 4 that wants 6 and uses 3 for an hour, then 6 for another: met 3 + 4 of due 4 + 4 is 0.875,
borrowed 2 of 9 is 0.22, got 9 of 8 is 1.125.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aliquot.core.queueing.tree import UNBOUNDED
from aliquot.core.report.claims import ClaimReading, QueueReading
from aliquot.core.report.classes import ClassScore, score_class
from aliquot.core.report.readings import CellReading, Readings
from aliquot.core.report.stats import jain, ratio


class QuotaScore(msgspec.Struct, frozen=True):
    """One queue in one resource; amounts in its unit, means over the window. `nominal` is that at the end."""

    resource: str
    nominal: int | None  # None: as much as there is
    used_mean: float | None
    wanted_mean: float | None
    satisfaction: float
    borrowed: float | None
    overdrawn_ms: int = 0


class QueueScore(msgspec.Struct, frozen=True):
    """One queue. `inner`: its figures include the queues below it.

    `satisfaction`, `borrowed` and `overdrawn_ms` are those of the worst resource, None without any quota on
    the site. `overdrawn_ms`: for how long it used more than it may, borrowing included.
    """

    name: str
    inner: bool
    scores: ClassScore
    satisfaction: float | None
    borrowed: float | None
    got: float | None
    quotas: tuple[QuotaScore, ...] = ()
    overdrawn_ms: int | None = None
    crowd_ms: int = 0  # its jobs waited or were slowed while nearly all cards were in use


class Division(msgspec.Struct, frozen=True):
    """All queues, and all of them together."""

    queues: tuple[QueueScore, ...] = ()
    satisfaction: float | None = None
    borrowed: float | None = None
    jain: float | None = None
    overdrawn_ms: int | None = None  # of the queue where it was longest


def divide(readings: Readings) -> Division:
    """The queues of `readings`. Where there is one queue and no quota, nothing is divided."""
    length, stated = readings.window.length_ms, readings.stated
    cells_of: dict[str, list[CellReading]] = {}
    for cell in readings.cells:
        cells_of.setdefault(cell.key.queue, []).append(cell)
    queues, crowds = [], dict(readings.crowds)
    for queue in readings.queues:
        cells = [cell for name in queue.names for cell in cells_of.get(name, ())]
        quotas = tuple(_quota(claim, length) for claim in queue.claims) if stated else ()
        queues.append(
            QueueScore(
                name=queue.name,
                inner=queue.inner,
                scores=score_class(queue.name, cells),
                satisfaction=min((quota.satisfaction for quota in quotas), default=None),
                borrowed=_most([quota.borrowed for quota in quotas]),
                got=got_of(queue),
                quotas=quotas,
                overdrawn_ms=max((quota.overdrawn_ms for quota in quotas), default=None),
                crowd_ms=max((crowds.get(name, 0) for name in queue.names), default=0),
            )
        )
    leaves = [queue for queue in readings.queues if not queue.inner]
    got = [part for queue in leaves if (part := got_of(queue)) is not None]
    totals = _totals(leaves) if stated else []
    return Division(
        queues=tuple(queues),
        satisfaction=min((satisfaction(claim) for claim in totals), default=None),
        borrowed=_most([borrowed(claim) for claim in totals]),
        jain=jain(got) if len(got) > 1 else None,
        overdrawn_ms=max(
            (queue.overdrawn_ms for queue in queues if queue.overdrawn_ms is not None), default=None
        ),
    )


def satisfaction(claim: ClaimReading) -> float:
    """Of what a queue wanted of its own, the part it got."""
    met = ratio(claim.met, claim.due)
    return 1.0 if met is None else met


def borrowed(claim: ClaimReading) -> float | None:
    """Of what a queue used, the part beyond its own."""
    return ratio(claim.used - claim.met, claim.used)


def got_of(queue: QueueReading) -> float | None:
    """Usage over what it was entitled to and wanted, of the resource it got most of; None without a claim."""
    return _most([ratio(claim.used, claim.due) for claim in queue.claims])


def _quota(claim: ClaimReading, length: int) -> QuotaScore:
    return QuotaScore(
        resource=str(claim.resource),
        nominal=None if claim.entitled >= UNBOUNDED else claim.entitled,
        used_mean=ratio(claim.used, length),
        wanted_mean=ratio(claim.wanted, length),
        satisfaction=satisfaction(claim),
        borrowed=borrowed(claim),
        overdrawn_ms=claim.over_ms,
    )


def _totals(leaves: Sequence[QueueReading]) -> list[ClaimReading]:
    """All leaves together, by resource."""
    sums: dict[str, ClaimReading] = {}
    for claim in (claim for queue in leaves for claim in queue.claims):
        before = sums.get(str(claim.resource), ClaimReading(claim.resource, 0, 0, 0, 0, 0))
        sums[str(claim.resource)] = ClaimReading(
            claim.resource,
            before.entitled + claim.entitled,
            before.used + claim.used,
            before.wanted + claim.wanted,
            before.met + claim.met,
            before.due + claim.due,
        )
    return list(sums.values())


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
