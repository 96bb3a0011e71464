"""An inventory of cards that exist only here. It answers as the driver's does, trouble included.

What uses a card, and what goes wrong with it, is told by whoever plays the machine (`occupy`, `lose`, ...).
Without that the cards are idle and well. UUIDs follow from the node's name and the position, so that a
restarted service finds the same cards.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from aliquot.control.words import counted
from aliquot.core.errors import PermanentError, SpecError
from aliquot.core.ids import CardId, NodeId
from aliquot.core.inventory import Card, CardModel, Node, Numa, models_by_name
from aliquot.core.topology.wiring import Wiring, assemble
from aliquot.drivers.nvml.host import Host
from aliquot.drivers.nvml.modes import check_expected
from aliquot.drivers.nvml.readings import (
    CardFault,
    CardProcess,
    CardReading,
    CardSample,
    ComputeMode,
    Detection,
    Failed,
    Found,
    Notice,
    NoticeKind,
    ProcessKind,
    Sample,
)
from aliquot.drivers.simulated.shapes import Shape, shape_wiring
from aliquot.drivers.simulated.watch import SimulatedWatch

_FELL_OFF_THE_BUS: Final = 79


class SimulatedInventory:
    """Implements `readings.Inventory` over a shape.

    With a `host` the machine has that host's cores and memory, since jobs run on it for real; without, those
    the shape names. Raises SpecError for a model the catalogue lacks.
    """

    def __init__(
        self,
        node: NodeId,
        shape: Shape,
        models: Mapping[str, CardModel],
        host: Host | None = None,
        alive: Callable[[int], bool] | None = None,
    ) -> None:
        self._alive = alive or _is_alive
        self._changed = threading.Condition()
        self._faults: list[CardFault] = []
        host = host or shape_host(shape)
        self._cards = build_cards(node, shape, models, host)
        self._node = build_node(node, shape, self._cards, host)
        self._modes = dict.fromkeys((card.uuid for card in self._cards), ComputeMode.DEFAULT)
        self._processes: dict[CardId, dict[int, CardProcess]] = {card.uuid: {} for card in self._cards}
        self._lost: set[CardId] = set()
        self._known: tuple[CardId, ...] = ()

    def detect(self) -> Detection:
        """The cards that are not lost."""
        kept = [position for position, card in enumerate(self._cards) if card.uuid not in self._lost]
        notices = tuple(_lost_notice(card) for card in self._cards if card.uuid in self._lost)
        if not kept:
            return Failed(f"{counted(len(self._cards), 'card')} and none can be read")
        self._known = tuple(self._cards[position].uuid for position in kept)
        wiring = self._node.wiring
        node = msgspec.structs.replace(
            self._node,
            cards=tuple(self._node.cards[position] for position in kept),
            wiring=wiring and _without(wiring, kept),
        )
        cards = tuple(self._read(self._cards[position]) for position in kept)
        return Found(node, cards, notices, driver="simulated", lost=len(notices))

    def sample(self, at: int) -> Sample:
        """How the cards of the last detection are used."""
        return Sample(at, tuple(self._sample(uuid) for uuid in self._known))

    def set_compute_mode(self, card: CardId, expected: ComputeMode, wanted: ComputeMode) -> None:
        """Change who may use a card, if it is as expected."""
        self._must_answer(card)
        if self._modes[card] is not wanted:
            check_expected(card, self._modes[card], expected)
            self._modes[card] = wanted

    def watch(self) -> SimulatedWatch:
        """Listen to the cards of the last detection."""
        return SimulatedWatch(self._changed, self._faults, self._known)

    def close(self) -> None:
        """Nothing is held."""

    def occupy(self, card: CardId, pid: int, memory_mib: int | None, sm_percent: int | None = None) -> None:
        """A process uses a card from now on, as long as it lives, or uses it otherwise than before."""
        self._must_answer(card)
        process = CardProcess(pid, ProcessKind.COMPUTE, memory_mib, sm_percent=sm_percent)
        self._processes[card][pid] = process

    def release(self, card: CardId, pid: int) -> None:
        """A process uses a card no more."""
        self._processes[card].pop(pid, None)

    def lose(self, card: CardId, xid: int = _FELL_OFF_THE_BUS) -> None:
        """A card stops answering."""
        self.raise_xid(card, xid)
        self._lost.add(card)

    def find_again(self, card: CardId) -> None:
        """A lost card is back, as after a reset: nobody is on it."""
        self._lost.discard(card)
        self._processes[card].clear()

    def raise_xid(self, card: CardId, xid: int) -> None:
        """A critical error of a card."""
        with self._changed:
            self._faults.append(CardFault(card, xid))
            self._changed.notify_all()

    def _must_answer(self, card: CardId) -> None:
        if card not in self._modes or card in self._lost:
            raise PermanentError(f"{card}: {'does not answer' if card in self._lost else 'no such card'}")

    def _read(self, card: CardReading) -> CardReading:
        processes = self._users(card.uuid)
        return msgspec.structs.replace(card, compute_mode=self._modes[card.uuid], processes=processes)

    def _sample(self, uuid: CardId) -> CardSample:
        if uuid in self._lost:
            return CardSample(uuid, lost=True)
        users = self._users(uuid)
        used = sum(process.memory_mib or 0 for process in users)
        busy = min(100, sum(process.sm_percent or 0 for process in users))
        return CardSample(uuid, used, busy, 0, users)

    def _users(self, uuid: CardId) -> tuple[CardProcess, ...]:
        rows = self._processes[uuid]
        return tuple(rows[pid] for pid in sorted(rows) if self._alive(pid))


def build_cards(
    node: NodeId, shape: Shape, models: Mapping[str, CardModel], host: Host
) -> tuple[CardReading, ...]:
    """The cards of a shape. Raises SpecError for a model the catalogue lacks."""
    by_name = models_by_name(models)
    cards = []
    for index, name in enumerate(shape.models):
        model = by_name.get(name.casefold())
        if model is None:
            hint = "a name of the catalogue, such as L40S"
            raise SpecError(f"no model {name!r}", field="simulate.cards.model", value=name, hint=hint)
        numa = index // shape.per_socket
        cards.append(
            CardReading(
                index=index,
                uuid=card_uuid(node, index),
                name=model.name,
                model=model,
                pci=f"0000:{index + 1:02x}:00.0",
                memory_mib=model.memory_mib,
                reserved_mib=model.reserved_mib,
                numa=numa if numa < len(host.numa) else None,
                minor=index,
                compute_mode=ComputeMode.DEFAULT,
                persistence=True,
                processes=(),
            )
        )
    return tuple(cards)


def build_node(node: NodeId, shape: Shape, cards: tuple[CardReading, ...], host: Host) -> Node:
    """The node as the core knows it."""
    return Node(
        id=node,
        cpu_milli=host.cpu_milli,
        host_mib=host.host_mib,
        cards=tuple(Card(card.uuid, card.model, card.numa, card.pci) for card in cards),
        wiring=shape_wiring(shape),
        numa=host.numa,
    )


def shape_host(shape: Shape) -> Host:
    """The host that a shape names, divided evenly over its sockets."""
    cpu, memory = shape.cores * 1000, shape.memory_gib * 1024
    sockets = -(-shape.size // shape.per_socket)
    return Host(cpu, memory, (Numa(cpu // sockets, memory // sockets),) * sockets)


def card_uuid(node: NodeId, index: int) -> CardId:
    """The same card in every run."""
    return CardId(f"GPU-{uuid.uuid5(uuid.NAMESPACE_URL, f'aliquot-simulated/{node}/{index}')}")


def _without(wiring: Wiring, kept: list[int]) -> Wiring:
    """The wiring of the cards that are left."""
    if len(kept) == wiring.n:
        return wiring
    pairs = [(a, b) for a in kept for b in kept]
    return assemble(
        len(kept),
        tuple(wiring.level(a, b) for a, b in pairs),
        tuple(wiring.nvlinks(a, b) for a, b in pairs),
        numa=tuple(wiring.numa[card] for card in kept),
        gen=wiring.gen,
    )


def _lost_notice(card: CardReading) -> Notice:
    text = f"card {card.index} is left out: {card.uuid}: the card has fallen off the bus or does not answer"
    return Notice(NoticeKind.CARD_UNREADABLE, text, card.uuid)


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
