"""Prices and reserves follow from what is free and what is asked for, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.placement.board import Board
from aliquot.core.placement.cells import SETS
from aliquot.core.placement.kernels.future import recount, reprice
from aliquot.core.placement.mix import DemandMix, mix_of
from aliquot.core.placement.scarcity import Scarcity, Weights, band, notice, scarcity_of, sets_in
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


def test_idle_sets_are_kept_as_far_as_they_are_wanted() -> None:
    site = Site(8, 8)
    mix = mix_of([(site.shape(1000, cards=8, cpu=8000), 1), (site.shape(1000), 8)])
    scarce = counted(site, mix, Weights(beta=0.0, cap=0.0, kappa=0.1))
    # 16 free cards are one round of the mix: one request for 8 cards, two such sets
    assert (scarce.set_cards.tolist(), scarce.sets.tolist()) == ([8], [2])
    assert scarce.reserve.tolist() == pytest.approx([0.1 * 1000 * 8 * 0.5])


def test_cards_without_cpu_are_no_set() -> None:
    site = Site(8, cpu=10_000)
    mix = mix_of([(site.shape(1000, cards=2, cpu=5000), 1)])
    assert counted(site, mix, Weights()).sets.tolist() == [2]


def test_sets_with_much_cpu_are_rarer_than_sets() -> None:
    site = Site(8, 8, 8)
    site.book(1, 0, site.shape(0, cards=0, cpu=30_000))
    site.book(2, 0, site.shape(0, cards=0, cpu=30_000))
    mix = mix_of(
        [
            (site.shape(1000, cards=8, cpu=60_000), 1),
            (site.shape(1000, cards=8, cpu=17_000), 1),
            (site.shape(1000, cards=8, cpu=16_400), 2),
        ]
    )
    scarce = counted(site, mix, Weights(beta=0.0, cap=0.0, kappa=0.1))
    # 24 free cards are 3/4 of a round: 0.75 requests for the one set with 60 cores, 2.25 for any of three
    assert scarce.set_cpu.tolist() == [16_600, 60_000]
    assert scarce.sets.tolist() == [3, 1]
    assert scarce.reserve.tolist() == pytest.approx([0.1 * 8000 * 0.75, 0.1 * 8000 * 0.75])


def test_sets_on_one_model_are_kept_there_only() -> None:
    site = Site(4, 4, 8, kinds=[0, 0, 1])
    mix = mix_of([(site.shape(1000, cards=4, only=0), 1), (site.shape(1000, cards=4), 3)])
    scarce = counted(site, mix, Weights(beta=0.0, cap=0.0, kappa=0.1))
    # one round of the mix: three requests for any of four sets, one for the two of kind 0
    assert scarce.sets.tolist() == [4, 2]
    assert scarce.reserve.tolist() == pytest.approx([0.1 * 4000 * 0.75, 0.1 * 4000 * 0.5])
    assert (sets_in(scarce, 0, 4, 64_000), sets_in(scarce, 1, 4, 64_000)) == ([1, 1], [1, 0])


def test_beyond_the_limit_the_sets_that_ask_for_the_fewest_cards_are_not_kept() -> None:
    site = Site(8, cpu=2**30)
    ladder = [(site.shape(1000, cards=2, cpu=2**step), step) for step in range(1, 30)]
    scarce = counted(site, mix_of(ladder), Weights())
    assert scarce.set_count.tolist() == list(range(29, 29 - SETS, -1))


def test_half_as_much_cpu_again_is_another_band() -> None:
    assert [band(cpu) for cpu in (0, 1, 2, 3, 4, 6)] == sorted({band(cpu) for cpu in range(8)})
    assert band(32_000) == band(32_200) != band(60_200) == band(64_200)
    assert len({band(64_000), band(88_000), band(120_000)}) == 3


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_both_engines_count_alike(data: st.DataObject) -> None:
    site = Site(8, 4, 8, kinds=[0, 0, 1])
    mix = mix_of(
        [
            (site.shape(1000, cards=8, cpu=20_000), 2),
            (site.shape(1000, cards=4, cpu=9000, only=0), 3),
            (site.shape(1000, cards=2, cpu=0), 4),
            (site.shape(500, cpu=3000, only=1), 9),
        ]
    )
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    plain, compiled = (scarcity_of(mix, Weights(), board.cells.kind.shape[0], 2) for _ in range(2))
    notice(plain, board.cells, [0, 1, 2])
    for row in range(3):
        recount(board.cells, compiled, row)
    for _ in range(4):
        row, cards = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 0b1111))
        if int(site.chunks[0].idle[row]) & cards == cards:
            site.book(row, cards, site.shape(1000, cpu=data.draw(st.integers(0, 15_000))))
            board.refresh(site, (row,))
            notice(plain, board.cells, [row])
            recount(board.cells, compiled, row)
    reprice(compiled)
    for field in ("free", "sets", "row_sets", "price", "reserve"):
        assert getattr(plain, field).tolist() == getattr(compiled, field).tolist(), field


def test_counting_again_changes_nothing() -> None:
    site = Site(4, 2, kinds=[0, 1])
    board = Board(site.hardware, compiled=False)
    board.sync(site)
    scarce = scarcity_of(site.mix(), Weights(), board.cells.kind.shape[0], 2)
    notice(scarce, board.cells, [0, 1])
    before = (scarce.free.copy(), scarce.sets.copy(), scarce.price.copy(), scarce.reserve.copy())
    notice(scarce, board.cells, [1, 0, 1])
    for was, now in zip(before, (scarce.free, scarce.sets, scarce.price, scarce.reserve), strict=True):
        assert was.tolist() == now.tolist()
