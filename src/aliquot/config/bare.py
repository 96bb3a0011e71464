"""The two inputs that are taken as they stand, without kind or metadata: `gpu_unit` and `scheduler`.

What each key does:

    gpu_unit[]                 one slice class each; what no slice takes of a card stays free for other shapes
      name                     what jobs ask for
      memory_mb                MiB of one card, a plain number
      compute_percent          of one card
      memory_bandwidth_percent of one card
    scheduler                  a policy named `scheduler`
      policy                   the placement policy; `binpack` is best-fit
      enable_MECHANISM         recorded; with all that are named switched off no card is shared
      resource_quota           a queue each
        gpu_memory             its own: lent while it is not used, borrowed beyond while others lend
        priority               of its jobs, unless they have their own
        hard                   true: it never borrows
      topology_aware           whether wiring chooses the cards
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aliquot.config.fields import Field, Table, quantity, read_fields
from aliquot.config.policies import MECHANISMS, read_placement
from aliquot.config.readers import flag, name, path_name, percent, quota_memory, whole
from aliquot.config.tree import Item
from aliquot.core import units
from aliquot.core.queues import MEMORY, Queue, Quota
from aliquot.core.settings import Settings
from aliquot.core.slices import SliceClass

SCHEDULER: Final = "scheduler"
GPU_UNIT: Final = "gpu_unit"


def plain_mib(item: Item) -> int:
    """MiB of a key named `..._mb`, written as a plain number."""
    return quantity(units.parse_memory, plain="MiB")(item)


UNIT: Final[Table] = {
    "name": Field(name, required=True),
    "memory_mb": Field(plain_mib, "memory_mib", required=True),
    "compute_percent": Field(percent, "compute_milli", required=True),
    "memory_bandwidth_percent": Field(percent, "bandwidth_milli", required=True),
}
QUOTA: Final[Table] = {
    "gpu_memory": Field(quota_memory, "nominal_mib"),
    "priority": Field(whole),
    "hard": Field(flag),
}


def _switch(mechanism: str) -> str:
    return f"enable_{mechanism.replace('-', '_')}"


SETTINGS: Final[Table] = {
    "policy": Field(read_placement),
    "topology_aware": Field(flag),
    "resource_quota": Field(lambda item: item, "quotas"),
    **{_switch(word): Field(flag, word) for word in MECHANISMS},
}


class Scheduler(NamedTuple):
    """What a `scheduler` map comes to. `queues` carry the item that declares each."""

    settings: Settings
    queues: tuple[tuple[Queue, Item], ...]


def read_units(item: Item) -> tuple[tuple[SliceClass, Item], ...]:
    """The slice classes of a `gpu_unit` list, each with its item."""
    return tuple((SliceClass(**read_fields(entry, UNIT)), entry) for entry in item.elements())


def read_scheduler(item: Item) -> Scheduler:
    """The policy and the queues of a `scheduler` map."""
    values = read_fields(item, SETTINGS)
    mechanisms = tuple((word, values.pop(word)) for word in MECHANISMS if word in values)
    quotas: Item | None = values.pop("quotas", None)
    if mechanisms:
        values["shared"] = any(on for _, on in mechanisms)
    return Scheduler(Settings(**values, mechanisms=mechanisms), _read_queues(quotas))


def _read_queues(quotas: Item | None) -> tuple[tuple[Queue, Item], ...]:
    found: list[tuple[Queue, Item]] = []
    for word, entry in quotas.fields() if quotas else ():
        values: dict[str, Any] = read_fields(entry, QUOTA)
        if values.pop("hard", False):
            if "nominal_mib" not in values:
                entry.fail("a hard quota of nothing that is said", "add gpu_memory, or leave out hard")
            values["quotas"] = (Quota(MEMORY, nominal=values.pop("nominal_mib"), borrowing=0),)
        found.append((Queue(path_name(_key(entry, word)), **values), entry))
    return tuple(found)


def _key(entry: Item, word: str) -> Item:
    """The key of an entry as an item, to be checked like any other name."""
    return Item(entry.file, entry.line, entry.path, text=word)
