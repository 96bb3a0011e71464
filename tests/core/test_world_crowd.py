"""What is taken of cards beyond all grants is not offered, and comes back when it is gone."""

from __future__ import annotations

from aliquot.core.events import CardsCrowded, Ended, Granted, JobSubmitted, NodeJoined, Outcome
from aliquot.core.world import World
from tests.support.build import a_job, a_node, a_placement, a_request
from tests.support.invariants import broken_rules

NODE = a_node("n", 2)
FIRST, SECOND = (card.uuid for card in NODE.cards)


def left(world: World, card: int) -> list[int]:
    chunk, place = world.ledger.readable(0)
    return [int(number) for number in chunk.left[place, card]]


def idle(world: World) -> int:
    chunk, place = world.ledger.readable(0)
    return int(chunk.idle[place])


def test_a_crowded_card_offers_less_and_no_whole_card() -> None:
    world = World()
    world.apply(NodeJoined(0, NODE))
    full = left(world, 0)
    world.apply(CardsCrowded(1, NODE.id, ((FIRST, 100, 1024),)))
    assert left(world, 0) == [full[0] - 100, full[1] - 1024, full[2]]
    assert (left(world, 1), idle(world)) == (full, 0b10)
    assert broken_rules(world.freeze()) == []
    world.apply(CardsCrowded(2, NODE.id, ()))
    assert (left(world, 0), idle(world), world.strained) == (full, 0b11, frozenset())


def test_who_is_on_a_card_that_gets_crowded_stays_and_leaves_nothing_below_zero() -> None:
    world = World()
    job = a_job("j", a_request(1), at=0)
    world.apply_all([NodeJoined(0, NODE), JobSubmitted(0, job)])
    full = left(world, 0)
    world.apply(Granted(1, job.id, 1, (a_placement(NODE, [0]),)))
    world.apply(CardsCrowded(2, NODE.id, ((FIRST, 200, 4096), (SECOND, 1000, full[1]))))
    assert (left(world, 0), left(world, 1)[:2]) == ([0, 0, 0], [0, 0])
    assert broken_rules(world.freeze()) == []
    world.apply(Ended(3, job.id, 1, Outcome.SUCCEEDED))
    assert left(world, 0) == [full[0] - 200, full[1] - 4096, full[2]]
    assert broken_rules(world.freeze()) == []
