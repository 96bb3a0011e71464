"""Kueue's public performance shapes, made anew: thousands of workloads in queues that borrow.

Source of the numbers: the peer's own scheduler performance tests. A queue has a nominal quota of 20 cpu and
may borrow 100 more from its cohort; each queue gets, for every class, one workload each `interval_ms` until
there are `count`. Work takes its run time and nothing else. Not made here: an API server, and the limit of
50 calls a second that their clients run under, which is why their published admissions a second are a bound
of that, and not of a decision core.

What is cpu there is cards here, since quotas count cards: one cpu is one card (`baseline`, `large`; a
workload of 20 is four parts of 5) or a tenth of one (`topology`, where a workload is 2, 4 or 8 pods). Sites
are as large as the quotas together; that of `topology` is as published, 640 nodes in 10 racks, far larger
than the quotas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from aliquot.control.naming import not_found
from aliquot.control.replaying import KueueAsk
from aliquot.core.ids import JobId
from aliquot.core.inventory import Node
from aliquot.core.jobs import Job, Request
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.slices import Ask, Cut
from aliquot.core.units import FULL
from aliquot.core.wishes import Level, Wish
from aliquot.core.workload import Offer, Scenario, Standing
from aliquot.traces.plain_site import UNNAMED_NOTE, WHOLE, Policies, plain_nodes

NOMINAL_CPU: Final = 20
BORROWING_CPU: Final = 100
NODE_CARDS: Final = 10
REQUIRED: Final = Wish(required=Level.RACK)
PREFERRED: Final = Wish(preferred=Level.RACK)


def balanced(pods: int) -> Wish:
    """Slices of so many pods, over two racks at least."""
    return Wish(balanced=Level.RACK, slice=pods, over=2)


class Kind(msgspec.Struct, frozen=True):
    """One class of workloads of every queue. `pods` members of `cards` cards, each giving `milli`."""

    name: str
    count: int
    interval_ms: int
    run_ms: int
    priority: int
    pods: int
    cards: int
    milli: int
    wishes: tuple[tuple[Wish, int], ...] = ()  # how many of them have each, in turn; none: no wishes


class Shape(msgspec.Struct, frozen=True):
    """One public shape, and what its owners measured with an API server and 50 calls a second."""

    cohorts: int
    queues: int  # of each cohort
    kinds: tuple[Kind, ...]
    cpu_milli: int  # milli-cards that stand for one cpu
    nodes: int
    racks: int
    published: str
    caveat: str = ""


SHAPES: Final[dict[str, Shape]] = {
    "baseline": Shape(
        cohorts=5,
        queues=6,
        kinds=(
            Kind("small", 350, 100, 200, 50, pods=1, cards=1, milli=FULL),
            Kind("medium", 100, 500, 500, 100, pods=1, cards=5, milli=FULL),
            Kind("large", 50, 1200, 1000, 200, pods=4, cards=5, milli=FULL),
        ),
        cpu_milli=FULL,
        nodes=60,
        racks=1,
        published="15,000 workloads in 351.1 s (42.7 a second), mean usage of the queues 55.9 %",
    ),
    "topology": Shape(
        cohorts=5,
        queues=6,
        kinds=(
            Kind(
                *("small", 350, 100, 200, 50),
                pods=2,
                cards=1,
                milli=50,
                wishes=((REQUIRED, 120), (PREFERRED, 120), (balanced(1), 110)),
            ),
            Kind(
                *("medium", 100, 500, 500, 100),
                pods=4,
                cards=1,
                milli=125,
                wishes=((REQUIRED, 34), (PREFERRED, 33), (balanced(2), 33)),
            ),
            Kind(
                *("large", 50, 1200, 1000, 200),
                pods=8,
                cards=1,
                milli=250,
                wishes=((REQUIRED, 17), (PREFERRED, 17), (balanced(4), 16)),
            ),
        ),
        cpu_milli=100,
        nodes=640,
        racks=10,
        published="15,000 workloads in 401.5 s (37.4 a second), mean usage of the queues 62.4 %",
        caveat="a node has 10 cards for 100 cpu, theirs 96; the three wishes for racks take turns within a"
        " class, and balanced ones ask for two racks at least",
    ),
    "large": Shape(
        cohorts=10,
        queues=100,
        kinds=(
            Kind("small", 35, 60, 150, 50, pods=1, cards=1, milli=FULL),
            Kind("medium", 11, 300, 350, 100, pods=1, cards=5, milli=FULL),
            Kind("large", 4, 700, 700, 200, pods=4, cards=5, milli=FULL),
        ),
        cpu_milli=FULL,
        nodes=2000,
        racks=1,
        published="50,000 workloads in 1,179.4 s (42.4 a second), mean usage of the queues 38.6 %",
    ),
}


def load_kueue(ask: KueueAsk, policies: Callable[[tuple[Queue, ...]], Policies]) -> Scenario:
    """One shape as a scenario; `policies` are made for its queues. Raises NotFoundError for another name."""
    shape = SHAPES.get(ask.shape)
    if shape is None:
        raise not_found("shape", ask.shape, SHAPES)
    offers = make_offers(shape)[: ask.jobs]
    queued = f"{shape.cohorts * shape.queues:,} queues in {shape.cohorts} cohorts"
    card = f"a cpu there is {shape.cpu_milli / FULL:g} card here"
    notes = [
        f"made after Kueue's public performance shape {ask.shape!r}: {queued}; {card}",
        f"theirs, end to end with an API server and clients limited to 50 calls a second: {shape.published}",
        UNNAMED_NOTE,
    ]
    return Scenario(
        name=f"kueue {ask.shape}",
        nodes=make_nodes(shape),
        offers=offers,
        policies=policies(make_queues(shape)),
        standing=Standing.WHAT_IF,
        notes=tuple(notes) + ((shape.caveat,) if shape.caveat else ()),
    )


def make_queues(shape: Shape) -> tuple[Queue, ...]:
    """Cohorts, then their queues, in order. A cohort has what its queues have and borrows from no other."""
    alone = Quota(CARDS, borrowing=0)
    quota = Quota(CARDS, nominal=NOMINAL_CPU * shape.cpu_milli, borrowing=BORROWING_CPU * shape.cpu_milli)
    names = tuple(_names(shape))
    cohorts = dict.fromkeys(name.partition("/")[0] for name in names)
    return (
        *(Queue(name, quotas=(alone,)) for name in cohorts),
        *(Queue(name, quotas=(quota,)) for name in names),
    )


def make_offers(shape: Shape) -> tuple[Offer, ...]:
    """Every workload by the time it is made, then by queue, then by class."""
    made = sorted(
        (
            (number * kind.interval_ms, at, order, number)
            for at in range(shape.cohorts * shape.queues)
            for order, kind in enumerate(shape.kinds)
            for number in range(kind.count)
        )
    )
    names = list(_names(shape))
    members = [_members(kind) for kind in shape.kinds]
    wishes = [_wishes(kind) for kind in shape.kinds]
    return tuple(
        Offer(
            Job(
                id=JobId(f"{names[at].replace('/', '-')}-{shape.kinds[order].name}-{number}"),
                members=members[order],
                submitted_ms=when,
                seq=seq,
                queue=names[at],
                priority=shape.kinds[order].priority,
                wish=wishes[order][number],
            ),
            work_ms=shape.kinds[order].run_ms,
        )
        for seq, (when, at, order, number) in enumerate(made)
    )


def make_nodes(shape: Shape) -> tuple[Node, ...]:
    """The nodes, evenly over the racks, rack by rack."""
    nodes = plain_nodes("kueue", shape.nodes, NODE_CARDS)
    if shape.racks == 1:
        return nodes
    each = shape.nodes // shape.racks
    return tuple(msgspec.structs.replace(node, rack=f"rack-{at // each}") for at, node in enumerate(nodes))


def _names(shape: Shape) -> Iterator[str]:
    """Digits are padded so that names sort as numbers do."""
    wide = (len(str(shape.cohorts - 1)), len(str(shape.queues - 1)))
    for cohort in range(shape.cohorts):
        for queue in range(shape.queues):
            yield f"cohort-{cohort:0{wide[0]}}/queue-{queue:0{wide[1]}}"


def _wishes(kind: Kind) -> list[Wish | None]:
    """One for each workload of `kind`: in turns, while there are some left of each."""
    if not kind.wishes:
        return [None] * kind.count
    left = dict(kind.wishes)
    order: list[Wish | None] = []
    while len(order) < kind.count:
        for wish in [wish for wish, many in left.items() if many]:
            order.append(wish)
            left[wish] -= 1
    return order


def _members(kind: Kind) -> tuple[Request, ...]:
    ask = WHOLE if kind.milli == FULL else Ask(Cut.SHARED, compute_milli=kind.milli)
    return (Request(cards=kind.cards, ask=ask),) * kind.pods
