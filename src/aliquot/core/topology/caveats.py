"""What a reader of a topology must know beside it: what was missing, doubtful or unusual, by kind.

A caveat never stops anybody; input that cannot be read without guessing raises SpecError instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from aliquot.core.topology.edges import EdgeKind
from aliquot.core.topology.links import MEANING, NEAR, Link
from aliquot.core.topology.tables import subset_tables
from aliquot.core.topology.wiring import Fabric, Wiring, cards_of, nearest_nics


class CaveatKind(Enum):
    """What a caveat is about; the first six mean that the text was damaged."""

    HEADER_CUT = "header-cut"
    ROW_MISSING = "row-missing"
    ROW_DAMAGED = "row-damaged"
    LINE_IGNORED = "line-ignored"
    PAIR_UNKNOWN = "pair-unknown"
    AFFINITY_UNKNOWN = "affinity-unknown"
    NUMA_UNDETERMINED = "numa-undetermined"
    NVLINK_UNKNOWN = "nvlink-unknown"
    OFF_FABRIC = "off-fabric"
    UNEVEN_LINKS = "uneven-links"
    NOT_ALL_LINKED = "not-all-linked"
    NO_NEAR_NIC = "no-near-nic"
    EDGES_LEFT_OUT = "edges-left-out"


DAMAGE = frozenset({
    CaveatKind.HEADER_CUT,
    CaveatKind.ROW_MISSING,
    CaveatKind.ROW_DAMAGED,
    CaveatKind.LINE_IGNORED,
    CaveatKind.PAIR_UNKNOWN,
    CaveatKind.AFFINITY_UNKNOWN,
})  # fmt: skip


class Caveat(NamedTuple):
    """One sentence for a person, with a kind for a program."""

    kind: CaveatKind
    text: str


def wiring_caveats(wiring: Wiring, names: Sequence[str]) -> list[Caveat]:
    """What is unusual about a wiring, as read; `names[card]` is what to call a card."""
    return [*_fabric_caveats(wiring, names), *_nic_caveats(wiring, names), *_edge_caveats(wiring)]


def off_fabric(wiring: Wiring) -> int:
    """Mask of the cards without any NVLink in a machine whose other cards make a linked set of 3 or more.

    Usable, but a job on them leaves the fabric. Cards beside a bridged pair are no such case.
    """
    linked = sum(
        1 << card for card in range(wiring.n) if any(wiring.nvlinks(card, other) for other in range(wiring.n))
    )
    fabric = int(subset_tables(wiring).linked[linked])
    return wiring.every & ~linked if fabric >= 3 else 0


def name_all(names: Sequence[str], mask: int) -> str:
    """The names of the cards of a mask, separated by commas."""
    return ", ".join(names[card] for card in cards_of(mask))


def _fabric_caveats(wiring: Wiring, names: Sequence[str]) -> list[Caveat]:
    found = []
    lone = off_fabric(wiring)
    if lone:
        text = (
            f"{name_all(names, lone)}: no NVLink, while {wiring.n - lone.bit_count()} other cards have it;"
            " the fabric is degraded, the card is usable without it"
        )
        found.append(Caveat(CaveatKind.OFF_FABRIC, text))
    if wiring.fabric is Fabric.UNEVEN:
        counts = sorted({wiring.nvlinks(a, b) for a in range(wiring.n) for b in range(a)})
        text = f"every pair is linked, but with {counts[0]} to {counts[-1]} NVLinks: a link may be down"
        found.append(Caveat(CaveatKind.UNEVEN_LINKS, text))
    if wiring.fabric is Fabric.PARTIAL and not lone:
        largest = int(subset_tables(wiring).linked[wiring.every])
        text = f"NVLink does not join every pair: the largest linked set is {largest} of {wiring.n} cards"
        found.append(Caveat(CaveatKind.NOT_ALL_LINKED, text))
    return found


def _nic_caveats(wiring: Wiring, names: Sequence[str]) -> list[Caveat]:
    if not wiring.nics:
        return []
    levels = [nearest_nics(wiring, card)[0] for card in range(wiring.n)]
    found = []
    for level in (Link.PHB, Link.NODE, Link.SYS):
        cards = sum(1 << card for card, nearest in enumerate(levels) if nearest is level > NEAR)
        if cards:
            text = f"{name_all(names, cards)}: no near NIC, the nearest is {MEANING[level]} ({level.name})"
            found.append(Caveat(CaveatKind.NO_NEAR_NIC, text))
    return found


def _edge_caveats(wiring: Wiring) -> list[Caveat]:
    shared = [switch for switch in wiring.switches if switch.cards.bit_count() > 1]
    kept = [edge for edge in wiring.edges if edge.kind is EdgeKind.UPLINK and edge.cards.bit_count() > 1]
    left = len(shared) - len(kept)
    if not left:
        return []
    text = f"{left} of {len(shared)} shared PCIe uplinks are not budgeted: a machine has at most 8 edges"
    return [Caveat(CaveatKind.EDGES_LEFT_OUT, text)]
