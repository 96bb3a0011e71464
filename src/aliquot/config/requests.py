"""The `gpu` part of a job: whole cards, a named slice, or a slice in numbers; and which cards will do.

`memory`, `compute` or `slice` ask for a shared slice, `exclusive: true` for whole cards (memory is then what
the card must have, and what quota charges); with none of them the cards are whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from aliquot.config.fields import Field, Table, read_fields
from aliquot.config.readers import (
    asked_memory,
    choice,
    count,
    flag,
    gigabytes_rate,
    name,
    rate,
    share,
    tflops,
)
from aliquot.config.shelf import ModelNames
from aliquot.config.tree import Item, nearest
from aliquot.core.inventory import Profile
from aliquot.core.jobs import Link, Request
from aliquot.core.slices import Ask, Cut, SliceClass

MOST_CARDS: Final = 4096  # of one job; what no machine has is a reason to wait, not an error

_PART: Final = re.compile(r"[0-9]*\.[0-9]+|[0-9.]+%|[0-9]+(?:m|/[0-9]+)")


def cards(item: Item) -> int:
    """How many cards: whole ones."""
    if _PART.fullmatch(item.scalar()):
        item.fail(
            f"{item.text!r} is not a whole number of cards",
            "a part of a card: `compute: 50%`, or `memory: 20GiB`",
        )
    return count(1, MOST_CARDS)(item)


GPU: Final[Table] = {
    "count": Field(cards),
    "exclusive": Field(flag),
    "memory": Field(asked_memory, "memory_mib"),
    "compute": Field(share, "compute_milli"),
    "bandwidth": Field(share, "bandwidth_milli"),
    "slice": Field(name),
    "models": Field(lambda item: item),
    "minMemory": Field(asked_memory, "min_memory"),
    "minBandwidth": Field(gigabytes_rate, "min_bandwidth"),
    "minLink": Field(gigabytes_rate, "min_link"),
    "minTflops": Field(tflops, "gflops"),
    "nvlink": Field(choice(Link), "link"),
    "distinct": Field(flag),
    "traffic": Field(rate, "traffic_mbs"),
}
NUMBERS: Final = ("memory_mib", "compute_milli", "bandwidth_milli")


class Known(NamedTuple):
    """What a request may refer to."""

    slices: Mapping[str, SliceClass]
    names: ModelNames


def read_request(item: Item | None, cpu_milli: int, host_mib: int, known: Known) -> Request:
    """What one member asks of one node; without a `gpu` part it asks for no card."""
    if item is None:
        return Request(cpu_milli=cpu_milli, host_mib=host_mib)
    values = read_fields(item, GPU)
    rest = {key: values[key] for key in ("link", "distinct", "traffic_mbs") if key in values}
    return Request(
        cpu_milli=cpu_milli,
        host_mib=host_mib,
        cards=values.get("count", 1),
        ask=_read_ask(item, values, known.slices),
        profile=_read_profile(values, known.names),
        **rest,
    )


def _read_ask(item: Item, values: dict[str, Any], slices: Mapping[str, SliceClass]) -> Ask:
    numbers = {key: values[key] for key in NUMBERS if key in values}
    if values.get("exclusive"):
        stray = [key for key in ("compute", "bandwidth", "slice") if item.get(key)]
        if stray:
            item.fail(f"{stray[0]!r} has no meaning on a whole card", f"leave out {stray[0]} or exclusive")
        return Ask(Cut.WHOLE, memory_mib=values.get("memory_mib"))
    if "slice" in values:
        if numbers:
            item.fail("both a slice class and numbers of a slice", "keep the class or the numbers")
        return _named_ask(item, values["slice"], slices)
    if not numbers:
        return Ask(Cut.WHOLE)
    if numbers.keys() == {"bandwidth_milli"}:
        item.fail("bandwidth alone does not say how large the slice is", "add compute or memory")
    return Ask(Cut.SHARED, **numbers)


def _named_ask(item: Item, word: str, slices: Mapping[str, SliceClass]) -> Ask:
    found = slices.get(word)
    if found is None:
        source = item.get("slice") or item
        hint = nearest(word, slices) or "declare one with kind: SliceClass or gpu_unit"
        source.fail(f"unknown slice class {word!r}", hint)
    return Ask(Cut.SHARED, found.memory_mib, found.compute_milli, found.bandwidth_milli)


def _read_profile(values: dict[str, Any], names: ModelNames) -> Profile:
    models: Item | None = values.get("models")
    words: list[tuple[str, Item]] = []
    if models is not None:
        listed = models.elements() if models.items is not None else (models,)
        words = [(child.scalar(), child) for child in listed]
    return Profile(
        models=names.expand(words),
        memory_mib=values.get("min_memory"),
        bandwidth_gbs=values.get("min_bandwidth"),
        link_gbs=values.get("min_link"),
        gflops=values.get("gflops", ()),
    )
