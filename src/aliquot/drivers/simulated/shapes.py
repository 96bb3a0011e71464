"""The machines that can be simulated by name, and what is said of one.

A shape says which cards there are and how they are wired, in a few numbers; what a model is worth comes from
the catalogue.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Final

import msgspec

from aliquot.core.errors import SpecError
from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Wiring, assemble

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Size = Annotated[int, msgspec.Meta(ge=0)]


class CardGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Alike cards side by side. `nvlinks` join every pair of the group; 0 is none."""

    model: str
    count: _Count = 1
    nvlinks: _Size = 0


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine. Cards go to switches and sockets in order; `cores` and `memory_gib` are the host's."""

    name: str
    cards: tuple[CardGroup, ...]
    per_switch: _Count = 1
    per_socket: _Count = 4
    pcie: int = 4
    cores: _Count = 64
    memory_gib: _Count = 512

    @property
    def size(self) -> int:
        """How many cards."""
        return sum(group.count for group in self.cards)

    @property
    def models(self) -> tuple[str, ...]:
        """The model of each card."""
        return tuple(group.model for group in self.cards for _ in range(group.count))


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape("dgx-h100", (CardGroup("H100-SXM5-80GB", 8, nvlinks=18),), pcie=5, cores=224, memory_gib=2048),
        Shape(
            "a100-40x8",
            (CardGroup("A100-SXM4-40GB", 8, nvlinks=12),),
            per_switch=2,
            cores=256,
            memory_gib=1024,
        ),
        Shape("l40s-4", (CardGroup("L40S", 4),), per_socket=2, cores=128, memory_gib=768),
        Shape(
            "mixed",
            (CardGroup("A100-SXM4-80GB", 2, nvlinks=12), CardGroup("L40S", 2), CardGroup("T4")),
            per_socket=2,
            cores=96,
        ),
    )
}


def find_shape(name: str) -> Shape:
    """A shape by name. Raises SpecError that lists the names."""
    if name not in SHAPES:
        hint = f"one of {', '.join(SHAPES)}, or a file"
        raise SpecError(f"no machine {name!r} to simulate", field="--simulate", value=name, hint=hint)
    return SHAPES[name]


def shape_wiring(shape: Shape) -> Wiring:
    """The wiring of a shape. Raises SpecError for an unknown PCIe generation."""
    n = shape.size
    groups = [group for position, group in enumerate(shape.cards) for _ in range(group.count)]
    owner = [position for position, group in enumerate(shape.cards) for _ in range(group.count)]
    pairs = list(product(range(n), range(n)))
    links = {(a, b): groups[a].nvlinks if a != b and owner[a] == owner[b] else 0 for a, b in pairs}
    return assemble(
        n,
        tuple(_level(shape, a, b, links[a, b]) for a, b in pairs),
        tuple(links[pair] for pair in pairs),
        numa=tuple(card // shape.per_socket for card in range(n)),
        gen=shape.pcie,
    )


def _level(shape: Shape, a: int, b: int, links: int) -> Link:
    if a == b:
        return Link.SELF
    if links:
        return Link.NV
    if a // shape.per_switch == b // shape.per_switch:
        return Link.PIX
    return Link.NODE if a // shape.per_socket == b // shape.per_socket else Link.SYS
