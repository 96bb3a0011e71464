"""Who is stopped or moved for whom, at the size of KAI-Scheduler's published scale tests: 500 x 8 cards.

One job: the time of one search on one core: running jobs looked through, victims chosen, members seated. Many
jobs, and consolidation: planner, commit and fold, again and again until all that came have started; victims
end and starts are confirmed at once. Theirs are end to end, with API server and binder, so the two are not
the same measurement; the column says so. How full their nodes were for consolidation is not published: here
as many one-card jobs as leave room for all pods run, on cards drawn at random. Times are seconds of CPU, and
so is the calibration, since this machine has other work.
Usage: bench_preemption.py [one] [many] [ROUNDS]
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from typing import Any, NamedTuple

from aliquot.catalog import load_catalog
from aliquot.core.charging import capacity_of
from aliquot.core.clearing import Clearing
from aliquot.core.commit import check
from aliquot.core.events import Ended, Granted, JobSubmitted, NodeJoined, Outcome, Started
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, Node
from aliquot.core.jobs import Job, Request
from aliquot.core.memo import Memo
from aliquot.core.planner import plan
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.records import JobRecord
from aliquot.core.settings import Defrag, Preemption, Settings
from aliquot.core.siting import Desk
from aliquot.core.slices import Vector
from aliquot.core.standing import Standing
from aliquot.core.steps import Kill
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


class Crowd(NamedTuple):
    """Many come at once: jobs, members of each, cards of a member; `running` one-card jobs are there."""

    name: str
    running: int
    coming: tuple[int, int, int]
    must_s: float | None
    theirs_s: float
    moves: bool = False


CROWDS = (
    Crowd("4,000 one-card jobs reclaim from 4,000", 4000, (4000, 1, 1), None, 694.5),
    Crowd("50 jobs of 10 x 8 reclaim from 4,000 one-card jobs", 4000, (50, 10, 8), None, 716.9),
    Crowd("consolidation for 41 jobs of 10 x 8, 720 one-card jobs", 720, (41, 10, 8), 10.0, 455.7, True),
)


def main() -> None:
    """Run, print, write."""
    words = sys.argv[1:]
    rounds = next((int(word) for word in words if word.isdigit()), 3)
    parts = [word for word in words if not word.isdigit()] or ["one", "many"]
    calibration = calibrate()
    if "one" in parts:
        measure_one(rounds, calibration)
    if "many" in parts:
        measure_many(calibration)


def measure_many(calibration: float) -> None:
    """The crowds: a table, and JSON."""
    rows = []
    for crowd in CROWDS:
        row = settle(crowd)
        row["scaled"] = scaled(row["seconds"], calibration)
        rows.append(row)
        print(row, flush=True)
    head = ("shape", "s", "scaled", "must", "plans", "longest plan, s", "stopped", "moved", "KAI, end to end")
    table = [
        (
            row["shape"],
            f"{row['seconds']:.2f}",
            f"{row['scaled']:.2f}",
            row["must"] or "-",
            row["plans"],
            f"{row['longest']:.2f}",
            row["stopped"],
            row["moved"],
            row["theirs"],
        )
        for row in rows
    ]
    title = f"Many jobs on 500 x 8 cards, seconds of CPU (calibration loop {calibration:.2f} s)"
    print_table(title, head, table)
    write_results("preemption_many", rows, calibration, seed=SEED)


def settle(crowd: Crowd) -> dict[str, Any]:
    """Plan, commit and fold until nothing more starts."""
    site = World()
    nodes = full_nodes(site)
    chance = random.Random(SEED)
    slots = [(node, at) for node in nodes for at in range(CARDS_EACH)]
    for number, (node, at) in enumerate(sorted(chance.sample(slots, crowd.running), key=slots.index)):
        job = Job(JobId(f"low-{number:05d}"), (Request(cards=1),), 0, number, "guest", movable=True)
        run(site, job, [placement(node, at, 1)], chance.randrange(HOUR))
    jobs, size, width = crowd.coming
    for number in range(jobs):
        members = (Request(cards=width),) * size
        coming = Job(JobId(f"high-{number:05d}"), members, HOUR, 10_000 + number, "owner", priority=100)
        site.apply(JobSubmitted(HOUR, coming))
    settings = Settings(
        policy=(("best-fit", 1.0),),
        queues=QUEUES,
        preemption=None if crowd.moves else Preemption(grace_ms=0),
        defrag=Defrag(moves_an_hour=CARDS_EACH * NODES, after_ms=0) if crowd.moves else None,
    )
    memo, now, counts, times, waiting = Memo(), HOUR + 600_000, Counter[str](), [], jobs
    while waiting:
        frozen = site.freeze()
        begin = time.process_time()
        decided = plan(frozen, settings, now, memo)
        events = check(decided, frozen, now).events
        site.apply_all(events)
        times.append(time.process_time() - begin)
        counts.update(type(event).__name__ for event in events)
        if not events:
            break
        waiting -= sum(isinstance(event, Granted) and event.job.startswith("high") for event in events)
        answer(site, now)
    assert not waiting, f"{waiting} of {crowd.name} did not start"
    return {
        "shape": crowd.name,
        "seconds": sum(times),
        "must": crowd.must_s,
        "plans": len(times),
        "longest": max(times),
        "stopped": counts["Evicting"],
        "moved": counts["Moved"],
        "theirs": crowd.theirs_s,
    }


def answer(site: World, now: int) -> None:
    """All that is to be done is done at once."""
    for step in site.outstanding():
        if isinstance(step, Kill):
            site.apply(Ended(now, step.job, step.attempt, Outcome.FAILED))
        else:
            site.apply(Started(now, step.job, step.attempt))


def measure_one(rounds: int, calibration: float) -> None:
    """One job at a time: a table, and JSON."""
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
    nodes = full_nodes(world)
    width, size = shape.running
    low, high = ("guest", "owner") if reclaiming else ("", "")
    slots = [(node, at) for node in nodes for at in range(0, CARDS_EACH, width)]
    number = 0
    while len(slots) >= size:
        places, slots = slots[:size], slots[size:]
        job = Job(JobId(f"low-{number:05d}"), (Request(cards=width),) * size, 0, number, low)
        run(world, job, [placement(node, at, width) for node, at in places], chance.randrange(HOUR))
        number += 1
    width, size = shape.coming
    job = Job(JobId("high"), (Request(cards=width),) * size, HOUR, number, high, priority=100)
    world.apply(JobSubmitted(HOUR, job))
    return world, world.jobs[job.id]


def full_nodes(world: World) -> list[Node]:
    """All nodes, which join `world`."""
    model = load_catalog().models()["G2"]
    nodes = []
    for at in range(NODES):
        name = f"node-{at:04d}"
        cards = tuple(Card(CardId(f"{name}-{card}"), model) for card in range(CARDS_EACH))
        nodes.append(Node(NodeId(SiteId("bench"), name), 96_000, 393_216, cards))
        world.apply(NodeJoined(0, nodes[-1]))
    return nodes


def run(world: World, job: Job, places: list[Placement], begun: int) -> None:
    """`job` runs since `begun`."""
    world.apply(JobSubmitted(0, job))
    world.apply(Granted(begun, job.id, 1, tuple(places)))
    world.apply(Started(begun, job.id, 1))


def placement(node: Node, first: int, width: int) -> Placement:
    """Whole cards of one node."""
    cards = node.cards[first : first + width]
    return Placement(
        node.id, tuple(card.uuid for card in cards), Vector(1000, cards[0].model.usable_mib, 1000), True
    )


if __name__ == "__main__":
    main()
