"""Decisions per second at 1,200 and 12,000 nodes of 8 cards, through plan, commit and fold, on one core.

The demand is the default openb list, the policy and its parameters are those of the quality table. Filling:
jobs arrive until 90 % of all cards are allocated. Steady: at 90 %, each arrival follows the end of a random
running job. `per turn` jobs arrive in one turn of the loop: 1 is the worst case, a turn for every decision.
Usage: bench_scale.py [POLICY ...]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from aliquot.catalog import load_catalog
from aliquot.core import commit
from aliquot.core.events import (
    Ended,
    EpochBegan,
    Granted,
    JobCancelled,
    JobSubmitted,
    NodeJoined,
    Outcome,
    Started,
)
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, Node
from aliquot.core.jobs import Job, Request
from aliquot.core.planner import Memo, plan
from aliquot.core.settings import Settings
from aliquot.core.steps import Wait
from aliquot.core.world import World
from aliquot.traces.openb import OpenbTrace, asked_milli
from bench.measure import calibrate, peak_mib, print_table, scaled, trace_folder, write_results

POLICIES = ("future-packing", "fgd", "best-fit")
SIZES = (1_200, 12_000)
STEADY = 10_000
LEVEL = 0.9
SEED = 7


class Site:
    """A world with its planner, fed by hand."""

    def __init__(self, nodes: int, policy: str, demand: Sequence[tuple[Request, int]]) -> None:
        self.world, self.memo = World(), Memo()
        self.settings = Settings(policy=((policy, 1.0),))
        self.capacity = nodes * 8 * 1000
        self.allocated = 0
        self.milli: dict[JobId, int] = {}
        self.running: list[JobId] = []
        self._seq = 0
        self._random = random.Random(SEED)
        self._requests = [request for request, _ in demand]
        self._weights = [count for _, count in demand]
        model = load_catalog().models()["G2"]
        self.world.apply(EpochBegan(0, 1, 0, tuple(demand)))
        for at in range(nodes):
            name = f"node-{at:05d}"
            cards = tuple(Card(CardId(f"{name}-{card}"), model) for card in range(8))
            self.world.apply(NodeJoined(0, Node(NodeId(SiteId("bench"), name), 96_000, 393_216, cards)))

    def turn(self, arrivals: int, ends: int) -> int:
        """One turn with that many arrivals and ends; how many decisions it made (a Wait is one too)."""
        events: list[Ended | JobSubmitted] = []
        for _ in range(min(ends, len(self.running))):
            at = self._random.randrange(len(self.running))
            self.running[at], self.running[-1] = self.running[-1], self.running[at]
            job = self.running.pop()
            self.allocated -= self.milli.pop(job)
            events.append(Ended(0, job, 1, Outcome.SUCCEEDED))
        for request in self._random.choices(self._requests, self._weights, k=arrivals):
            self._seq += 1
            job = JobId(f"job-{self._seq:07d}")
            self.milli[job] = asked_milli(request)
            events.append(JobSubmitted(0, Job(job, (request,), 0, self._seq)))
        self.world.apply_all(events)
        frozen = self.world.freeze()
        decided = plan(frozen, self.settings, 0, self.memo)
        verdict = commit.check(decided, self.world.freeze(), 0)
        self.world.apply_all(verdict.events)
        for event in verdict.events:
            assert isinstance(event, Granted)
            self.running.append(event.job)
            self.allocated += self.milli[event.job]
            self.world.apply(Started(0, event.job, 1))
        for step in decided.steps:
            if isinstance(step, Wait):
                self.world.apply(JobCancelled(0, step.job))
                del self.milli[step.job]
        return len(decided.steps)


def main() -> None:
    """Run, print, write."""
    policies = tuple(sys.argv[1:]) or POLICIES
    calibration = calibrate()
    demand = OpenbTrace(Path(trace_folder()), "default", 42, load_catalog().models()).demand()
    rows = []
    for policy in policies:
        for nodes in SIZES:
            rows.append(measure(nodes, policy, demand))
            print(rows[-1], flush=True)
    faster = scaled(1, calibration)
    head = (
        "policy",
        "nodes",
        "filling/s",
        "us",
        "steady/s",
        "steady/s, 1 per turn",
        "us",
        "scaled filling, steady",
        "peak MiB",
    )
    table = [
        (
            row["policy"],
            row["nodes"],
            f"{row['filling']:.0f}",
            f"{1e6 / row['filling']:.0f}",
            f"{row['steady_32']:.0f}",
            f"{row['steady_1']:.0f}",
            f"{1e6 / row['steady_1']:.0f}",
            f"{row['filling'] / faster:.0f}, {row['steady_1'] / faster:.0f}",
            row["peak_mib"],
        )
        for row in rows
    ]
    print_table(f"Decisions per second, one core (calibration loop {calibration:.2f} s)", head, table)
    write_results("scale", rows, calibration, level=LEVEL, seed=SEED)


def measure(nodes: int, policy: str, demand: Sequence[tuple[Request, int]]) -> dict[str, float | int | str]:
    """One size under one policy."""
    warm = Site(16, policy, demand)
    for _ in range(20):
        warm.turn(8, 2)
    site = Site(nodes, policy, demand)
    site.turn(1, 0)
    decisions, begin = 0, time.process_time()
    while site.allocated < LEVEL * site.capacity:
        decisions += site.turn(32, 0)
    filling = decisions / (time.process_time() - begin)
    row: dict[str, float | int | str] = {"policy": policy, "nodes": nodes, "filling": filling}
    row["filled"] = decisions
    for per_turn in (32, 1):
        decisions, begin = 0, time.process_time()
        for _ in range(STEADY // per_turn):
            decisions += site.turn(per_turn, per_turn)
        row[f"steady_{per_turn}"] = decisions / (time.process_time() - begin)
    row["peak_mib"] = peak_mib()
    return row


if __name__ == "__main__":
    main()
