"""What every placement policy promises, whichever engine runs it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from aliquot.core.placement.placer import Choice, Placer
from aliquot.core.placement.policies import POLICIES
from aliquot.core.placement.shapes import Shape
from tests.core.test_placement_site import FULL, Site

NAMES = sorted(POLICIES)
ENGINES = ["python", "numba"]
BLEND = {"best-fit": 0.7, "future-packing": 0.3}


def a_site() -> Site:
    return Site(4, 2, 8, 4, 1, 8, kinds=[0, 1, 2, 0, 3, 2], cpu=24_000)


def some_shapes(site: Site) -> list[Shape]:
    return [
        site.shape(500, cpu=2000),
        site.shape(1000, cpu=3000),
        site.shape(310, cpu=1000),
        site.shape(120, cpu=500, only=2),
        site.shape(1000, cards=2, cpu=4000),
        site.shape(400, cards=3, cpu=1000),
        site.shape(1000, cards=8, cpu=8000),
        site.shape(0, cards=0, cpu=5000, host=100_000),
    ]


def fits(site: Site, shape: Shape, choice: Choice) -> bool:
    """Straight from the columns, without any of the code under test."""
    chunk, row = site.chunks[0], choice.row
    cards = [card for card in range(8) if choice.mask >> card & 1]
    if len(cards) != shape.cards or chunk.cpu[row] < shape.cpu or chunk.host[row] < shape.host:
        return False
    kind = int(chunk.kind[row])
    if shape.eligible[kind] == 0 or any(not shape.eligible[kind] >> card & 1 for card in cards):
        return False
    if shape.whole:
        return all(int(chunk.idle[row]) >> card & 1 for card in cards)
    return all((chunk.left[row, card] >= np.array(shape.ask[kind])).all() for card in cards)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_chosen_fits_and_nothing_is_chosen_only_when_nothing_fits(name: str, engine: str) -> None:
    site, random = a_site(), Random(3)
    placer, shapes = site.placer(name, engine=engine), some_shapes(site)
    for _ in range(60):
        shape = random.choice(shapes)
        feasible = [row for row in range(site.node_count) if some_fit(site, shape, row)]
        assert placer.feasible_rows(shape) == feasible
        choice = placer.choose(shape)
        assert (choice is None) == (not feasible)
        if choice is not None:
            assert fits(site, shape, choice)
            assert choice.loss == pytest.approx(sum(value for _, value in choice.terms))
            site.book(choice.row, choice.mask, shape)
            placer.refresh(site, (choice.row,))


@pytest.mark.parametrize("name", NAMES)
def test_both_engines_choose_alike_to_the_last_bit(name: str) -> None:
    plain, compiled = filled(name, "python", 5), filled(name, "numba", 5)
    assert plain == compiled


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_a_warm_placer_equals_a_new_one(name: str, engine: str) -> None:
    site, random = a_site(), Random(9)
    warm, shapes = site.placer(name, engine=engine), some_shapes(site)
    held: list[tuple[Choice, Shape]] = []
    for turn in range(50):
        shape = random.choice(shapes)
        choice = site.place(warm, shape)
        if choice is not None:
            held.append((choice, shape))
        if held and turn % 3 == 2:
            gone, of = held.pop(random.randrange(len(held)))
            site.book(gone.row, gone.mask, of, sign=-1)
            warm.refresh(site, (gone.row,))
    cold = site.placer(name, engine=engine)
    for shape in shapes:
        assert warm.choose(shape) == cold.choose(shape)
        assert warm.explain(shape, 3) == cold.explain(shape, 3)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "random"])
def test_equal_nodes_tie_to_the_first(name: str) -> None:
    site = Site(4, 4, 4)
    choice = site.placer(name).choose(site.shape(500))
    assert choice is not None
    assert (choice.row, choice.mask) == (0, 0b0001)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_blend_chooses_what_fits(engine: str) -> None:
    site = a_site()
    placer = Placer(site.hardware, BLEND, engine=engine)
    placer.set_epoch(site.mix(), 1, seed=1)
    placer.sync(site)
    for shape in some_shapes(site):
        choice = placer.choose(shape)
        assert choice is not None
        assert fits(site, shape, choice)
        assert [name for name, _ in choice.terms] == ["best-fit", "future-packing"]


@pytest.mark.parametrize("name", NAMES)
def test_a_site_without_nodes_or_mix_gives_no_choice(name: str) -> None:
    site = Site()
    placer = Placer(site.hardware, name, engine="python")
    placer.sync(site)
    assert placer.choose(site.shape(500)) is None


def some_fit(site: Site, shape: Shape, row: int) -> bool:
    chunk, kind = site.chunks[0], site.kinds[row]
    cards = [card for card in range(8) if shape.eligible[kind] >> card & 1]
    ask = np.array(FULL if shape.whole else shape.ask[kind])
    room = [
        card for card in cards if (chunk.left[row, card] >= ask).all() and int(chunk.usable[row]) >> card & 1
    ]
    if shape.whole:
        room = [card for card in room if int(chunk.idle[row]) >> card & 1]
    enough = chunk.cpu[row] >= shape.cpu and chunk.host[row] >= shape.host
    return bool(enough and shape.eligible[kind] != 0 and len(room) >= shape.cards)


def filled(name: str, engine: str, seed: int) -> list[Choice | None]:
    site, random = a_site(), Random(seed)
    placer, shapes = site.placer(name, engine=engine), some_shapes(site)
    return [site.place(placer, random.choice(shapes)) for _ in range(50)]
