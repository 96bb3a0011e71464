"""Nearness as it is asked for: levels of a site, wishes of a job or of a group of its members, and whether
given nodes keep to them.

A wish never says which domain, only that members share one. What a node does not say (its rack, say) is
unknown, and unknown is inside nothing: such a node serves no wish for that level.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from aliquot.core.inventory import Node


class Level(Enum):
    """How near is near, from near to far. A rack is of one block and a block of one site."""

    NODE = "node"
    LINKS = "links"  # nodes joined by NVLink
    RACK = "rack"
    BLOCK = "block"
    SITE = "site"

    __hash__ = object.__hash__  # members are unique; the usual hash of their name costs a call each time


LEVELS: Final = tuple(Level)


class Wish(msgspec.Struct, frozen=True, cache_hash=True):
    """Where members should be, seen from each other.

    required   all inside one domain of this level, or they wait
    preferred  inside one of this level, else of the next wider one that holds them, else in as few as will do
    balanced   cut into slices of `slice` members; each slice is inside one domain of this level or waits, and
               slices are spread as evenly as can be over the fewest domains that hold them, but over at least
               `over` of them while there are as many
    """

    required: Level | None = None
    preferred: Level | None = None
    balanced: Level | None = None
    slice: int = 1
    over: int = 1

    @property
    def is_binding(self) -> bool:
        """Whether there is anything that must not be broken."""
        return self.required is not None or (self.balanced is not None and self.slice > 1)


class Group(msgspec.Struct, frozen=True, cache_hash=True):
    """Members of a gang with a minimum and a wish of their own.

    `members` are places in the job's members, rising. Those beyond the job's last are not there: a gang that
    starts with fewer keeps its first ones.
    """

    name: str
    members: tuple[int, ...]
    minimum: int | None = None  # that start together, of these; None: all
    wish: Wish | None = None

    @property
    def least(self) -> int:
        """Of its members, how many must start together: from one to all, whatever is said."""
        return len(self.members) if self.minimum is None else min(max(1, self.minimum), len(self.members))

    def among(self, count: int) -> tuple[int, ...]:
        """Its members among the first `count` of the job."""
        return tuple(member for member in self.members if member < count)


def domain_of(node: Node, level: Level) -> tuple[str, ...] | None:
    """Which domain of `level` the node is in; None where it does not say."""
    site = node.id.site
    match level:
        case Level.NODE:
            return (site, node.id.name)
        case Level.LINKS:
            return (site, node.link_domain) if node.link_domain else None
        case Level.RACK:
            return (site, node.block, node.rack) if node.rack else None
        case Level.BLOCK:
            return (site, node.block) if node.block else None
        case Level.SITE:
            return (site,)


def levels_from(level: Level, below: Level | None = None) -> tuple[Level, ...]:
    """`level` and all that are wider, up to but without `below` where that is wider."""
    stop = len(LEVELS) if below is None else LEVELS.index(below)
    return LEVELS[LEVELS.index(level) : stop]


def find_breach(wish: Wish | None, groups: Sequence[Group], homes: Sequence[Node]) -> str | None:
    """What is broken where the first members of a job are on `homes`, one each; None: nothing."""
    if wish is not None:
        broken = _breach_of(wish, homes)
        if broken is not None:
            return f"members are {broken}"
    for group in groups:
        members = group.among(len(homes))
        if len(members) < group.least:
            return f"group {group.name} has {len(members)} members, not the {group.least} it needs at least"
        broken = None if group.wish is None else _breach_of(group.wish, [homes[at] for at in members])
        if broken is not None:
            return f"members of group {group.name} are {broken}"
    return None


def _breach_of(wish: Wish, homes: Sequence[Node]) -> str | None:
    if wish.required is not None and not _share(homes, wish.required):
        return f"not inside one {wish.required.value}"
    if wish.balanced is not None:
        for at in range(0, len(homes), wish.slice):
            if not _share(homes[at : at + wish.slice], wish.balanced):
                return f"in slices of {wish.slice} that are not inside one {wish.balanced.value} each"
    return None


def _share(homes: Sequence[Node], level: Level) -> bool:
    domains = {domain_of(node, level) for node in homes}
    return len(domains) <= 1 and None not in domains
