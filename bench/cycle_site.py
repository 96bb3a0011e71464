"""A large busy site, made up from a seed: what bench_cycle plans on.

4,000 machines of 8 cards in four models, 140,000 running jobs (gangs, whole cards, mostly slices) and 10,000
waiting ones in 100 queues of 10 departments. Sizes, estimates, priorities and queues are drawn from fixed
distributions; nothing of it is measured at a real site.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from aliquot.catalog import load_catalog
from aliquot.core.events import EpochBegan, Event, Granted, JobSubmitted, NodeJoined, Started
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import CardModel, Node, Profile
from aliquot.core.jobs import Job, Request, Stop
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.slices import Ask, Cut, Vector, resolve_ask

HOUR = 3_600_000
NOW = 48 * HOUR
MACHINES = ("hgx-h100-8", "dgx-a100-640", "pcie-l40s-8", "dgx-1-v100-32")
SLICES = (100, 125, 150, 200, 250)
WIDE = ((4, 8, 100), (1, 8, 100), (1, 4, 300), (1, 2, 600))  # members, cards of each, jobs
STOPS = (
    Stop(),
    Stop(checkpoint_ms=HOUR // 2, restart_ms=60_000),
    Stop(checkpoint_ms=HOUR, restart_ms=120_000),
)


class Size(NamedTuple):
    """How much there is."""

    nodes: int = 4_000
    running: int = 140_000
    waiting: int = 10_000
    queues: int = 100


class Spot(NamedTuple):
    """A card of a machine."""

    node: Node
    card: int


class Crowd:
    """Draws jobs. The same seed gives the same jobs in the same order."""

    def __init__(self, seed: int, size: Size) -> None:
        self.chance = random.Random(seed)
        self.size = size
        self.names = [f"dept-{at % 10}/team-{at:02d}" for at in range(size.queues)]
        self._weights = [1.0 / (1 + at % 10) for at in range(size.queues)]
        self._seq = 0

    def slice_of(self) -> Request:
        """A part of one card of any model."""
        ask = Ask(Cut.SHARED, compute_milli=self.chance.choice(SLICES))
        return Request(1000, 2048, 1, ask)

    def wide(self, cards: int) -> Request:
        """Whole cards of one machine; now and then of one model only."""
        models: tuple[str, ...] = ()
        if self.chance.random() < 0.3:
            models = (self.chance.choice(("H100-SXM5-80GB", "A100-SXM4-80GB", "L40S")),)
        return Request(4000 * cards, 16_384 * cards, cards, profile=Profile(models=models))

    def job(self, members: tuple[Request, ...], submitted: int, priority: int) -> Job:
        """A job of somebody, with an estimate most of the time."""
        chance = self.chance
        self._seq += 1
        estimate = None if chance.random() < 0.03 else int(HOUR * 2 ** chance.uniform(-2, 6.5))
        (queue,) = chance.choices(self.names, self._weights)
        return Job(
            JobId(f"job-{self._seq:07d}"),
            members,
            submitted,
            self._seq,
            queue,
            priority,
            estimate_ms=estimate,
            stop=chance.choice(STOPS),
        )

    def coming(self, submitted: int) -> Job:
        """One that waits: a slice (60 %), a card, 2, 4 or 8 cards, or a gang."""
        kind = self.chance.random()
        priority = self.chance.choices((0, 5, 10), (90, 8, 2))[0]
        if kind < 0.6:
            return self.job((self.slice_of(),), submitted, priority)
        if kind < 0.95:
            cards = self.chance.choices((1, 2, 4, 8), (60, 20, 12, 8))[0]
            return self.job((self.wide(cards),), submitted, priority)
        members, cards = self.chance.choice(((2, 8), (4, 8), (8, 8), (4, 1), (8, 2)))
        return self.job((self.wide(cards),) * members, submitted, priority)


def machines(size: Size) -> list[Node]:
    """In four models, in turn."""
    shapes = [load_catalog().machines()[name] for name in MACHINES]
    found = []
    for at in range(size.nodes):
        shape, name = shapes[at % len(shapes)], f"node-{at:04d}"
        cards = tuple(replace(card, uuid=CardId(f"{name}-{at}")) for at, card in enumerate(shape.cards))
        rack = f"rack-{at // 16:03d}"
        found.append(replace(shape, id=NodeId(SiteId("site"), name), cards=cards, rack=rack))
    return found


def history(crowd: Crowd) -> Iterator[Event]:
    """Everything that has happened up to NOW."""
    nodes = machines(crowd.size)
    for node in nodes:
        yield NodeJoined(0, node)
    runs = list(running(crowd, nodes))
    span = 24 * HOUR
    waits = [crowd.coming(NOW - crowd.chance.randrange(span)) for _ in range(crowd.size.waiting)]
    mix = Counter(request for job in (*(job for job, _ in runs), *waits) for request in job.members)
    yield EpochBegan(0, 1, 0, tuple(mix.most_common()))
    for job, _ in runs:
        yield JobSubmitted(job.submitted_ms, job)
    for job, places in runs:
        begun = begin_of(job, crowd)
        yield Granted(begun, job.id, 1, places)
        yield Started(begun, job.id, 1)
    for job in waits:
        yield JobSubmitted(job.submitted_ms, job)


def begin_of(job: Job, crowd: Crowd) -> int:
    """Within its estimate before NOW; one in twenty has outrun it."""
    estimate = job.estimate_ms or 24 * HOUR
    most = estimate * 2 if crowd.chance.random() < 0.05 else estimate
    return max(job.submitted_ms, NOW - 1 - int(most * crowd.chance.random()))


def running(crowd: Crowd, nodes: list[Node]) -> Iterator[tuple[Job, tuple[Placement, ...]]]:
    """Wide jobs on machines of their own, then slices, six or so to a card, until all cards are taken."""
    scale = crowd.size.nodes / 4_000
    left = crowd.chance.sample(nodes, len(nodes))
    wanted = crowd.size.running
    spots: list[Spot] = []
    for members, cards, jobs in WIDE:
        for _ in range(int(jobs * scale)):
            places = []
            for _ in range(members):
                if len(spots) < cards:
                    node = left.pop()
                    spots = [Spot(node, at) for at in range(len(node.cards))]
                places.append(whole(spots[:cards]))
                spots = spots[cards:]
            yield crowd.job((wide_of(cards),) * members, 0, priority(crowd)), tuple(places)
            wanted -= 1
        spots = []
    cards_left = [Spot(node, at) for node in left for at in range(len(node.cards))]
    crowd.chance.shuffle(cards_left)
    for at, spot in enumerate(cards_left):
        if wanted <= len(cards_left) - at:
            yield crowd.job((wide_of(1),), 0, priority(crowd)), (whole([spot]),)
            wanted -= 1
            continue
        free = 1000
        for milli in iter(lambda: crowd.chance.choice(SLICES), None):
            if milli > free or wanted <= len(cards_left) - at - 1:
                break
            free -= milli
            wanted -= 1
            request = Request(1000, 2048, 1, Ask(Cut.SHARED, compute_milli=milli))
            yield crowd.job((request,), 0, priority(crowd)), (part(spot, request),)


def wide_of(cards: int) -> Request:
    """Whole cards of any model."""
    return Request(4000 * cards, 16_384 * cards, cards)


def priority(crowd: Crowd) -> int:
    """What runs has mostly come first by its priority."""
    return crowd.chance.choices((0, 5, 10), (5, 15, 80))[0]


def whole(spots: list[Spot]) -> Placement:
    """All of `spots`, which are of one machine."""
    node = spots[0].node
    cards = tuple(node.cards[spot.card] for spot in spots)
    vector = Vector(1000, model_of(spots[0]).usable_mib, 1000)
    uuids = tuple(card.uuid for card in cards)
    return Placement(node.id, uuids, vector, True, 4000 * len(cards), 16_384 * len(cards))


def part(spot: Spot, request: Request) -> Placement:
    """What `request` means on the card."""
    vector = resolve_ask(request.ask, model_of(spot).usable_mib)
    assert vector is not None
    uuid = spot.node.cards[spot.card].uuid
    return Placement(spot.node.id, (uuid,), vector, False, request.cpu_milli, request.host_mib)


def model_of(spot: Spot) -> CardModel:
    """Of the card."""
    return spot.node.cards[spot.card].model


def queues(crowd: Crowd, used_milli: dict[str, int]) -> tuple[Queue, ...]:
    """Each team is promised nine tenths of what it uses and may borrow a quarter more; weights differ."""
    found = []
    for at, name in enumerate(crowd.names):
        nominal = used_milli.get(name, 0) * 9 // 10
        quota = Quota(CARDS, nominal=nominal, borrowing=max(8000, nominal // 4))
        found.append(Queue(name, quotas=(quota,), weight=(1000, 2000, 500)[at % 3]))
    return tuple(found)
