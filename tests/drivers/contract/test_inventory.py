"""What every inventory keeps, whether its cards are real or not. Both are played by a stage of one kind."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pytest

from aliquot.core.errors import PermanentError
from aliquot.core.ids import CardId, NodeId, SiteId
from aliquot.core.inventory import CardModel
from aliquot.drivers.nvml import Failed, Found, Inventory, NvmlInventory
from aliquot.drivers.nvml.modes import UnexpectedStateError
from aliquot.drivers.nvml.readings import ComputeMode
from aliquot.drivers.simulated import SimulatedInventory, find_shape
from tests.support.nvml.build import CannotBuildError
from tests.support.nvml.kernel import KernelTree
from tests.support.nvml.state import SimulatedNvml

NODE = NodeId(SiteId("lab"), "server")


class Stage(ABC):
    """Four cards and somebody who plays what happens to them."""

    inventory: Inventory

    @abstractmethod
    def occupy(self, card: CardId, pid: int, memory_mib: int | None) -> None: ...

    @abstractmethod
    def release(self, card: CardId, pid: int) -> None: ...

    @abstractmethod
    def lose(self, card: CardId) -> None: ...

    @abstractmethod
    def find_again(self, card: CardId) -> None: ...

    @abstractmethod
    def raise_xid(self, card: CardId, xid: int) -> None: ...


class DriverStage(Stage):
    def __init__(self, sim: SimulatedNvml, inventory: NvmlInventory) -> None:
        self.sim, self.inventory = sim, inventory

    def occupy(self, card: CardId, pid: int, memory_mib: int | None) -> None:
        self.sim.add_process(self._at(card), pid, memory_mib=memory_mib, follow=True)

    def release(self, card: CardId, pid: int) -> None:
        self.sim.remove_process(self._at(card), pid)

    def lose(self, card: CardId) -> None:
        self.sim.lose(self._at(card))

    def find_again(self, card: CardId) -> None:
        self.sim.find_again(self._at(card))

    def raise_xid(self, card: CardId, xid: int) -> None:
        self.sim.raise_xid(self._at(card), xid)

    def _at(self, card: CardId) -> int:
        return [self.sim.uuid(i) for i in range(4)].index(card)


class SimulatedStage(Stage):
    def __init__(self, inventory: SimulatedInventory) -> None:
        self.inventory: SimulatedInventory = inventory

    def occupy(self, card: CardId, pid: int, memory_mib: int | None) -> None:
        self.inventory.occupy(card, pid, memory_mib)

    def release(self, card: CardId, pid: int) -> None:
        self.inventory.release(card, pid)

    def lose(self, card: CardId) -> None:
        self.inventory.lose(card)

    def find_again(self, card: CardId) -> None:
        self.inventory.find_again(card)

    def raise_xid(self, card: CardId, xid: int) -> None:
        self.inventory.raise_xid(card, xid)


@pytest.fixture(params=["driver", "simulated"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, models: dict[str, CardModel]) -> Iterator[Stage]:
    if request.param == "simulated":
        yield SimulatedStage(SimulatedInventory(NODE, find_shape("l40s-4"), models))
        return
    root = KernelTree(tmp_path).host([("0-31", 128), ("32-63", 128)]).root
    try:
        sim = SimulatedNvml("l40s-4")
    except CannotBuildError as error:
        pytest.skip(str(error))
    with sim, sim.here():
        inventory = NvmlInventory(NODE, models, root)
        yield DriverStage(sim, inventory)
        inventory.close()


def detect(stage: Stage) -> Found:
    seen = stage.inventory.detect()
    assert isinstance(seen, Found), seen
    return seen


def test_cards_of_the_node_and_readings_are_the_same_in_the_same_order(stage: Stage) -> None:
    seen = detect(stage)
    assert len(seen.cards) == 4
    assert [card.uuid for card in seen.node.cards] == [card.uuid for card in seen.cards]
    assert [card.model for card in seen.node.cards] == [card.model for card in seen.cards]
    assert seen.node.wiring is not None
    assert seen.node.wiring.n == 4
    assert seen.node.wiring.numa == (0, 0, 1, 1) == tuple(card.numa for card in seen.node.cards)
    assert {card.model.name for card in seen.node.cards} == {"L40S"}


def test_looking_twice_finds_the_same(stage: Stage) -> None:
    assert detect(stage) == detect(stage)


def test_an_idle_machine_is_used_by_nobody(stage: Stage) -> None:
    cards = detect(stage).cards
    sample = stage.inventory.sample(1234)
    assert sample.at == 1234
    assert [card.uuid for card in sample.cards] == [card.uuid for card in cards]
    assert {(card.used_mib, card.processes, card.lost) for card in sample.cards} == {(0, (), False)}


def test_nothing_is_sampled_before_the_first_look(stage: Stage) -> None:
    assert stage.inventory.sample(5).cards == ()


def test_a_process_shows_with_its_memory_until_it_leaves(stage: Stage) -> None:
    card = detect(stage).cards[2].uuid
    stage.occupy(card, os.getpid(), 700)
    held = stage.inventory.sample(1).cards[2]
    stage.release(card, os.getpid())
    assert held.processes is not None
    assert [(process.pid, process.memory_mib) for process in held.processes] == [(os.getpid(), 700)]
    assert held.used_mib == 700
    assert stage.inventory.sample(2).cards[2].used_mib == 0


def test_memory_that_is_not_reported_stays_unknown(stage: Stage) -> None:
    card = detect(stage).cards[0].uuid
    stage.occupy(card, os.getpid(), None)
    processes = stage.inventory.sample(1).cards[0].processes
    assert processes is not None
    assert [process.memory_mib for process in processes] == [None]


def test_a_lost_card_is_lost_alone_and_comes_back_as_itself(stage: Stage) -> None:
    before = detect(stage)
    card = before.cards[1].uuid
    stage.lose(card)
    assert [sampled.lost for sampled in stage.inventory.sample(1).cards] == [False, True, False, False]
    after = detect(stage)
    assert (card in {kept.uuid for kept in after.cards}, after.lost, len(after.notices)) == (False, 1, 1)
    assert after.node.wiring is not None
    assert after.node.wiring.n == 3
    stage.find_again(card)
    assert detect(stage).node == before.node


def test_all_cards_lost_is_a_failure_not_an_empty_machine(stage: Stage) -> None:
    for card in detect(stage).cards:
        stage.lose(card.uuid)
    assert isinstance(stage.inventory.detect(), Failed)


def test_compute_mode_changes_only_from_what_was_expected(stage: Stage) -> None:
    card = detect(stage).cards[0].uuid
    change = stage.inventory.set_compute_mode
    change(card, ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS)
    change(card, ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS)  # already so
    with pytest.raises(UnexpectedStateError, match="EXCLUSIVE_PROCESS, expected DEFAULT"):
        change(card, ComputeMode.DEFAULT, ComputeMode.PROHIBITED)
    assert detect(stage).cards[0].compute_mode is ComputeMode.EXCLUSIVE_PROCESS


def test_a_card_nobody_found_is_refused(stage: Stage) -> None:
    detect(stage)
    with pytest.raises(PermanentError, match="GPU-nowhere"):
        stage.inventory.set_compute_mode(CardId("GPU-nowhere"), ComputeMode.DEFAULT, ComputeMode.PROHIBITED)


def test_every_watch_hears_what_comes_after_it(stage: Stage) -> None:
    card = detect(stage).cards[3].uuid
    stage.raise_xid(card, 43)
    watches = [stage.inventory.watch() for _ in range(2)]
    stage.raise_xid(card, 48)
    heard = [watch.wait(1000) for watch in watches]
    assert [[(fault.card, fault.xid) for fault in faults] for faults in heard] == [[(card, 48)]] * 2
    assert [watch.wait(0) for watch in watches] == [(), ()]
    for watch in watches:
        watch.close()


def test_waiting_ends_as_soon_as_something_comes(stage: Stage) -> None:
    card = detect(stage).cards[0].uuid
    watch = stage.inventory.watch()
    timer = threading.Timer(0.05, stage.raise_xid, (card, 79))
    timer.start()
    faults = watch.wait(5000)
    timer.join()
    watch.close()
    assert [(fault.card, fault.xid) for fault in faults] == [(card, 79)]


def test_a_lost_card_is_heard_once_and_the_others_are_still_listened_to(stage: Stage) -> None:
    cards = [card.uuid for card in detect(stage).cards]
    watch = stage.inventory.watch()
    stage.lose(cards[0])
    first = watch.wait(500)
    second = watch.wait(20)
    stage.raise_xid(cards[1], 31)
    third = watch.wait(500)
    watch.close()
    assert {fault.card for fault in first} == {cards[0]}
    assert 79 in {fault.xid for fault in first}
    assert second == ()
    assert [(fault.card, fault.xid) for fault in third] == [(cards[1], 31)]


def test_after_closing_it_can_be_used_again(stage: Stage) -> None:
    before = detect(stage)
    stage.inventory.close()
    assert detect(stage) == before
