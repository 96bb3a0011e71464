"""The shipped facts hold together: names are unique, sizes plausible, wirings as machines print them."""

from __future__ import annotations

from collections import Counter

import pytest

from aliquot.catalog import MachineShape, load_catalog
from aliquot.core.columns import MAX_CARDS, MAX_NUMA
from aliquot.core.inventory import CardModel, Profile, accepts, models_by_name, unmet
from aliquot.core.topology.links import Link
from aliquot.core.topology.sets import best_set
from aliquot.core.topology.wiring import Fabric, nearest_nics

CATALOG = load_catalog()
OPENB = ("P100", "T4", "V100M16", "V100M32", "G1", "G2", "G3", "A10")


def test_every_name_and_alias_stands_for_one_model() -> None:
    words = [word.casefold() for m in CATALOG.models().values() for word in (m.name, *m.aliases)]
    assert [word for word, times in Counter(words).items() if times > 1] == []


def test_a_family_never_hides_a_model_of_its_name() -> None:
    by_name = models_by_name(CATALOG.models())
    clashes = [
        family
        for family, names in CATALOG.families().items()
        if family.casefold() in by_name and by_name[family.casefold()].name not in names
    ]
    assert clashes == []


@pytest.mark.parametrize("model", CATALOG.models().values(), ids=CATALOG.models().keys())
def test_a_model_is_plausible(model: CardModel) -> None:
    assert 8_000 < model.memory_mib < 300_000
    assert 0 <= model.reserved_mib < model.memory_mib / 20
    assert model.bandwidth_gbs is None or 300 <= model.bandwidth_gbs <= 10_000
    assert all(1_000 < gflops < 20_000_000 for _, gflops in model.gflops)


@pytest.mark.parametrize("word", OPENB)
def test_the_public_trace_finds_its_models(word: str) -> None:
    assert word.casefold() in models_by_name(CATALOG.models())


def test_what_the_driver_keeps_is_not_usable() -> None:
    assert CATALOG.models()["T4"].usable_mib == 15360 - 443


def test_sizes_are_the_drivers_and_not_the_brochures() -> None:
    assert CATALOG.models()["H100-SXM5-80GB"].memory_mib == 81559


def test_a_profile_finds_what_has_300_tflops_of_bf16_and_names_what_lacks_it() -> None:
    profile = Profile(memory_mib=40_000, gflops=(("bf16", 300_000),))
    fit = {name for name, model in CATALOG.models().items() if accepts(profile, model)}
    assert {"A100-SXM4-40GB", "L40S", "H100-SXM5-80GB"} <= fit
    assert not {"V100-SXM2-32GB", "T4", "A10", "G2"} & fit
    assert unmet(Profile(gflops=(("bf16", 1),)), CATALOG.models()["G2"]) == ["bf16 GFLOP/s unknown < 1"]


def test_a_bridge_that_may_be_there_never_meets_a_minimum() -> None:
    assert unmet(Profile(link_gbs=100), CATALOG.models()["A100-PCIE-40GB"])
    assert not unmet(Profile(link_gbs=600), CATALOG.models()["A100-SXM4-40GB"])


def test_every_doubt_about_a_model_can_be_read() -> None:
    assert any("nominal" in remark for remark in CATALOG.remarks("G2"))
    assert CATALOG.remarks("L40S") == ()


@pytest.mark.parametrize("shape", CATALOG.shapes().values(), ids=CATALOG.shapes().keys())
def test_a_shape_is_a_whole_machine(shape: MachineShape) -> None:
    node = shape.node
    assert 1 <= len(node.cards) <= MAX_CARDS
    assert len(node.numa) <= MAX_NUMA
    assert all(card.numa is None or card.numa < len(node.numa) for card in node.cards)
    assert node.wiring is None or node.wiring.n == len(node.cards)
    assert not node.numa or sum(part.cpu_milli for part in node.numa) == node.cpu_milli
    assert not node.numa or sum(part.host_mib for part in node.numa) == node.host_mib
    assert node.price_cents_per_card is None or node.price_cents_per_card > 0
    assert shape.about


def test_shapes_of_one_two_four_and_eight_cards_are_there() -> None:
    assert {len(shape.node.cards) for shape in CATALOG.shapes().values()} == {1, 2, 4, 8}


def test_a_switched_board_is_uniform_and_its_cards_have_a_near_port() -> None:
    wiring = CATALOG.machines()["dgx-a100-320"].wiring
    assert wiring is not None
    assert wiring.fabric is Fabric.UNIFORM
    assert wiring.nvlinks(0, 7) == 12
    assert nearest_nics(wiring, 0) == (Link.PXB, (0, 1))


def test_a_cube_mesh_gives_a_quad_to_four_cards() -> None:
    wiring = CATALOG.machines()["dgx-1-v100-16"].wiring
    assert wiring is not None
    assert wiring.fabric is Fabric.PARTIAL
    links = [sum(wiring.nvlinks(card, other) for other in range(8)) for card in range(8)]
    assert links == [6] * 8
    choice = best_set(wiring, wiring.every, 4, require_nvlink=True)
    assert choice is not None
    assert choice.mask == 0b1111


def test_cards_on_pcie_have_no_nvlink_and_that_is_known() -> None:
    wiring = CATALOG.machines()["pcie-l40s-4"].wiring
    assert wiring is not None
    assert wiring.fabric is Fabric.NONE
    assert (wiring.level(0, 1), wiring.level(1, 2)) == (Link.NODE, Link.SYS)


def test_a_cloud_instance_nobody_described_has_an_unknown_wiring() -> None:
    assert CATALOG.machines()["aws-g4dn.12xlarge"].wiring is None
    assert CATALOG.shapes()["aws-p4d.24xlarge"].rdma == ("EFA",)
