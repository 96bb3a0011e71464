"""Small parts for tests: models, cards, nodes, requests, jobs, placements. Defaults are round numbers.

A card's UUID is `<node>-g<slot>`, so a table can name cards without building them first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aliquot.core.grants import NOTHING, Placement
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node, Numa, Profile
from aliquot.core.jobs import Job, Link, Request
from aliquot.core.queueing.tree import QueueTree
from aliquot.core.settings import Settings
from aliquot.core.slices import Ask, Cut, Vector
from aliquot.core.speed import SpeedTable
from aliquot.core.topology.wiring import Wiring
from aliquot.core.units import FULL
from aliquot.core.workload import Offer, Scenario

H100 = CardModel("H100", memory_mib=81559)
T4 = CardModel("T4", memory_mib=15360, reserved_mib=443)
L40S = CardModel("L40S", memory_mib=46068)


def node_id(name: str, site: str = "") -> NodeId:
    """The identity of `name` at `site`."""
    return NodeId(SiteId(site), name)


def card_id(node: str, slot: int) -> CardId:
    """The UUID that `a_node` gives the card in `slot`."""
    return CardId(f"{node}-g{slot}")


def leaves_of(tree: QueueTree) -> list[int]:
    """The nodes that hold jobs."""
    return [node for node, below in enumerate(tree.children) if not below]


def a_node(
    name: str,
    cards: int | Sequence[str] = 8,
    *,
    model: CardModel = H100,
    cpu: int = 64_000,
    host: int = 512_000,
    numa: int = 0,
    wiring: Wiring | None = None,
    site: str = "",
    rack: str = "",
    block: str = "",
    link_domain: str = "",
) -> Node:
    """A machine. `cards`: how many, or their UUIDs. `numa` > 0 splits cpu, host and cards evenly."""
    uuids = [card_id(name, at) for at in range(cards)] if isinstance(cards, int) else list(map(CardId, cards))
    each = -(-len(uuids) // numa) if numa else 0
    return Node(
        node_id(name, site),
        cpu,
        host,
        tuple(Card(uuid, model, numa=at // each if numa else None) for at, uuid in enumerate(uuids)),
        wiring,
        tuple(Numa(cpu // numa, host // numa) for _ in range(numa)),
        rack=rack,
        block=block,
        link_domain=link_domain,
    )


def a_request(
    cards: int = 1,
    *,
    memory: int | None = None,
    compute: int | None = None,
    bandwidth: int | None = None,
    cpu: int = 0,
    host: int = 0,
    traffic: int = 0,
    models: tuple[str, ...] = (),
    link: Link = Link.ANY,
) -> Request:
    """Whole cards, or shared ones as soon as `memory` or `compute` is said."""
    shared = memory is not None or compute is not None
    ask = Ask(Cut.SHARED, memory, compute, bandwidth) if shared else Ask()
    return Request(cpu, host, cards, ask, Profile(models), link, traffic_mbs=traffic)


def a_job(
    name: str,
    request: Request | Iterable[Request] | None = None,
    *,
    at: int = 0,
    seq: int = 0,
    priority: int = 0,
    movable: bool = False,
    scatter: bool = False,
    cards: int = 1,
    **more: Any,
) -> Job:
    """A job of one member, or a gang of several; without a request, one of `cards` whole cards."""
    asked = a_request(cards) if request is None else request
    members = (asked,) if isinstance(asked, Request) else tuple(asked)
    return Job(JobId(name), members, at, seq, priority=priority, movable=movable, scatter=scatter, **more)


def a_placement(
    node: Node, slots: Iterable[int] = (), vector: Vector | None = None, *, cpu: int = 0, host: int = 0
) -> Placement:
    """The cards in `slots` of `node`; whole where no vector is given."""
    cards = tuple(node.cards[at] for at in slots)
    if not cards:
        return Placement(node.id, cpu=cpu, host=host)
    booked = vector or Vector(FULL, cards[0].model.usable_mib, FULL)
    return Placement(node.id, tuple(card.uuid for card in cards), booked, vector is None, cpu, host)


def a_cpu_placement(node: Node, cpu: int = 0, host: int = 0) -> Placement:
    """Host resources of `node` and no card."""
    return Placement(node.id, (), NOTHING, cpu=cpu, host=host)


def an_offer(
    job: Job, work: int | None = 1000, *, patience: int | None = None, linked: bool = False
) -> Offer:
    """`job` with `work` ms at full speed."""
    return Offer(job, work, patience, linked=linked)


def a_scenario(
    nodes: Sequence[Node],
    offers: Sequence[Offer],
    *,
    failures: tuple[tuple[int, str, int | None], ...] = (),
    speeds: SpeedTable | None = None,
) -> Scenario:
    """A what-if with one policy called `default`."""
    return Scenario(
        "test",
        tuple(nodes),
        tuple(offers),
        (("default", Settings()),),
        speeds or SpeedTable(),
        failures=failures,
    )
