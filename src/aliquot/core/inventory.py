"""What exists: cards, nodes, and the hardware class (kind) a node belongs to.

Sizes are what the driver reports, never the marketing size. It is not what is taken: that is the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from aliquot.core.ids import CardId, NodeId
from aliquot.core.topology.wiring import Wiring


class CardModel(msgspec.Struct, frozen=True, cache_hash=True):
    """A GPU model of the catalogue. `None` is unknown and never matches a minimum."""

    name: str
    memory_mib: int  # total, as the driver reports it
    reserved_mib: int = 0  # kept by the driver for itself
    bandwidth_gbs: int | None = None
    nvlink_gbs: int | None = None  # sum over links, both directions
    gflops: tuple[tuple[str, int], ...] = ()  # dense, by number format: (("bf16", 312000), ...)
    aliases: tuple[str, ...] = ()

    @property
    def usable_mib(self) -> int:
        """Memory that may be granted: total minus reserved."""
        return self.memory_mib - self.reserved_mib

    def flops_of(self, number_format: str) -> int | None:
        """Dense GFLOP/s in `number_format`, or None where unknown."""
        return dict(self.gflops).get(number_format)


class Card(msgspec.Struct, frozen=True):
    """One physical card of a node."""

    uuid: CardId
    model: CardModel
    numa: int | None = None
    pci: str = ""


class Numa(msgspec.Struct, frozen=True):
    """Host resources of one NUMA node."""

    cpu_milli: int
    host_mib: int


class Node(msgspec.Struct, frozen=True):
    """One machine as last reported. `cards` are in the driver's order; `wiring` speaks of the same order."""

    id: NodeId
    cpu_milli: int
    host_mib: int
    cards: tuple[Card, ...] = ()
    wiring: Wiring | None = None  # None: wiring unknown
    numa: tuple[Numa, ...] = ()  # empty: unknown
    tier: str = "cloud"
    rack: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    price_cents_per_card: int | None = None
    block: str = ""  # the racks it is among; empty: unknown, as for the rack
    link_domain: str = ""  # the nodes that NVLink joins it to; empty: none, or unknown


PEAK_FORMATS: Final = ("bf16", "fp16")
"""Number formats that models are trained in; the peak of a card is that of the first it has facts of."""


def peak_gflops(model: CardModel) -> int | None:
    """What a card of `model` can do at most, in GFLOP/s; None: unknown."""
    return next((peak for name in PEAK_FORMATS if (peak := model.flops_of(name))), None)


class NodeKind(msgspec.Struct, frozen=True, cache_hash=True):
    """The part of a node that placement depends on, shared by all nodes alike."""

    cards: tuple[CardModel, ...]
    card_numa: tuple[int | None, ...]
    wiring: Wiring | None
    cpu_milli: int
    host_mib: int
    numa_nodes: int  # 0: unknown


class Profile(msgspec.Struct, frozen=True, cache_hash=True):
    """Which cards a request accepts. Everything given must hold; an unknown fact of a card never matches."""

    models: tuple[str, ...] = ()
    memory_mib: int | None = None  # usable memory at least
    bandwidth_gbs: int | None = None
    link_gbs: int | None = None
    gflops: tuple[tuple[str, int], ...] = ()


def kind_of(node: Node) -> NodeKind:
    """The hardware class of `node`."""
    return NodeKind(
        tuple(card.model for card in node.cards),
        tuple(card.numa for card in node.cards),
        node.wiring,
        node.cpu_milli,
        node.host_mib,
        len(node.numa),
    )


def accepts(profile: Profile, model: CardModel) -> bool:
    """Whether a card of `model` satisfies `profile`."""
    return not any(unmet(profile, model))


def unmet(profile: Profile, model: CardModel) -> list[str]:
    """The clauses of `profile` that `model` fails, in words, empty when it is accepted."""
    misses = []
    names = {model.name.casefold(), *(alias.casefold() for alias in model.aliases)}
    if profile.models and not any(wanted.casefold() in names for wanted in profile.models):
        misses.append(f"model {model.name} is not {' or '.join(profile.models)}")
    minima = [
        ("usable memory MiB", profile.memory_mib, model.usable_mib),
        ("memory bandwidth GB/s", profile.bandwidth_gbs, model.bandwidth_gbs),
        ("link bandwidth GB/s", profile.link_gbs, model.nvlink_gbs),
        *((f"{name} GFLOP/s", least, model.flops_of(name)) for name, least in profile.gflops),
    ]
    for what, least, have in minima:
        if least is not None and (have is None or have < least):
            misses.append(f"{what} {'unknown' if have is None else have} < {least}")
    return misses


def models_by_name(models: Mapping[str, CardModel]) -> dict[str, CardModel]:
    """Every name and alias, casefolded, to its model."""
    return {name.casefold(): model for model in models.values() for name in (model.name, *model.aliases)}
