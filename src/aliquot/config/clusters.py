"""Clusters and pools: groups of equal machines into nodes of the core.

A group is a shape of the catalogue, or cards, cpu and memory written out; what is written beside a shape
replaces the shape's. Simulated cards get UUIDs that follow from site, node and index, so a card keeps its
identity from run to run.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

import msgspec

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import (
    asked_memory,
    count,
    gigabytes_rate,
    machine_cores,
    machine_memory,
    money,
    name,
    one_of,
    text,
)
from aliquot.config.shelf import ModelNames, Shelf
from aliquot.config.tree import Item, nearest
from aliquot.config.wirings import Board, read_wiring
from aliquot.core.columns import MAX_CARDS, MAX_NUMA
from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node, Numa
from aliquot.core.topology.wiring import Wiring

MOST_NODES: Final = 100_000  # in one group
POOL_LABEL: Final = "aliquot.dev/pool"

CARDS: Final[Table] = {
    "model": Field(lambda item: item, required=True),
    "count": Field(count(1, MAX_CARDS), required=True),
    "memory": Field(machine_memory, "memory_mib"),
    "reserved": Field(asked_memory, "reserved_mib"),
    "bandwidth": Field(gigabytes_rate, "bandwidth_gbs"),
}
GROUP: Final[Table] = {
    "name": Field(name, required=True),
    "count": Field(count(1, MOST_NODES)),
    "shape": Field(lambda item: item),
    "cards": Field(lambda item: item),
    "cpu": Field(machine_cores, "cpu_milli"),
    "memory": Field(machine_memory, "host_mib"),
    "numa": Field(count(1, MAX_NUMA)),
    "wiring": Field(lambda item: item),
    "price": Field(money, "price_cents_per_card"),
    "rack": Field(name),
    "block": Field(name),
    "linkDomain": Field(name, "link_domain"),
    "tier": Field(one_of(["cloud", "edge", "device"])),
    "labels": Field(lambda item: tuple((key, text(child)) for key, child in item.fields())),
}
OF_NODE: Final = ("price_cents_per_card", "rack", "block", "link_domain", "tier")


class Machines(NamedTuple):
    """Nodes with the item that describes each, and what to say beside results."""

    nodes: tuple[tuple[Node, Item], ...]
    notes: tuple[str, ...]


class _Reader(NamedTuple):
    shelf: Shelf
    names: ModelNames
    site: SiteId
    labels: tuple[tuple[str, str], ...]


def read_groups(
    items: tuple[Item, ...], site: str, labels: tuple[tuple[str, str], ...], shelf: Shelf, names: ModelNames
) -> Machines:
    """The nodes of every group, in order. `labels` go on each of them."""
    reader = _Reader(shelf, names, SiteId(site), labels)
    nodes: list[tuple[Node, Item]] = []
    notes: dict[str, None] = {}
    for item in items:
        values = read_fields(item, GROUP)
        template, said = _template(item, values, reader)
        notes |= dict.fromkeys(said)
        nodes += [(_name_node(template, word, reader.site), item) for word in _node_names(values)]
    return Machines(tuple(nodes), tuple(notes))


def _node_names(values: dict[str, Any]) -> list[str]:
    """`name` alone, or `name-0` and so on where a count is given."""
    if "count" not in values:
        return [values["name"]]
    return [f"{values['name']}-{at}" for at in range(values["count"])]


def _name_node(template: Node, word: str, site: SiteId) -> Node:
    cards = tuple(
        msgspec.structs.replace(card, uuid=card_uuid(site, word, at))
        for at, card in enumerate(template.cards)
    )
    return msgspec.structs.replace(template, id=NodeId(site, word), cards=cards)


def card_uuid(site: str, node: str, index: int) -> CardId:
    """The UUID of a simulated card: the same for the same site, node and index, on every machine."""
    text = hashlib.sha256(f"{site}\0{node}\0{index}".encode()).hexdigest()
    return CardId(f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}")


def _template(item: Item, values: dict[str, Any], reader: _Reader) -> tuple[Node, tuple[str, ...]]:
    if "shape" in values:
        node, notes = _from_shape(item, values, reader)
    else:
        node, notes = _from_parts(item, values, reader), ()
    if "wiring" in values or "numa" in values or "shape" not in values:
        node, caveats = _wire(item, values, node, reader)
        notes += tuple(f"{values['name']}: {caveat}" for caveat in caveats)
    taken = {key: values[key] for key in OF_NODE if key in values}
    labels = dict(reader.labels) | dict(values.get("labels", ()))
    return msgspec.structs.replace(node, **taken, labels=tuple(sorted(labels.items()))), notes


def _from_shape(item: Item, values: dict[str, Any], reader: _Reader) -> tuple[Node, tuple[str, ...]]:
    if "cards" in values:
        item.fail("both a shape and cards", "keep one of shape and cards")
    shape: Item = values["shape"]
    machines = reader.shelf.machines()
    if shape.scalar() not in machines:
        shape.fail(f"unknown machine shape {shape.text!r}", nearest(shape.scalar(), machines))
    node = machines[shape.scalar()]
    own = {key: values[key] for key in ("cpu_milli", "host_mib") if key in values}
    if own:  # the shape's NUMA nodes no longer add up
        node = msgspec.structs.replace(node, **own)
        node = msgspec.structs.replace(node, numa=_split_numa(node, len(node.numa)))
    cents = node.price_cents_per_card
    if cents is None or "price_cents_per_card" in values:
        return node, ()
    return node, (f"{shape.text}: {cents // 100} a card is the catalogue's assumption; `price` replaces it",)


def _from_parts(item: Item, values: dict[str, Any], reader: _Reader) -> Node:
    for key, into in (("cpu", "cpu_milli"), ("memory", "host_mib")):
        if into not in values:
            item.fail(f"{key!r} is missing", f"add {item.path}.{key}, or a shape of the catalogue")
    models: list[CardModel] = []
    given: Item | None = values.get("cards")
    if given is not None:
        for part in given.elements() if given.items is not None else (given,):
            models += _read_cards(part, reader)
        if len(models) > MAX_CARDS:
            given.fail(f"a machine of {len(models)} cards", f"{MAX_CARDS} at most")
    return Node(
        id=NodeId(reader.site, ""),
        cpu_milli=values["cpu_milli"],
        host_mib=values["host_mib"],
        cards=tuple(Card(CardId(""), model) for model in models),
    )


def _read_cards(item: Item, reader: _Reader) -> list[CardModel]:
    """`count` cards of a model of the catalogue, with what the site knows better, or of its own."""
    values = read_fields(item, CARDS)
    word: Item = values["model"]
    model = reader.names.find(word)
    own = {key: values[key] for key in ("memory_mib", "reserved_mib", "bandwidth_gbs") if key in values}
    if model is None:
        if "memory_mib" not in own:
            hint = reader.names.hint(word.scalar())
            word.fail(f"unknown GPU model {word.text!r}", f"{hint} A model of your own needs its memory")
        model = CardModel(name=word.scalar(), **own)
        reader.names.add(model)
    elif own:
        model = msgspec.structs.replace(model, **own)
    if model.usable_mib <= 0:
        item.fail("the driver keeps the whole memory for itself", "reserved below memory")
    return [model] * values["count"]


def _wire(item: Item, values: dict[str, Any], node: Node, reader: _Reader) -> tuple[Node, tuple[str, ...]]:
    """The node with NUMA nodes and wiring as written; a single card needs no wiring."""
    numa = values.get("numa", len(node.numa))
    wiring, caveats = node.wiring, tuple[str, ...]()
    written: Item | None = values.get("wiring")
    models = tuple(card.model for card in node.cards)
    if written is not None:
        if not models:
            written.fail("a machine without cards has nothing to wire", "leave it out")
        links = reader.shelf.nvlinks().get(models[0].name) if len({m.name for m in models}) == 1 else None
        wiring, caveats = read_wiring(written, Board(models, numa, links))
    at = _card_numa(item, numa, len(models), wiring)
    cards = tuple(msgspec.structs.replace(card, numa=near) for card, near in zip(node.cards, at, strict=True))
    return msgspec.structs.replace(node, cards=cards, wiring=wiring, numa=_split_numa(node, numa)), caveats


def _card_numa(item: Item, numa: int, cards: int, wiring: Wiring | None) -> tuple[int | None, ...]:
    """As the wiring shows it, else evenly over the NUMA nodes; None where nothing is known."""
    if wiring is not None and any(near is not None for near in wiring.numa):
        highest = max(near for near in wiring.numa if near is not None)
        if numa and highest >= numa:
            item.fail(
                f"a card is on NUMA node {highest} and there are {numa}", f"numa: {highest + 1} or more"
            )
        return wiring.numa
    return tuple(card * numa // cards if numa else None for card in range(cards))


def _split_numa(node: Node, numa: int) -> tuple[Numa, ...]:
    """Cpu and memory evenly over the NUMA nodes; the first ones take what does not divide."""
    return tuple(
        Numa(
            node.cpu_milli // numa + (at < node.cpu_milli % numa),
            node.host_mib // numa + (at < node.host_mib % numa),
        )
        for at in range(numa)
    )
