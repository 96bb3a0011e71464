"""A site of which only counts are known: so many nodes of so many cards; and what a wide job asks of it.

Processor and host memory are not counted on such a site: its jobs ask for none.
"""

from __future__ import annotations

from typing import Final

from aliquot.core.columns import MAX_CARDS
from aliquot.core.errors import SpecError
from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import Card, CardModel, Node, Profile
from aliquot.core.jobs import Request
from aliquot.core.settings import Settings
from aliquot.core.slices import Ask, Cut

Policies = tuple[tuple[str, Settings], ...]
"""Policies by name, the default first."""

UNNAMED: Final = CardModel("unnamed", memory_mib=1000)
"""A card of which nothing is known; its memory is a placeholder, and no figure of memory means anything."""

UNNAMED_NOTE: Final = (
    "the card model is not known: figures of memory only repeat those of cards, money is unknown"
)
MOST_NODES: Final = 20_000
WHOLE: Final = Ask(Cut.WHOLE)


def plain_nodes(site: str, nodes: int, cards: int, model: CardModel = UNNAMED) -> tuple[Node, ...]:
    """`nodes` machines of `cards` cards. Raises SpecError for more of either than a world can have."""
    _check("--nodes", nodes, MOST_NODES)
    _check("--cards", cards, MAX_CARDS)
    digits = len(str(nodes - 1))
    return tuple(_node(site, f"node-{at:0{digits}}", cards, model) for at in range(nodes))


def gang(
    cards: int, widest: int, nodes: int | None = None, *, ask: Ask = WHOLE, profile: Profile | None = None
) -> tuple[Request, ...]:
    """`cards` as members of one node each: evenly over `nodes` where that is asked, else as few as can be.

    20 cards where a node has at most 8: 8, 8 and 4; over 3 nodes: 7, 7 and 6.
    """
    if nodes is not None and 0 < nodes <= cards:
        least, more = divmod(cards, nodes)
        parts = [least + 1] * more + [least] * (nodes - more)
    else:
        full, rest = divmod(cards, widest)
        parts = [widest] * full + ([rest] if rest else [])
    profile = Profile() if profile is None else profile
    return tuple(Request(cards=part, ask=ask, profile=profile) for part in parts)


def _node(site: str, name: str, cards: int, model: CardModel) -> Node:
    uuids = (CardId(f"GPU-{name}-{at}") for at in range(cards))
    return Node(NodeId(SiteId(site), name), 0, 0, tuple(Card(uuid, model) for uuid in uuids))


def _check(option: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise SpecError(f"{count} is out of range", field=option, value=count, hint=f"1 to {most}")
