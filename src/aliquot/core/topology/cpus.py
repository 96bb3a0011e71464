"""Lists of CPUs and NUMA nodes as the driver prints them: `0,3-9,11-17`.

A list is kept as its ranges, never expanded: a big machine has hundreds of threads.
"""

from __future__ import annotations

import re

Ranges = tuple[tuple[int, int], ...]  # inclusive (first, last), as printed

_LIST = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")


def parse_ranges(text: str) -> Ranges | None:
    """The ranges of a list; None when it is damaged or not ascending inside a range (`24-3`)."""
    if not _LIST.fullmatch(text):
        return None
    ranges = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ranges.append((int(first), int(last or first)))
    return tuple(ranges) if all(first <= last for first, last in ranges) else None


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether two lists share a member."""
    return any(a <= d and c <= b for a, b in left for c, d in right)


def local_node(ranges: Ranges) -> int | None:
    """The NUMA node whose CPUs are meant, or None where the list leaves it open.

    One node is itself. `0,3-9,11-17` is a CPU node followed by the memory-only nodes of cards with coherent
    memory, which the kernel numbers after all CPU nodes: node 0. `0-1` is a process that may run on either
    node, and so is `0,2`: undetermined.
    """
    (first, last), rest = ranges[0], ranges[1:]
    if first != last:
        return None
    if not rest or any(begin < end for begin, end in rest):
        return first
    return None
