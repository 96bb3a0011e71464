"""Where more is granted than a node has, since it shrank: cards that are gone, memory and cores it lost.

Nothing is stopped for it, and nothing more is given until there is room. The verdicts are values, and
`Overbooked` tells people when a node that reports anew has brought some about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aliquot.control.words import counted
from aliquot.core.events import Event, NodeJoined
from aliquot.core.grants import Placement
from aliquot.core.ids import CardId, JobId, NodeId
from aliquot.core.records import Frozen, NodeRecord
from aliquot.core.units import FULL, format_memory
from aliquot.core.world import World

Held = tuple[JobId, Placement]


class Overbooked:
    """Watches a loop. `say` is told of each node that reports with less than is granted there."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._told: dict[NodeId, tuple[str, ...]] = {}

    def see(self, events: Sequence[Event], world: World) -> None:
        """Called after `events` were recorded and folded into `world`."""
        for node in dict.fromkeys(event.node.id for event in events if isinstance(event, NodeJoined)):
            notes = tuple(overbooked_notes(world.freeze(), node))
            if notes != self._told.get(node, ()):
                self._told[node] = notes
                for note in notes:
                    self._say(note)


def gone_cards(world: Frozen) -> dict[NodeId, dict[CardId, list[Held]]]:
    """By node that is there, cards granted on it which it has not got any more, and who holds them."""
    found: dict[NodeId, dict[CardId, list[Held]]] = {}
    for job, grants in sorted(world.grants.items()):
        for grant in grants:
            record = world.nodes[grant.placement.node]
            if not record.up:
                continue
            for card in grant.placement.cards:
                if card not in record.index_of:
                    found.setdefault(record.node.id, {}).setdefault(card, []).append((job, grant.placement))
    return found


def overbooked_notes(world: Frozen, node: NodeId) -> Iterator[str]:
    """One sentence for each thing of which `node` has less than is granted."""
    record = world.nodes[node]
    gone = gone_cards(world).get(node, {})
    if gone:
        whose = [f"{card} (job {', '.join(job for job, _ in held)})" for card, held in sorted(gone.items())]
        cards = counted(len(gone), "card")
        yield (
            f"node {node} is over-committed by {cards}, granted and not there any more: {', '.join(whose)}."
            " They stay listed until these jobs end; cancel them, or bring the cards back"
        )
    for what in _shrunk(record, _held_at(world, record)):
        yield f"node {node} is over-committed: {what}; nothing is stopped for it, and nothing more is given"


def _held_at(world: Frozen, record: NodeRecord) -> list[Placement]:
    held = world.residents.get(record.row, ())
    return [grant.placement for one in held for grant in world.grants.get(one.job, ()) if grant.id == one]


def _shrunk(record: NodeRecord, held: Sequence[Placement]) -> Iterator[str]:
    node = record.node
    cpu = sum(place.cpu for place in held) - node.cpu_milli
    host = sum(place.host for place in held) - node.host_mib
    if cpu > 0:
        yield f"{cpu / 1000:g} more {'core is' if cpu == 1000 else 'cores are'} granted than it has"
    if host > 0:
        yield f"{format_memory(host)} more of its memory is granted than it has"
    for card in node.cards:
        mine = [place.vector for place in held if card.uuid in place.cards]
        memory = sum(vector.memory for vector in mine) - card.model.usable_mib
        compute = sum(vector.compute for vector in mine) - FULL
        if memory > 0:
            yield f"{format_memory(memory)} more of {card.uuid} is granted than it has"
        if compute > 0:
            yield f"{compute / 10:g} % more of {card.uuid} is granted than it has"
