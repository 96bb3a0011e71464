"""A machine to simulate, from a file of one's own: its cards and how they are wired, in a few numbers.

{name: two, cards: [{model: L40S, count: 2}], cores: 32, memory_gib: 256}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import MOST_CORES, MOST_MACHINE_MIB, count, text
from aliquot.config.shelf import ModelNames, Shelf
from aliquot.config.source import read_items
from aliquot.config.tree import Item
from aliquot.core.errors import DocumentError
from aliquot.core.topology.links import PCIE_MBS
from aliquot.core.topology.wiring import MAX_CARDS

MOST_NVLINKS: Final = 64  # of one pair; no card has so many

SHAPE: Final[Table] = {
    "name": Field(text, required=True),
    "cards": Field(Item.elements, required=True),
    "per_switch": Field(count(1, MAX_CARDS)),
    "per_socket": Field(count(1, MAX_CARDS)),
    "pcie": Field(count(min(PCIE_MBS), max(PCIE_MBS))),
    "cores": Field(count(1, MOST_CORES)),
    "memory_gib": Field(count(1, MOST_MACHINE_MIB >> 10)),
}
GROUP: Final[Table] = {
    "model": Field(lambda item: item, required=True),
    "count": Field(count(1, MAX_CARDS)),
    "nvlinks": Field(count(0, MOST_NVLINKS)),
}


def read_shape(path: Path, shelf: Shelf) -> dict[str, Any]:
    """The fields of the one machine in a file, as the driver names them; those that are not said left out.

    Raises DocumentError.
    """
    if path.is_dir():
        raise DocumentError("is a folder", file=str(path), field="--simulate", hint="a file in it")
    items = read_items([path])
    if len(items) > 1:
        items[1].fail("a second machine", "one machine in a file")
    values = read_fields(items[0], SHAPE)
    values["cards"] = _read_cards(values["cards"], ModelNames(shelf))
    size = sum(group.get("count", 1) for group in values["cards"])
    if size > MAX_CARDS:
        cards = items[0].get("cards") or items[0]
        cards.fail(f"a machine of {size} cards", f"{MAX_CARDS} at most")
    return values


def _read_cards(items: Sequence[Item], names: ModelNames) -> list[dict[str, Any]]:
    groups = []
    for item in items:
        group = read_fields(item, GROUP)
        word: Item = group["model"]
        model = names.find(word)
        if model is None:
            word.fail(f"unknown GPU model {word.text!r}", names.hint(word.scalar()))
        groups.append({**group, "model": model.name})
    return groups
