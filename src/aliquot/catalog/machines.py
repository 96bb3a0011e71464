"""Machine shapes: what one can buy or rent as a piece, as a node without a name.

A shape is a starting point for a description, not a claim about a machine that exists: a live node reports
its own wiring and sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import msgspec

from aliquot.catalog.rows import NicRow, ShapeRow, WiringRow
from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node, Numa
from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Nic, Wiring, assemble


class NicPort(msgspec.Struct, frozen=True):
    """A network port of a shape and its speed."""

    name: str
    gbits: int


class MachineShape(msgspec.Struct, frozen=True):
    """A machine as a piece. `node` is the template: its id is empty, its cards have no UUIDs.

    `kind` is `product` (a vendor's system), `build` (a typical build, sizes assumed) or `cloud` (an instance
    type). Prices are assumptions; None is unknown.
    """

    name: str
    kind: str
    about: str
    node: Node
    nics: tuple[NicPort, ...] = ()
    rdma: tuple[str, ...] = ()  # fabrics it can speak, empty: none
    hour_cents: int | None = None  # rent of the whole machine


def build_shape(row: ShapeRow, models: Mapping[str, CardModel]) -> MachineShape:
    """The shape a row describes; KeyError for a model the catalogue lacks."""
    model = models[row.model]
    numa = _card_numa(row)
    card_usd, hour_usd = row.price.card_usd, row.price.hour_usd
    node = Node(
        id=NodeId(SiteId(""), ""),
        cpu_milli=row.cpu * 1000,
        host_mib=row.memory_gib * 1024,
        cards=tuple(Card(CardId(""), model, numa[card]) for card in range(row.cards)),
        wiring=build_wiring(row.wiring, row.nics, numa) if row.wiring else None,
        numa=(Numa(row.cpu * 1000 // row.numa, row.memory_gib * 1024 // row.numa),) * row.numa
        if row.numa
        else (),
        price_cents_per_card=None if card_usd is None else card_usd * 100,
    )
    return MachineShape(
        name=row.name,
        kind=row.kind,
        about=row.about,
        node=node,
        nics=tuple(NicPort(nic.name, nic.gbits) for nic in row.nics),
        rdma=row.rdma,
        hour_cents=None if hour_usd is None else round(hour_usd * 100),
    )


def build_wiring(row: WiringRow, nics: tuple[NicRow, ...], numa: tuple[int | None, ...]) -> Wiring:
    """The wiring of cards on the NUMA nodes `numa`: NVLinks as counted, else the PCIe level that follows."""
    n = len(numa)
    pairs = list(product(range(n), range(n)))
    links = {(a, b): _links(row, a, b) for a, b in pairs}
    return assemble(
        n,
        tuple(Link.NV if links[a, b] else _pcie_level(row, numa, a, b) for a, b in pairs),
        tuple(links[pair] for pair in pairs),
        numa=numa,
        nics=tuple(_nic(nic, numa) for nic in nics),
        gen=row.gen,
        link_mbs=row.link_mbs,
    )


def _card_numa(row: ShapeRow) -> tuple[int | None, ...]:
    """As listed, else evenly over the NUMA nodes in order; None where they are unknown."""
    if row.card_numa:
        return row.card_numa
    return tuple(card * row.numa // row.cards if row.numa else None for card in range(row.cards))


def _links(row: WiringRow, a: int, b: int) -> int:
    if a == b:
        return 0
    return row.mesh[a][b] if row.mesh else row.links


def _pcie_level(row: WiringRow, numa: tuple[int | None, ...], a: int, b: int) -> Link:
    if a == b:
        return Link.SELF
    if any({a, b} <= set(below) for below in row.switches):
        return Link.PIX
    return _numa_level(numa[a], numa[b])


def _nic(row: NicRow, numa: tuple[int | None, ...]) -> Nic:
    near = Link[row.level]
    levels = tuple(near if card in row.near else _numa_level(row.numa, at) for card, at in enumerate(numa))
    return Nic(row.name, row.name, levels)


def _numa_level(a: int | None, b: int | None) -> Link:
    if a is None or b is None:
        return Link.UNKNOWN
    return Link.NODE if a == b else Link.SYS
