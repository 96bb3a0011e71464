"""Who is stopped for whom, at the size of KAI-Scheduler's published scale tests: 500 full nodes of 8 cards.

Times are of one search on one core: running jobs looked through, victims chosen, members seated. Theirs are
end to end, with API server and binder, so the two are not the same measurement; the column says so.
Usage: bench_preemption.py [ROUNDS]
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any, NamedTuple

from aliquot.catalog import load_catalog
from aliquot.core.charging import capacity_of
from aliquot.core.clearing import Clearing
from aliquot.core.events import Granted, JobSubmitted, NodeJoined, Started
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, Node
from aliquot.core.jobs import Job, Request
from aliquot.core.memo import Memo
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.records import JobRecord
from aliquot.core.settings import Preemption, Settings
from aliquot.core.siting import Desk
from aliquot.core.slices import Vector
from aliquot.core.standing import Standing
from aliquot.core.world import World
from bench.measure import calibrate, print_table, scaled, write_results

NODES = 500
CARDS_EACH = 8
HOUR = 3_600_000
SEED = 11
RULES = Preemption(most_victims=NODES * CARDS_EACH)
QUEUES = (
    Queue("owner", quotas=(Quota(CARDS, nominal=NODES * CARDS_EACH * 1000),)),
    Queue("guest", quotas=(Quota(CARDS, nominal=0),)),
)


class Shape(NamedTuple):
    """Who runs (cards of a job's member, members), who comes, and what KAI needs end to end, in seconds."""

    name: str
    running: tuple[int, int]
    coming: tuple[int, int]
    must_s: float
    theirs_s: float | None


SHAPES = (
    Shape("1 card, 4,000 one-card jobs running", (1, 1), (1, 1), 0.1, 13.9),
    Shape("8 cards, 4,000 one-card jobs running", (1, 1), (8, 1), 0.1, None),
    Shape("gang of 250 x 8, 4,000 one-card jobs running", (1, 1), (8, 250), 2.0, 102.0),
    Shape("gang of 500 x 8, 4,000 one-card jobs running", (1, 1), (8, 500), 4.0, 85.0),
    Shape("gang of 250 x 8, 125 gangs of 4 x 8 running", (8, 4), (8, 250), 2.0, None),
    Shape("gang of 2,000 x 1, 4,000 one-card jobs running", (1, 1), (1, 2000), 2.0, None),
)


def main() -> None:
    """Run, print, write."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    calibration = calibrate()
    rows = []
    for shape in SHAPES:
        for reclaiming in (False, True):
            row = measure(shape, reclaiming=reclaiming, rounds=rounds)
            row["scaled"] = scaled(row["seconds"], calibration)
            rows.append(row)
            print(row, flush=True)
    head = ("shape", "right", "s", "scaled", "must", "victims", "sets", "bounded", "KAI, end to end")
    table = [
        (
            row["shape"],
            row["right"],
            f"{row['seconds']:.3f}",
            f"{row['scaled']:.3f}",
            row["must"],
            row["victims"],
            row["sets"],
            row["bounded"],
            row["theirs"] or "-",
        )
        for row in rows
    ]
    title = f"Preemption on 500 x 8 cards, seconds on one core (calibration loop {calibration:.2f} s)"
    print_table(title, head, table)
    write_results("preemption", rows, calibration, seed=SEED)


def measure(shape: Shape, *, reclaiming: bool, rounds: int) -> dict[str, Any]:
    """The least of `rounds` searches, each by a plan of its own."""
    site, waiting = fill(shape, reclaiming=reclaiming)
    settings = Settings(policy=(("best-fit", 1.0),), queues=QUEUES if reclaiming else (), preemption=RULES)
    memo, frozen = Memo(), site.freeze()
    best, found = float("inf"), None
    for _ in range(rounds):
        desk = Desk(frozen, settings, memo)
        tree, book = None, None
        if reclaiming:
            standing = Standing(frozen, settings, capacity_of(frozen, settings))
            standing.sync(frozen, HOUR)
            tree, book = standing.tree, standing.book
        begin = time.process_time()
        found = Clearing(desk, frozen, RULES, tree, book, HOUR).clear(waiting)
        best = min(best, time.process_time() - begin)
    assert found is not None
    return {
        "shape": shape.name,
        "right": "reclaim" if reclaiming else "priority",
        "seconds": best,
        "must": shape.must_s,
        "victims": len(found.victims),
        "sets": found.alternatives,
        "bounded": found.is_bounded,
        "theirs": shape.theirs_s,
    }


def fill(shape: Shape, *, reclaiming: bool) -> tuple[World, JobRecord]:
    """A full site, jobs started at random in the last hour, and the one that comes."""
    chance = random.Random(SEED)
    world = World()
    model = load_catalog().models()["G2"]
    nodes = []
    for at in range(NODES):
        name = f"node-{at:04d}"
        cards = tuple(Card(CardId(f"{name}-{card}"), model) for card in range(CARDS_EACH))
        nodes.append(Node(NodeId(SiteId("bench"), name), 96_000, 393_216, cards))
        world.apply(NodeJoined(0, nodes[-1]))
    width, size = shape.running
    low, high = ("guest", "owner") if reclaiming else ("", "")
    slots = [(node, at) for node in nodes for at in range(0, CARDS_EACH, width)]
    number = 0
    while len(slots) >= size:
        places, slots = slots[:size], slots[size:]
        job = Job(JobId(f"low-{number:05d}"), (Request(cards=width),) * size, 0, number, low)
        begun = chance.randrange(HOUR)
        world.apply(JobSubmitted(0, job))
        world.apply(Granted(begun, job.id, 1, tuple(placement(node, at, width) for node, at in places)))
        world.apply(Started(begun, job.id, 1))
        number += 1
    width, size = shape.coming
    job = Job(JobId("high"), (Request(cards=width),) * size, HOUR, number, high, priority=100)
    world.apply(JobSubmitted(HOUR, job))
    return world, world.jobs[job.id]


def placement(node: Node, first: int, width: int) -> Placement:
    """Whole cards of one node."""
    cards = node.cards[first : first + width]
    return Placement(
        node.id, tuple(card.uuid for card in cards), Vector(1000, cards[0].model.usable_mib, 1000), True
    )


if __name__ == "__main__":
    main()
