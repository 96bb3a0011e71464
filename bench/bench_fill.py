"""KAI-Scheduler's published shapes on the core: filling a site, a wide gang, and the verdict "unschedulable".

500 nodes of 8 cards (512 for a gang of 512 whole nodes): 4,000 one-card jobs submitted at once; a gang of
512, of one card and of a whole node each, with and without a preferred rack; and 10 x 8 cards on the full
site, with its reasons. Seconds of process CPU of plan, check and fold. Theirs are end to end, with an API
server and a binder, so the two are not the same measurement.

Usage: bench_fill.py [ROUNDS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from aliquot.catalog import load_catalog
from aliquot.core import commit
from aliquot.core.events import JobSubmitted, NodeJoined, Started
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, Node
from aliquot.core.jobs import Job, Request
from aliquot.core.memo import Memo
from aliquot.core.planner import explain_wait, plan
from aliquot.core.settings import Backfill, Settings
from aliquot.core.steps import Gate, Wait
from aliquot.core.wishes import Level, Wish
from aliquot.core.world import World
from bench.measure import calibrate, print_table, scaled, write_results

RACK = 32
NEAR = Wish(preferred=Level.RACK)
POLICIES = {
    "future-packing": Settings(),
    "best-fit, backfill": Settings(policy=(("best-fit", 1.0),), backfill=Backfill()),
}


class Site:
    """Empty nodes, and one memo that has seen a small plan."""

    def __init__(self, settings: Settings, nodes: int) -> None:
        self.settings, self.world, self.memo = settings, World(), Memo()
        model = load_catalog().models()["G2"]
        for at in range(nodes):
            name = f"node-{at:04d}"
            cards = tuple(Card(CardId(f"{name}-{card}"), model) for card in range(8))
            node = Node(NodeId(SiteId("bench"), name), 96_000, 393_216, cards, rack=f"rack-{at // RACK}")
            self.world.apply(NodeJoined(0, node))
        self._seq = 0

    def submit(self, members: tuple[Request, ...], wish: Wish | None = None) -> JobId:
        """One more waits."""
        self._seq += 1
        name = JobId(f"job-{self._seq:05d}")
        job = Job(name, members, 0, self._seq, estimate_ms=3_600_000, wish=wish)
        self.world.apply(JobSubmitted(0, job))
        return job.id

    def turn(self) -> int:
        """Plan, check, fold; how many were granted."""
        decided = plan(self.world.freeze(), self.settings, 0, self.memo)
        verdict = commit.check(decided, self.world.freeze(), 0)
        assert not verdict.refused
        before = len(self.world.grants)
        self.world.apply_all(verdict.events)
        return len(self.world.grants) - before

    def fill(self) -> None:
        """4,000 one-card jobs, all started."""
        for _ in range(4_000):
            self.submit((Request(cards=1),))
        assert self.turn() == 4_000
        for job in list(self.world.grants):
            self.world.apply(Started(0, job, 1))


def filling(settings: Settings) -> float:
    """All 4,000 at once."""
    site = Site(settings, 500)
    began = time.process_time()
    site.fill()
    return time.process_time() - began


def gang(nodes: int, cards: int, wish: Wish | None) -> Callable[[Settings], float]:
    """512 members of `cards` each."""

    def run(settings: Settings) -> float:
        site = Site(settings, nodes)
        site.submit((Request(cards=cards),) * 512, wish)
        began = time.process_time()
        assert site.turn() == 1
        return time.process_time() - began

    return run


def verdict(settings: Settings) -> float:
    """10 x 8 cards where all are taken: one plan, and the reasons."""
    site = Site(settings, 500)
    site.fill()
    job = site.submit((Request(cards=8),) * 10)
    began = time.process_time()
    assert site.turn() == 0
    wait: Wait = explain_wait(site.world.freeze(), settings, job, site.memo, 0)
    seconds = time.process_time() - began
    assert wait.gate in {Gate.FIT, Gate.GANG, Gate.FRAGMENTATION}
    assert sum(reason.nodes for reason in wait.reasons) == 500
    return seconds


SHAPES: tuple[tuple[str, Callable[[Settings], float], float, float], ...] = (
    ("4,000 one-card jobs at once", filling, 4.0, 397.8),
    ("gang of 512 x 1 on 500 nodes", gang(500, 1, None), 1.0, 49.4),
    ("gang of 512 x 8 on 512 nodes", gang(512, 8, None), 1.0, 49.4),
    ("gang of 512 x 1, preferred rack", gang(500, 1, NEAR), 1.0, 48.7),
    ("gang of 512 x 8, preferred rack", gang(512, 8, NEAR), 1.0, 48.7),
    ("unschedulable: 10 x 8 cards, full site", verdict, 0.05, 249.5),
)


def main() -> None:
    """Run, print, write."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rows: list[dict[str, Any]] = []
    for policy, settings in POLICIES.items():
        for shape, run, must, theirs in SHAPES:
            run(settings)  # what is compiled is loaded
            loops, seconds = [], []
            for _ in range(rounds):
                loops.append(calibrate(1))
                seconds.append(run(settings))
            row = {
                "shape": shape,
                "policy": policy,
                "median_s": round(median(seconds), 4),
                "worst_s": round(max(seconds), 4),
                "scaled_s": round(scaled(median(seconds), median(loops)), 4),
                "must_s": must,
                "theirs_s": theirs,
            }
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    print_table("KAI's shapes, s of CPU", list(rows[0]), [list(row.values()) for row in rows])
    write_results("fill", rows, median(loops))


if __name__ == "__main__":
    main()
