"""What several devices of a machine share: the uplink of a PCIe switch, the link between sockets.

An edge is a budget in MB/s, shared by the cards, NICs and drives behind it; what is booked on it lives in the
world. Only edges that two cards can meet on, or a card and a NIC, are worth a column, and there are at most
`MAX_EDGES` columns: whole kinds are left out, the least shared first, rather than some edges of a kind,
because a budget that exists for half of the cards would push every job to the other half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from aliquot.core.topology.links import Link

MAX_EDGES: Final = 8  # columns of the world's traffic table


class EdgeKind(Enum):
    """What an edge is."""

    UPLINK = "pcie-uplink"  # everything below one PCIe switch (or cascade of switches) to its CPU
    SOCKET = "socket-link"  # everything that goes from one NUMA node to another


class Edge(NamedTuple):
    """A shared budget. `cards` is a mask; those below the switch, or all that a socket link joins."""

    name: str
    kind: EdgeKind
    capacity: int  # MB/s, one way
    cards: int
    devices: tuple[str, ...] = ()  # NICs and drives behind it, by name


class Switch(NamedTuple):
    """Cards and NICs below one PCIe switch (PIX) or one cascade of switches (PXB)."""

    level: Link
    cards: int  # mask
    nics: tuple[int, ...] = ()  # positions in the wiring's NICs


def find_switches(
    cards: int, nics: int, pair: Callable[[int, int], Link], reach: Callable[[int, int], Link]
) -> tuple[Switch, ...]:
    """Groups of devices joined by PIX, then by PIX or PXB, that hold a card and at least one more device.

    `pair(a, b)` is the level of two cards, `reach(nic, card)` that of a NIC and a card. Two cards whose PCIe
    level is hidden by NVLink still show their switch through a NIC both are near. A cascade that is the same
    group as a switch is not repeated.
    """
    found: dict[tuple[int, tuple[int, ...]], Switch] = {}
    for level in (Link.PIX, Link.PXB):
        near = [(a, b) for a in range(cards) for b in range(a + 1, cards) if Link.PIX <= pair(a, b) <= level]
        near += [
            (cards + nic, card)
            for nic in range(nics)
            for card in range(cards)
            if Link.PIX <= reach(nic, card) <= level
        ]
        for group in components(cards + nics, near):
            mask = sum(1 << device for device in group if device < cards)
            below = tuple(device - cards for device in group if device >= cards)
            if mask and len(group) > 1:
                found.setdefault((mask, below), Switch(level, mask, below))
    return tuple(sorted(found.values(), key=lambda switch: (switch.level, _first_card(switch.cards))))


def components(count: int, joined: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Connected groups of 0..count-1, each ascending, in order of their first member."""
    group = list(range(count))
    for a, b in joined:
        low, high = sorted((group[a], group[b]))
        if low != high:
            group = [low if label == high else label for label in group]
    return [[i for i in range(count) if group[i] == label] for label in sorted(set(group))]


def derive_edges(
    switches: Sequence[Switch], domains: Sequence[int], nics: Sequence[str], uplink_mbs: int, socket_mbs: int
) -> tuple[Edge, ...]:
    """At most `MAX_EDGES` edges: cascades, switches of several cards, the socket link, cards with a NIC.

    `domains[card]` is the card's locality group, -1 where nobody knows. All traffic between sockets shares
    one edge: the matrix does not say which sockets have a link of their own.
    """
    shared = [s for s in switches if s.cards & (s.cards - 1)]
    tiers = [
        [_uplink(s, nics, uplink_mbs) for s in shared if s.level is Link.PXB],
        [_uplink(s, nics, uplink_mbs) for s in shared if s.level is Link.PIX],
        _socket_link(domains, socket_mbs),
        [_uplink(s, nics, uplink_mbs) for s in switches if s not in shared],
    ]
    edges: list[Edge] = []
    for tier in tiers:
        if len(edges) + len(tier) <= MAX_EDGES:
            edges += tier
    return tuple(edges)


def _socket_link(domains: Sequence[int], capacity: int) -> list[Edge]:
    known = [card for card, domain in enumerate(domains) if domain >= 0]
    if len({domains[card] for card in known}) < 2:
        return []
    return [Edge("sockets", EdgeKind.SOCKET, capacity, sum(1 << card for card in known))]


def _uplink(switch: Switch, nics: Sequence[str], capacity: int) -> Edge:
    cards = "-".join(str(card) for card in range(switch.cards.bit_length()) if switch.cards >> card & 1)
    return Edge(
        f"{switch.level.name.lower()}-{cards}",
        EdgeKind.UPLINK,
        capacity,
        switch.cards,
        tuple(nics[nic] for nic in switch.nics),
    )


def _first_card(mask: int) -> int:
    return (mask & -mask).bit_length()
