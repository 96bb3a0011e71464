"""Policies: a document into the core's settings, and the named ones that every scenario has."""

from __future__ import annotations

from typing import Any, Final

from aliquot.config.fields import Field, Table, quantity, read_fields
from aliquot.config.readers import choice, count, flag, one_of, ratio, share
from aliquot.config.tree import Item, nearest
from aliquot.core import units
from aliquot.core.settings import Discipline, MixSource, Rescue, Settings

DEFAULT_PLACEMENT: Final = "future-packing"
PLACEMENTS: Final = (
    DEFAULT_PLACEMENT,
    "fgd",
    "best-fit",
    "spread",
    "gpu-packing",
    "gpu-clustering",
    "dot-product",
    "random",
)
SYNONYMS: Final = {"binpack": "best-fit"}

# Where sharing itself is the question: whole cards as most sites hand them out, and slices as one could.
COMPARED: Final = (
    (
        "whole-card-fifo",
        Settings(policy=(("spread", 1.0),), shared=False, discipline=Discipline.STRICT, by_priority=False),
    ),
    ("binpack-slices", Settings(policy=(("best-fit", 1.0),))),
)
BUILTIN: Final = (
    *((placement, Settings(policy=((placement, 1.0),))) for placement in PLACEMENTS),
    *COMPARED,
)
"""(name, settings) of the policies that need no document, the default first."""

MECHANISMS: Final = ("mps", "time-slicing", "mig", "cgpu", "vgpu", "hami")

MIX: Final[Table] = {
    "source": Field(choice(MixSource), "mix_source"),
    "window": Field(count(1, 10**6), "mix_window"),
    "epoch": Field(count(1, 10**6), "mix_epoch"),
}
RESCUE: Final[Table] = {
    "share": Field(ratio),
    "tidyGain": Field(count(0, 10**6), "tidy_gain"),
    "tidyEvery": Field(share, "tidy_every_milli"),
    "tidyFrom": Field(share, "tidy_from_milli"),
    "tidyMoves": Field(count(0, 10**6), "tidy_moves"),
}


def read_placement(item: Item) -> tuple[tuple[str, float], ...]:
    """A placement policy by name, or a map of weights such as `{fgd: 0.7, best-fit: 0.3}`."""
    if item.text is not None:
        return ((_placement(item, item.scalar()), 1.0),)
    weights: dict[str, float] = {}
    for key, child in item.fields():
        word = _placement(child, key)
        weight = quantity(units.parse_fraction)(child)
        if weight == 0 or word in weights:
            child.fail(f"{key!r} has no weight of its own", "more than 0, once for each policy")
        weights[word] = float(weight)
    if not weights:
        item.fail("no placement policy", nearest("", PLACEMENTS))
    return tuple(weights.items())


def _placement(item: Item, word: str) -> str:
    if word not in PLACEMENTS and word not in SYNONYMS:
        item.fail(f"unknown placement policy {word!r}", nearest(word, (*PLACEMENTS, *SYNONYMS)))
    return SYNONYMS.get(word, word)


def _mix(item: Item) -> dict[str, Any]:
    if item.text is not None:
        return {"mix_source": choice(MixSource)(item)}
    return read_fields(item, MIX)


def _rescue(item: Item) -> Rescue:
    """`rescue: 3%` is the share of placed jobs that may move; a map sets the rest too."""
    if item.text is not None:
        return Rescue(share=ratio(item))
    return Rescue(**read_fields(item, RESCUE))


def _mechanisms(item: Item) -> tuple[tuple[str, bool], ...]:
    return tuple(read_fields(item, {word: Field(flag) for word in MECHANISMS}).items())


POLICY: Final[Table] = {
    "placement": Field(read_placement, "policy"),
    "sharing": Field(flag, "shared"),
    "discipline": Field(choice(Discipline)),
    "byPriority": Field(flag, "by_priority"),
    "topologyAware": Field(flag, "topology_aware"),
    "mix": Field(_mix),
    "rescue": Field(_rescue),
    "scatter": Field(flag),
    "seed": Field(count(0, 2**31 - 1)),
    "mechanisms": Field(_mechanisms),
    "engine": Field(one_of(["numba", "python"])),
}


def read_policy(spec: Item) -> Settings:
    """The settings of a policy document; what it leaves out keeps the default."""
    values = read_fields(spec, POLICY)
    values |= values.pop("mix", {})
    return Settings(**values)
