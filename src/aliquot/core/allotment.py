"""Which cards a window closes: those it names, or as many as it asks for, chosen when it is made.

Named nodes and cards are taken as they are, whatever runs there. A number of cards is chosen so that little
has to wait or be stopped for it: cards that no other window has meanwhile, on nodes where the fewest are
expected to be busy at its start, whole nodes rather than parts of many, the last in the fixed order first.
Chosen once: a window never wanders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from aliquot.core.ids import CardId, NodeId
from aliquot.core.records import NodeRecord
from aliquot.core.windows import Closure, Part, Window

BusyUntil = Callable[[NodeRecord], Mapping[CardId, int]]
"""When each card of a node on which something runs is expected to be free, in ms."""


def allot(
    window: Window,
    nodes: Mapping[NodeId, NodeRecord],
    order: Sequence[NodeId],
    others: Iterable[Closure],
    busy_until: BusyUntil,
) -> tuple[Part, ...]:
    """What `window` closes, in the order of `order`. A node or card that is not there is closed once it is.

    Fewer cards than asked for where there are no more.
    """
    if window.count is None and not window.cards:
        return tuple(Part(node, whole=True) for node in window.nodes)
    if window.count is None:
        return _named(window, nodes, order)
    taken = _taken(window, others)
    wanted = set(window.nodes)
    spare: list[tuple[int, list[CardId], NodeId]] = []
    for place in order:
        record = nodes[place]
        if (wanted and place not in wanted) or not record.up:
            continue
        cards = _spare_cards(record, taken.get(place, frozenset()))
        if cards:
            busy = busy_until(record)
            cards.sort(key=lambda card: busy.get(card, 0) > window.start_ms)
            spare.append((sum(busy.get(card, 0) > window.start_ms for card in cards), cards, place))
    return _choose(window.count, spare, {place: at for at, place in enumerate(order)})


def _named(window: Window, nodes: Mapping[NodeId, NodeRecord], order: Sequence[NodeId]) -> tuple[Part, ...]:
    wanted = set(window.cards)
    found = []
    for place in order:
        cards = tuple(card.uuid for card in nodes[place].node.cards if card.uuid in wanted)
        if cards:
            found.append(Part(place, cards))
    return tuple(found)


def _taken(window: Window, others: Iterable[Closure]) -> dict[NodeId, frozenset[CardId] | None]:
    """What other windows close meanwhile; None: all of the node."""
    found: dict[NodeId, frozenset[CardId] | None] = {}
    for other in others:
        if other.window.start_ms >= window.end_ms or other.window.end_ms <= window.start_ms:
            continue
        for part in other.parts:
            before = found.get(part.node, frozenset())
            found[part.node] = None if part.whole or before is None else before | set(part.cards)
    return found


def _spare_cards(record: NodeRecord, taken: frozenset[CardId] | None) -> list[CardId]:
    if taken is None:
        return []
    cards = (card.uuid for card in record.node.cards)
    return [card for card in cards if card not in taken and card not in record.faulty]


def _choose(
    count: int, spare: list[tuple[int, list[CardId], NodeId]], at: Mapping[NodeId, int]
) -> tuple[Part, ...]:
    """Nodes that are used up first, the least busy before others; the rest from one that has enough."""
    left, chosen = count, {}
    pool = sorted(spare, key=lambda entry: (entry[0], -at[entry[2]]))
    while left and pool:
        fitting = [entry for entry in pool if len(entry[1]) <= left] or pool
        least = fitting[0][0]
        alike = [entry for entry in fitting if entry[0] == least]
        if len(fitting[0][1]) <= left:
            best = max(alike, key=lambda entry: len(entry[1]))
        else:
            best = min(alike, key=lambda entry: len(entry[1]))
        pool.remove(best)
        chosen[best[2]] = tuple(best[1][:left])
        left -= len(chosen[best[2]])
    return tuple(Part(place, chosen[place]) for place in sorted(chosen, key=lambda place: at[place]))
