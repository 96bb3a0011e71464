"""Making room by one move, and tidying."""

from __future__ import annotations

import pytest

from aliquot.core.placement.mix import mix_of
from aliquot.core.placement.placer import Placer
from aliquot.core.placement.rescue import Leaving, Movable, Tidying, improve, rescue
from aliquot.core.placement.shapes import Shape
from tests.core.test_placement_site import Site

ENGINES = ["python", "numba"]


class Tenants:
    """Who sits where, movable all of them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.held: list[Movable] = []

    def seat(self, row: int, card: int, shape: Shape) -> None:
        self.site.book(row, 1 << card, shape)
        self.held.append(Movable(row, card, shape, f"t{len(self.held)}"))

    def names(self, row: int) -> object:
        return tuple(movable.token for movable in self.on(row))

    def on(self, row: int) -> list[Movable]:
        return [movable for movable in self.held if movable.row == row]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_slice_moves_so_that_a_whole_card_is_free(engine: str) -> None:
    site = Site(1, 1)
    tenants = Tenants(site)
    tenants.seat(0, 0, site.shape(300))
    tenants.seat(1, 0, site.shape(300))
    placer = site.placer("future-packing", engine=engine)
    whole = site.shape(1000)
    assert placer.choose(whole) is None
    found = rescue(placer, whole, tenants.on)
    assert found is not None
    assert (found.moved.row, found.home.row, found.seat.row) in {(0, 1, 0), (1, 0, 1)}
    assert found.seat.mask == 0b1


@pytest.mark.parametrize("engine", ENGINES)
def test_no_move_helps_where_the_evicted_has_no_other_home(engine: str) -> None:
    site = Site(1, 1)
    tenants = Tenants(site)
    tenants.seat(0, 0, site.shape(600))
    tenants.seat(1, 0, site.shape(600))
    assert rescue(site.placer("best-fit", engine=engine), site.shape(1000), tenants.on) is None


def test_a_rescue_leaves_no_trace() -> None:
    site = Site(1, 1)
    tenants = Tenants(site)
    tenants.seat(0, 0, site.shape(300))
    tenants.seat(1, 0, site.shape(300))
    placer: Placer = site.placer("future-packing")
    before = [placer.explain(shape, 3) for shape in (site.shape(500), site.shape(100))]
    rescue(placer, site.shape(1000), tenants.on)
    assert [placer.explain(shape, 3) for shape in (site.shape(500), site.shape(100))] == before


def test_cpu_can_be_what_a_move_frees() -> None:
    site = Site(2, 1, cpu=8000)
    tenants = Tenants(site)
    tenants.seat(0, 0, site.shape(100, cpu=6000))
    placer = site.placer("best-fit")
    wide = site.shape(1000, cpu=4000)
    site.book(1, 0b1, site.shape(100, cpu=0))
    placer.refresh(site, (1,))
    assert placer.choose(wide) is None
    found = rescue(placer, wide, tenants.on)
    assert found is not None
    assert (found.home.row, found.seat.row) == (1, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_tidying_brings_together_what_was_scattered(engine: str) -> None:
    site = Site(1, 1)
    tenants = Tenants(site)
    tenants.seat(0, 0, site.shape(300))
    tenants.seat(1, 0, site.shape(300))
    mix = mix_of([(site.shape(1000), 1)])
    placer = site.placer("future-packing", mix, engine)
    found = tidying(placer, tenants, threshold=30)
    assert found is not None
    assert found.gain == pytest.approx(1000.0)
    assert tidying(placer, tenants, threshold=1000.5) is None


def tidying(placer: Placer, tenants: Tenants, threshold: float) -> Tidying | None:
    return improve(placer, Leaving(), tenants.names, tenants.on, lambda moved: False, threshold)
