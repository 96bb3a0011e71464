"""Fragmentation over the columns: hand-computed nodes, and a plain-Python twin of the published measure."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from aliquot.core.grants import bits
from aliquot.core.inventory import Node, accepts
from aliquot.core.jobs import Request
from aliquot.core.report.fragmentation import Fragmentation, measure, prepare
from aliquot.core.slices import resolve_ask
from aliquot.core.world import World
from tests.support.build import H100, L40S, T4, a_node, a_request
from tests.support.histories import REQUESTS, History
from tests.support.worlds import WorldBuilder


def reading(site: WorldBuilder, *mix: tuple[Request, int]) -> Fragmentation:
    world = site.world
    return measure(world.ledger.chunks, prepare(mix, world.kinds))


def half_a_card_taken() -> WorldBuilder:
    """Two cards, one with 500 milli left."""
    return WorldBuilder().node("n", 2).submit("half", a_request(1, compute=500)).placed()


@pytest.mark.parametrize(
    ("mix", "rate"),
    [
        pytest.param([(a_request(1, compute=500), 1)], Fraction(0), id="a half fits both cards"),
        pytest.param([(a_request(1, compute=600), 1)], Fraction(1, 3), id="the half card is a fragment"),
        pytest.param([(a_request(1), 1)], Fraction(1, 3), id="so it is for whole cards"),
        pytest.param([(a_request(2), 1)], Fraction(1), id="two whole cards do not run: all is fragment"),
        pytest.param([(a_request(0, cpu=1_000), 1)], Fraction(1), id="a cpu request uses no card"),
        pytest.param([(a_request(1, models=("T4",)), 1)], Fraction(1), id="another model is asked for"),
        pytest.param([(a_request(1, cpu=99_000), 1)], Fraction(1), id="the node lacks cpu"),
        pytest.param([(a_request(1, host=999_000), 1)], Fraction(1), id="the node lacks host memory"),
        pytest.param(
            [(a_request(1, compute=500), 3), (a_request(2), 1)], Fraction(1, 4), id="the mix weighs by count"
        ),
        pytest.param([], None, id="no mix, no measure"),
    ],
)
def test_the_share_that_the_mix_cannot_use(mix: list[tuple[Request, int]], rate: Fraction | None) -> None:
    assert reading(half_a_card_taken(), *mix).rate == rate


def test_scatter_is_what_is_missing_to_one_block() -> None:
    site = WorldBuilder().node("a", 4).node("b", 4).submit("j", cards=3).placed()
    seen = reading(site, (a_request(1), 1))
    assert (seen.free_cards, seen.largest_cards, seen.scatter) == (5, 4, Fraction(1, 5))


def test_nothing_free_has_no_rate() -> None:
    site = WorldBuilder().node("a", 1).submit("j", cards=1).placed()
    seen = reading(site, (a_request(1), 1))
    assert (seen.rate, seen.scatter) == (None, None)


@pytest.mark.parametrize(
    ("mix", "stranded"),
    [
        pytest.param([a_request(1, cpu=4_000)], 2, id="cpu for nobody"),
        pytest.param([a_request(1, cpu=4_000), a_request(1, cpu=500)], 0, id="one request still fits"),
        pytest.param([a_request(1, cpu=500, host=999_000)], 2, id="cpu is there, host memory is not"),
        pytest.param([a_request(2, cpu=2_000), a_request(1, cpu=4_000)], 2, id="the wide one lacks cpu too"),
        pytest.param([a_request(3)], 0, id="too few cards is not a lack of cpu"),
        pytest.param([a_request(1, models=("T4",))], 0, id="nobody wants these cards"),
    ],
)
def test_cards_are_stranded_when_cpu_or_memory_bars_every_request(mix: list[Request], stranded: int) -> None:
    site = WorldBuilder().node(a_node("n", 3, cpu=4_000)).submit("j", a_request(1, cpu=3_000)).placed()
    assert reading(site, *((request, 1) for request in mix)).stranded_cards == stranded


@pytest.mark.parametrize("seed", range(12))
def test_random_sites_agree_with_the_plain_twin(seed: int) -> None:
    history = History(Random(seed)).run(80)
    mix = tuple((members[0], 1 + at) for at, members in enumerate(REQUESTS))
    world = history.world
    seen = measure(world.ledger.chunks, prepare(mix, world.kinds))
    assert (seen.residual_milli, seen.fragment) == twin(world, mix)


def twin(world: World, mix: tuple[tuple[Request, int], ...]) -> tuple[int, int]:
    """The published formula, one node and one request at a time: (residual, fragment times counts)."""
    residual = fragment = 0
    for record in world.nodes.values():
        chunk, place = world.ledger.readable(record.row)
        left = {at: chunk.left[place, at].tolist() for at in bits(int(chunk.usable[place]))}
        idle = set(bits(int(chunk.idle[place])))
        host = (int(chunk.cpu[place]), int(chunk.host[place]))
        whole = sum(have[0] for have in left.values())
        residual += whole
        for request, count in mix:
            serving = served(request, record.node, left, idle)
            runs = request.cards and len(serving) >= request.cards
            runs = runs and request.cpu_milli <= host[0] and request.host_mib <= host[1]
            lost = sum(have[0] for at, have in left.items() if at not in serving) if runs else whole
            fragment += count * lost
    return residual, fragment


def served(request: Request, node: Node, left: dict[int, list[int]], idle: set[int]) -> set[int]:
    found = set()
    for at, have in left.items():
        model = node.cards[at].model
        vector = resolve_ask(request.ask, model.usable_mib) if accepts(request.profile, model) else None
        room = vector is not None and all(a >= b for a, b in zip(have, vector, strict=True))
        if room and (at in idle or not request.whole):
            found.add(at)
    return found


def test_models_of_a_mixed_site_are_told_apart() -> None:
    site = WorldBuilder()
    for name, model in (("h", H100), ("l", L40S), ("t", T4)):
        site = site.node(a_node(name, 1, model=model))
    seen = reading(site, (a_request(1, memory=20_000), 1))
    assert seen.rate == Fraction(1, 3)  # the T4 has 14,917 MiB
