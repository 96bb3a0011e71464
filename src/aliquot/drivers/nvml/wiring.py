"""How the cards of the machine are wired, from the driver: NVLinks by their far ends, else the PCIe ancestor.

A pair's NVLink count is what both ends agree on. Links to a switch count for every other card on the
switches, provided both cards reach each other. What cannot be read is unknown, never "no link".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from aliquot.core.errors import DriverError
from aliquot.core.topology.cpus import Ranges
from aliquot.core.topology.links import NVLINK_MBS, PCIE_MBS, Link
from aliquot.core.topology.wiring import Nic, Wiring, assemble
from aliquot.drivers.nvml.answers import RefusedArgumentError
from aliquot.drivers.nvml.binding import Nvml
from aliquot.drivers.nvml.cards import set_bits
from aliquot.drivers.nvml.devices import short_address
from aliquot.drivers.nvml.readings import CardReading, Notice, NoticeKind

# The driver's topology levels. Two chips of one board (0) are as near as two cards behind one switch.
_LEVELS: Final = {0: Link.PIX, 10: Link.PIX, 20: Link.PXB, 30: Link.PHB, 40: Link.NODE, 50: Link.SYS}
_READ: Final = 0  # the binding's own constant for it is a tuple by mistake
_PEER_UNKNOWN: Final = 6
_PEER_OK: Final = 0
_SWITCH: Final = 2  # remote device types
_WORDS: Final = 16
# MB/s of one link, one way, as collective libraries reckon it, by NVLink version.
_LINK_MBS: Final = {1: 18_000, 2: 20_000, 3: 20_000, 4: 20_600, 5: 40_100}


class Links(NamedTuple):
    """One card's active NVLinks: how many to each bus address, how many to switches, and their version."""

    to_cards: dict[str, int]
    to_switch: int
    down: int
    version: int | None


class Pair(NamedTuple):
    """What two cards are to each other."""

    level: Link
    links: int
    blocked: bool


def read_wiring(
    nvml: Nvml, handles: Sequence[Any], cards: Sequence[CardReading], nics: tuple[Nic, ...]
) -> tuple[Wiring, list[Notice]]:
    """The wiring of the given cards, in their order, and what is doubtful. Never raises for a silent card."""
    n = len(cards)
    notices: list[Notice] = []
    ends = [_try_links(nvml, handle, card, notices) for handle, card in zip(handles, cards, strict=True)]
    pairs: dict[tuple[int, int], Pair] = {}
    for a, b in combinations(range(n), 2):
        pair = _read_pair(nvml, (handles[a], handles[b]), (cards[a], cards[b]), (ends[a], ends[b]), notices)
        pairs[a, b] = pairs[b, a] = pair
    notices += _doubts(cards, ends)
    known = [links for links in ends if links is not None]
    versions = {links.version for links in known if links.version is not None}
    wiring = assemble(
        n,
        tuple(Link.SELF if a == b else pairs[a, b].level for a in range(n) for b in range(n)),
        tuple(0 if a == b else pairs[a, b].links for a in range(n) for b in range(n)),
        nvlink_known=len(known) == n,
        numa=tuple(card.numa for card in cards),
        cpus=tuple(_read_cpus(nvml, handle, card) for handle, card in zip(handles, cards, strict=True)),
        nics=nics,
        gen=read_gen(nvml, handles, cards),
        link_mbs=min((_LINK_MBS.get(version, NVLINK_MBS) for version in versions), default=NVLINK_MBS),
        blocked=tuple(sum(1 << b for b in range(n) if b != a and pairs[a, b].blocked) for a in range(n)),
    )
    return wiring, notices


