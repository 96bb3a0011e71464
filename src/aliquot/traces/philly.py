"""One month of the public Philly trace: a training cluster's jobs, on 80 nodes of 8 cards.

Source of the format: the Pollux artifact (OSDI'21, Apache-2.0), which carries the jobs of Jeon et al.,
ATC'19, as a table of submit time (local, without a zone), run time in s, cards, and virtual cluster. The
month is October 2017; the number of nodes was chosen to give a load of 0.92, it is not that of the cluster.
Up to 8 cards go on one node, more on whole nodes. The virtual clusters become queues; how much each was
promised is not in the table, so they have no quotas.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from aliquot.control.replaying import PhillyAsk
from aliquot.core.errors import NotFoundError
from aliquot.core.ids import JobId
from aliquot.core.jobs import Job
from aliquot.core.queues import Queue
from aliquot.core.workload import Offer, Scenario, Standing
from aliquot.traces.estimates import draw_estimates
from aliquot.traces.plain_site import UNNAMED_NOTE, Policies, gang, plain_nodes
from aliquot.traces.tables import broken_cell, number, read_table, whole

COLUMNS: Final = ("timestamp", "duration", "num_gpus", "cluster")
FIRST: Final = datetime(2017, 10, 1, tzinfo=UTC)
BEYOND: Final = datetime(2017, 11, 1, tzinfo=UTC)
NODES: Final = 80
CARDS_PER_NODE: Final = 8
DAY_MS: Final = 86_400_000
NOTE: Final = (
    f"the month of October 2017 on {NODES} nodes of {CARDS_PER_NODE} cards, a size chosen for a load of 0.92;"
    " virtual clusters are queues without quotas, since none are published"
)


class PhillyJob(msgspec.Struct, frozen=True):
    """One line of the table; ms from the beginning of the month."""

    line: int
    submitted_ms: int
    ran_ms: int
    cards: int
    cluster: str


def load_philly(folder: Path, ask: PhillyAsk, policies: Callable[[tuple[Queue, ...]], Policies]) -> Scenario:
    """The month as a scenario. `folder` holds `philly/philly.csv`; `policies` are made for its queues."""
    jobs = read_month(folder / "philly" / "philly.csv")
    if ask.days is not None:
        jobs = [job for job in jobs if job.submitted_ms < ask.days * DAY_MS]
    if ask.jobs is not None:
        jobs = jobs[: ask.jobs]
    estimates = draw_estimates(ask.estimates, [job.ran_ms for job in jobs], ask.seed)
    offers = tuple(
        Offer(
            Job(
                id=JobId(f"philly-{job.line}"),
                members=gang(job.cards, CARDS_PER_NODE),
                submitted_ms=job.submitted_ms,
                seq=seq,
                queue=job.cluster,
                estimate_ms=estimate,
            ),
            work_ms=job.ran_ms,
        )
        for seq, (job, estimate) in enumerate(zip(jobs, estimates, strict=True))
    )
    queues = tuple(Queue(name) for name in sorted({job.cluster for job in jobs}))
    return Scenario(
        name=f"philly October 2017, estimates {ask.estimates.value}",
        nodes=plain_nodes("philly", NODES, CARDS_PER_NODE),
        offers=offers,
        policies=policies(queues),
        standing=Standing.REPLAY,
        notes=(NOTE, UNNAMED_NOTE),
    )


def read_month(path: Path) -> list[PhillyJob]:
    """Jobs of the month by submit time, then as listed. A broken cell is a DocumentError that names it."""
    if not path.is_file():
        raise NotFoundError(f"no Philly trace: expected {path}")
    jobs = []
    for line, row in enumerate(read_table(path, COLUMNS), start=2):
        text = row["timestamp"]
        try:
            at = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            raise broken_cell(
                path, line, "timestamp", text, "a date and time such as 2017-10-09 07:01:55"
            ) from None
        if FIRST <= at < BEYOND:
            jobs.append(
                PhillyJob(
                    line,
                    round((at - FIRST).total_seconds() * 1000),
                    max(1, round(number(path, line, row, "duration") * 1000)),
                    whole(path, line, row, "num_gpus", least=1),
                    row["cluster"],
                )
            )
    return sorted(jobs, key=lambda job: job.submitted_ms)
