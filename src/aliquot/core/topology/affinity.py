"""Which CPUs and NUMA node a card belongs to, as the matrix prints it behind the cells.

Text is kept as printed; what is read from it is only what it says without doubt.
"""

from __future__ import annotations

from typing import NamedTuple

from aliquot.core.topology.caveats import Caveat, CaveatKind
from aliquot.core.topology.cpus import Ranges, local_node, overlap, parse_ranges
from aliquot.core.topology.sheet import TAIL_COLUMNS, Sheet

_NOT_APPLICABLE = "N/A"


class Affinity(NamedTuple):
    """One card's. Texts are "" where the column is absent or could not be trusted."""

    cpu_text: str = ""
    numa_text: str = ""
    cpus: Ranges | None = None
    numa: int | None = None  # None: unknown, or more than one node is possible
    memory_numa: int | None = None  # the node of the card's own memory ("GPU NUMA ID"), where it is one


def read_affinities(cards: tuple[str, ...], sheet: Sheet) -> tuple[tuple[Affinity, ...], list[Caveat]]:
    """One affinity per card, and what is doubtful about them."""
    tails = {row.name: row.tail for row in sheet.rows}
    read = [_read(tails.get(card, ()), sheet.tail) for card in cards]
    read = [_distrust_cut(affinity, read) for affinity in read]
    return tuple(read), _doubts(cards, sheet, read)


def _read(values: tuple[str, ...], columns: tuple[str, ...]) -> Affinity:
    """A tail is read whole or not at all: with one value lost, nobody knows which."""
    named = dict(zip(columns, values, strict=False))
    cpu, numa, memory = (named.get(name, "") for name in TAIL_COLUMNS)
    ranges = {text: parse_ranges(text) for text in (cpu, numa, memory) if text and text != _NOT_APPLICABLE}
    if None in ranges.values():
        return Affinity()
    nodes, own = ranges.get(numa), ranges.get(memory)
    return Affinity(
        cpu_text=cpu,
        numa_text=numa,
        cpus=ranges.get(cpu),
        numa=local_node(nodes) if nodes else None,
        memory_numa=local_node(own) if own else None,
    )


def _distrust_cut(affinity: Affinity, others: list[Affinity]) -> Affinity:
    """Drop what looks like the beginning of another card's: CPU lists of two cards are equal or disjoint.

    `0-11,24` beside a card with `0-11,24-35`, or node `0` beside `0-1` for the same CPUs, is a row cut short.
    """
    for other in others:
        if affinity.cpus and other.cpus and affinity.cpus != other.cpus:
            begins = other.cpu_text.startswith(affinity.cpu_text)
            if begins and overlap(affinity.cpus, other.cpus):
                return Affinity()
        same_cpus = affinity.cpus is not None and affinity.cpus == other.cpus
        cut = affinity.numa_text != other.numa_text and other.numa_text.startswith(affinity.numa_text)
        if same_cpus and cut:
            return Affinity(affinity.cpu_text, "", affinity.cpus)
    return affinity


def _doubts(cards: tuple[str, ...], sheet: Sheet, read: list[Affinity]) -> list[Caveat]:
    found = []
    blank = [card for card, affinity in zip(cards, read, strict=True) if affinity == Affinity()]
    if blank and sheet.tail:
        text = f"{', '.join(blank)}: CPUs and NUMA node could not be read"
        found.append(Caveat(CaveatKind.AFFINITY_UNKNOWN, text))
    partly = [
        card
        for card, affinity in zip(cards, read, strict=True)
        if affinity != Affinity() and TAIL_COLUMNS[1] in sheet.tail and not affinity.numa_text
    ]
    if partly:
        found.append(Caveat(CaveatKind.AFFINITY_UNKNOWN, f"{', '.join(partly)}: NUMA node could not be read"))
    open_nodes = [
        f"{card} ({affinity.numa_text})"
        for card, affinity in zip(cards, read, strict=True)
        if affinity.numa is None and affinity.numa_text not in {"", _NOT_APPLICABLE}
    ]
    if open_nodes:
        text = f"{', '.join(open_nodes)}: more than one NUMA node is possible, taken as undetermined"
        found.append(Caveat(CaveatKind.NUMA_UNDETERMINED, text))
    return found