def read_links(nvml: Nvml, handle: Any, card: CardReading) -> Links:
    """The card's NVLinks; a number may be missing in between, one beyond the last is refused. DriverError."""
    to_cards: dict[str, int] = {}
    to_switch = down = 0
    version = None
    for number in range(int(nvml.binding.NVML_NVLINK_MAX_LINKS)):
        try:
            active = nvml.ask("nvmlDeviceGetNvLinkState", handle, number, card=card.uuid)
        except RefusedArgumentError:
            break
        if not active:
            down += active is not None
            continue
        version = nvml.ask("nvmlDeviceGetNvLinkVersion", handle, number, card=card.uuid)
        if nvml.ask("nvmlDeviceGetNvLinkRemoteDeviceType", handle, number, card=card.uuid) == _SWITCH:
            to_switch += 1
            continue
        remote = nvml.ask("nvmlDeviceGetNvLinkRemotePciInfo", handle, number, card=card.uuid)
        if remote is not None:
            address = short_address(str(remote.busId))
            to_cards[address] = to_cards.get(address, 0) + 1
    return Links(to_cards, to_switch, down, version)


def read_gen(nvml: Nvml, handles: Sequence[Any], cards: Sequence[CardReading]) -> int:
    """The slowest PCIe generation any card may run at, within those the core knows; 4 where nobody says."""
    found = []
    for handle, card in zip(handles, cards, strict=True):
        try:
            answer = nvml.ask("nvmlDeviceGetMaxPcieLinkGeneration", handle, card=card.uuid)
        except DriverError:
            continue  # the estimate does not hang on one card
        if answer is not None:
            found.append(int(answer))
    if not found:
        return 4
    return min(max(min(found), min(PCIE_MBS)), max(PCIE_MBS))


def _read_pair(
    nvml: Nvml,
    handles: tuple[Any, Any],
    cards: tuple[CardReading, CardReading],
    ends: tuple[Links | None, Links | None],
    notices: list[Notice],
) -> Pair:
    name = f"{cards[0].uuid} and {cards[1].uuid}"
    links = count_links(cards, ends)
    try:
        ancestor = nvml.ask("nvmlDeviceGetTopologyCommonAncestor", *handles, card=name)
        peer = nvml.ask("nvmlDeviceGetP2PStatus", *handles, _READ, card=name)
    except DriverError as error:
        notices.append(
            Notice(NoticeKind.WIRING_UNKNOWN, f"how near they are is unknown: {error}", cards[1].uuid)
        )
        return Pair(Link.NV if links else Link.UNKNOWN, links, False)
    level = (
        Link.NV if links else Link.UNKNOWN if ancestor is None else _LEVELS.get(int(ancestor), Link.UNKNOWN)
    )
    blocked = peer is not None and int(peer) not in {_PEER_OK, _PEER_UNKNOWN}
    return Pair(level, links, blocked)


def count_links(cards: tuple[CardReading, CardReading], ends: tuple[Links | None, Links | None]) -> int:
    """NVLinks that both ends have: straight ones, or through the switches as many as the weaker card has."""
    one, two = ends
    if one is None or two is None:
        return 0
    straight = min(one.to_cards.get(cards[1].pci, 0), two.to_cards.get(cards[0].pci, 0))
    return straight or min(one.to_switch, two.to_switch)


def _doubts(cards: Sequence[CardReading], ends: Sequence[Links | None]) -> list[Notice]:
    found = []
    for card, links in zip(cards, ends, strict=True):
        if links is not None and links.down:
            text = f"{card.uuid}: {links.down} NVLinks are down"
            found.append(Notice(NoticeKind.LINKS_UNEVEN, text, card.uuid))
    return found


def _try_links(nvml: Nvml, handle: Any, card: CardReading, notices: list[Notice]) -> Links | None:
    try:
        return read_links(nvml, handle, card)
    except DriverError as error:
        notices.append(Notice(NoticeKind.WIRING_UNKNOWN, f"NVLinks unknown: {error}", card.uuid))
        return None


def _read_cpus(nvml: Nvml, handle: Any, card: CardReading) -> Ranges | None:
    try:
        words = nvml.ask("nvmlDeviceGetCpuAffinity", handle, _WORDS, card=card.uuid)
    except DriverError:
        return None  # as good as a driver that does not say
    bits = set_bits(words) if words is not None else []
    return as_ranges(bits) or None


def as_ranges(numbers: Sequence[int]) -> Ranges:
    """Ascending numbers as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)
