"""What the engine sees of cards through an inventory."""

from __future__ import annotations

import os

from aliquot.core.health import Process, Reading
from aliquot.core.ids import CardId, JobId, NodeId, SiteId
from aliquot.core.inventory import CardModel
from aliquot.drivers.eyes import CardEyes
from aliquot.drivers.nvml import Found
from aliquot.drivers.nvml.readings import ComputeMode
from aliquot.drivers.simulated import SimulatedInventory, find_shape

NODE = NodeId(SiteId(""), "here")


def made(models: dict[str, CardModel]) -> tuple[SimulatedInventory, CardEyes, Found]:
    """Four cards; our own pid is of job 7. The modes are asked for at every look."""
    inventory = SimulatedInventory(NODE, find_shape("l40s-4"), models)
    found = inventory.detect()
    assert isinstance(found, Found)
    job_of = {os.getpid(): JobId("7")}.get
    return inventory, CardEyes(inventory, found, job_of, modes_s=-1), found


def test_processes_are_booked_to_their_jobs(models: dict[str, CardModel]) -> None:
    inventory, eyes, found = made(models)
    card = found.cards[1].uuid
    inventory.occupy(card, os.getpid(), 700, 40)
    inventory.occupy(card, 1, 300)
    reading = eyes.look(0)[1]
    assert reading == Reading(
        card, 1000, 40, (Process(1, 300, None, None), Process(os.getpid(), 700, 40, JobId("7")))
    )


def test_a_lost_card_stays_lost_however_often_the_machine_is_looked_at(models: dict[str, CardModel]) -> None:
    inventory, eyes, found = made(models)
    card = found.cards[2].uuid
    assert eyes.listen(0) == []
    inventory.lose(card)
    for _ in range(3):
        assert [reading.card for reading in eyes.look(0) if reading.lost] == [card]
    assert eyes.listen(0) == [(card, 79)]
    inventory.find_again(card)
    eyes.look(0)
    assert not any(reading.lost for reading in eyes.look(0))


def test_modes_that_change_are_noticed(models: dict[str, CardModel]) -> None:
    inventory, eyes, found = made(models)
    shut, own = found.cards[0].uuid, found.cards[3].uuid
    inventory.set_compute_mode(shut, ComputeMode.DEFAULT, ComputeMode.PROHIBITED)
    inventory.set_compute_mode(own, ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS)
    eyes.look(0)
    assert (list(eyes.unusable()), list(eyes.exclusive())) == ([shut], [own])


def test_modes_are_noticed_while_another_card_is_lost(models: dict[str, CardModel]) -> None:
    inventory, eyes, found = made(models)
    shut, lost = found.cards[0].uuid, found.cards[2].uuid
    inventory.lose(lost)
    inventory.set_compute_mode(shut, ComputeMode.DEFAULT, ComputeMode.PROHIBITED)
    assert [reading.card for reading in eyes.look(0) if reading.lost] == [lost]
    assert list(eyes.unusable()) == [shut]


def test_who_may_be_started_on_cards_as_they_are(models: dict[str, CardModel]) -> None:
    """I7: an id that names nothing now is given to nobody; a card for one process is given to one job."""
    inventory, eyes, found = made(models)
    good, own, lost = (card.uuid for card in found.cards[:3])
    inventory.set_compute_mode(own, ComputeMode.DEFAULT, ComputeMode.EXCLUSIVE_PROCESS)
    inventory.lose(lost)
    eyes.look(0)
    assert eyes.refusal([good, own], []) == ""
    assert eyes.refusal([good, own], [good]) == ""
    assert eyes.refusal([good, own], [own]) == f"{own} lets in one process only, and another job has it"
    assert eyes.refusal([good, lost], []) == f"{lost} is not there"
    assert eyes.refusal([CardId("GPU-swapped")], []) == "GPU-swapped is not there"
    inventory.find_again(lost)
    eyes.look(0)
    assert eyes.refusal([good, lost], []) == ""
