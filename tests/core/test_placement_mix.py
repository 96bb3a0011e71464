"""The demand mix: counted, ordered, cut."""

from __future__ import annotations

from aliquot.core.placement.mix import mix_of
from tests.core.test_placement_site import Site


def test_host_memory_makes_no_difference() -> None:
    site = Site(1)
    mix = mix_of([(site.shape(500, host=10), 2), (site.shape(500, host=99), 3)])
    assert [(demand.shape, demand.times) for demand in mix.demands] == [(site.shape(500), 5)]
    assert (mix.total, mix.milli) == (5, 2500)


def test_order_is_by_count_then_size_whatever_comes_first() -> None:
    site = Site(1)
    pairs = [(site.shape(500), 2), (site.shape(700), 2), (site.shape(100), 9)]
    expected = [100, 700, 500]
    for order in (pairs, pairs[::-1]):
        assert [demand.shape.milli for demand in mix_of(order).demands] == expected


def test_typical_covers_its_share_and_stops() -> None:
    site = Site(1)
    mix = mix_of([(site.shape(100), 90), (site.shape(200), 5), (site.shape(300), 5)])
    assert [demand.shape.milli for demand in mix.typical(95).demands] == [100, 300]
    assert mix.typical(100) == mix


def test_requests_never_asked_for_are_left_out() -> None:
    site = Site(1)
    assert mix_of([(site.shape(100), 0)]).demands == ()
