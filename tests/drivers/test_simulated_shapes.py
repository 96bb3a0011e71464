"""The machines that can be simulated by name or from a document."""

from __future__ import annotations

import pytest

from aliquot.core.errors import SpecError
from aliquot.core.ids import NodeId, SiteId
from aliquot.core.inventory import CardModel, Numa
from aliquot.core.topology.links import Link
from aliquot.core.topology.wiring import Fabric
from aliquot.drivers.nvml import Found
from aliquot.drivers.nvml.host import Host
from aliquot.drivers.simulated import SHAPES, Shape, SimulatedInventory, find_shape
from aliquot.drivers.simulated.shapes import CardGroup, shape_wiring

NODE = NodeId(SiteId(""), "server")


@pytest.mark.parametrize(
    ("name", "cards", "fabric"),
    [
        ("dgx-h100", 8, Fabric.UNIFORM),
        ("a100-40x8", 8, Fabric.UNIFORM),
        ("l40s-4", 4, Fabric.NONE),
        ("mixed", 5, Fabric.PARTIAL),
    ],
)
def test_every_shape_makes_a_machine(
    name: str, cards: int, fabric: Fabric, models: dict[str, CardModel]
) -> None:
    seen = SimulatedInventory(NODE, find_shape(name), models).detect()
    assert isinstance(seen, Found)
    assert seen.node.wiring is not None
    assert (len(seen.node.cards), seen.node.wiring.fabric) == (cards, fabric)
    assert len({card.uuid for card in seen.cards}) == cards


def test_all_names_are_tried_above() -> None:
    assert list(SHAPES) == ["dgx-h100", "a100-40x8", "l40s-4", "mixed"]


def test_two_nodes_have_different_cards_and_one_node_the_same_after_a_restart(
    models: dict[str, CardModel],
) -> None:
    def uuids(name: str) -> list[str]:
        seen = SimulatedInventory(NodeId(SiteId(""), name), find_shape("l40s-4"), models).detect()
        assert isinstance(seen, Found)
        return [card.uuid for card in seen.cards]

    assert uuids("a") == uuids("a")
    assert not set(uuids("a")) & set(uuids("b"))


def test_a_real_host_gives_its_own_cores_and_only_the_numa_nodes_it_has(models: dict[str, CardModel]) -> None:
    host = Host(4000, 8192, (Numa(4000, 8192),))
    seen = SimulatedInventory(NODE, find_shape("dgx-h100"), models, host).detect()
    assert isinstance(seen, Found)
    assert (seen.node.cpu_milli, seen.node.numa) == (4000, host.numa)
    assert [card.numa for card in seen.node.cards] == [0] * 4 + [None] * 4


def test_cards_meet_at_switches_and_sockets_in_their_order() -> None:
    wiring = shape_wiring(Shape("x", (CardGroup("L40S", 2), CardGroup("T4")), per_switch=2))
    assert (wiring.level(0, 1), wiring.level(0, 2)) == (Link.PIX, Link.NODE)


def test_an_unknown_name_or_model_is_refused(models: dict[str, CardModel]) -> None:
    with pytest.raises(SpecError, match="one of dgx-h100"):
        find_shape("dgx-z9")
    with pytest.raises(SpecError, match="no model 'Z9'"):
        SimulatedInventory(NODE, Shape("x", (CardGroup("Z9"),)), models)
