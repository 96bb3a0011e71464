"""Prices and reserves follow from what is free and what is asked for, by hand."""

from __future__ import annotations

import pytest

from aliquot.core.placement.board import Board
from aliquot.core.placement.mix import DemandMix, mix_of
from aliquot.core.placement.scarcity import Scarcity, Weights, notice, scarcity_of
from tests.core.test_placement_site import Site


def counted(site: Site, mix: DemandMix, weights: Weights) -> Scarcity:
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    scarce = scarcity_of(mix, weights, board.cells.kind.shape[0], len(site.hardware))
    notice(scarce, board.cells, list(range(site.node_count)))
    return scarce


def test_a_model_asked_for_beyond_its_share_has_a_price() -> None:
    site = Site(2, 8, kinds=[0, 1])
    mix = mix_of([(site.shape(1000, only=0), 1), (site.shape(1000), 3)])
    scarce = counted(site, mix, Weights(beta=1.0, cap=1.5, kappa=0.0))
    # a quarter of the demand wants kind 0: 2.5 of the 10 free cards, and it has 2
    assert scarce.price.tolist() == pytest.approx([1.25, 0.0])


def test_the_price_is_capped_where_nothing_is_left() -> None:
    site = Site(2, 8, kinds=[0, 1])
    site.book(0, 0b11, site.shape(1000))
    mix = mix_of([(site.shape(1000, only=0), 1)])
    assert counted(site, mix, Weights(1.0, 1.5, 0.0)).price[0] == 1.5


def test_demand_for_anything_prices_nothing() -> None:
    site = Site(2, 8, kinds=[0, 1])
    mix = mix_of([(site.shape(1000), 3), (site.shape(0, cards=0, only=0), 3)])
    assert counted(site, mix, Weights(1.0, 1.5, 0.0)).price.tolist() == [0.0, 0.0]


def test_whole_slots_are_kept_as_far_as_they_are_wanted() -> None:
    site = Site(8, 8)
    mix = mix_of([(site.shape(1000, cards=8, cpu=8000), 1), (site.shape(1000), 8)])
    scarce = counted(site, mix, Weights(beta=0.0, cap=0.0, kappa=0.1))
    # 16 free cards are one round of the mix: one request for 8 cards, two slots
    assert scarce.slots.tolist() == [8, 4, 2]
    assert scarce.reserve.tolist() == pytest.approx([0.0, 0.0, 0.1 * 1000 * 8 * 0.5])


def test_slots_without_cpu_do_not_count() -> None:
    site = Site(8, cpu=10_000)
    mix = mix_of([(site.shape(1000, cards=2, cpu=5000), 1)])
    assert counted(site, mix, Weights()).slots.tolist() == [2, 2, 1]


def test_counting_again_changes_nothing() -> None:
    site = Site(4, 2, kinds=[0, 1])
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    scarce = scarcity_of(site.mix(), Weights(), board.cells.kind.shape[0], 2)
    notice(scarce, board.cells, [0, 1])
    before = (scarce.free.copy(), scarce.slots.copy(), scarce.price.copy(), scarce.reserve.copy())
    notice(scarce, board.cells, [1, 0, 1])
    for was, now in zip(before, (scarce.free, scarce.slots, scarce.price, scarce.reserve), strict=True):
        assert was.tolist() == now.tolist()
