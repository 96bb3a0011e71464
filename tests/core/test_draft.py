"""Scribbling on a world: nothing of it shows outside, and going back is the identity (I8)."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.draft import Draft
from aliquot.core.grants import Seat
from aliquot.core.slices import Vector
from tests.support.build import a_request
from tests.support.first_fit import seats_for
from tests.support.histories import REQUESTS, History
from tests.support.same import chunks_as_bytes, rows_of
from tests.support.worlds import WorldBuilder

HALF = Vector(500, 40_000, 500)


def test_a_draft_is_seen_by_nobody() -> None:
    site = WorldBuilder().node("n", 2)
    world = site.frozen
    draft = Draft(world)
    draft.book(Seat(0, 0b01, HALF, cpu=1_000))
    assert rows_of(draft)[0]["idle"] == 0b10
    assert rows_of(world)[0]["idle"] == 0b11
    assert site.row("n")["cpu"] == 64_000
    assert Draft(world).fits(Seat(0, 0b11, Vector(1000, 81_559, 1000), whole=True))


def test_a_draft_does_not_see_what_happens_to_the_world_meanwhile() -> None:
    site = WorldBuilder().node("n", 2).submit("j", a_request(2))
    draft = Draft(site.frozen)
    site.placed()
    assert site.free_cards == 0
    assert draft.fits(Seat(0, 0b11, Vector(1000, 81_559, 1000), whole=True))


def test_rows_touched_are_listed_once_taken_even_after_a_rollback() -> None:
    draft = Draft(WorldBuilder().nodes(3, cards=1).frozen)
    mark = draft.mark()
    draft.book(Seat(2, 0b1, HALF))
    draft.book(Seat(0, 0b1, HALF))
    draft.release(Seat(2, 0b1, HALF))
    draft.rollback(mark)
    assert draft.take_touched() == [2, 0, 2]
    assert draft.take_touched() == []


def test_what_is_strained_can_not_be_released_on_a_draft() -> None:
    site = WorldBuilder().nodes(2, cards=1).submit("j").placed().drain("n0")
    draft = Draft(site.frozen)
    assert not draft.can_release(Seat(0, 0b1, HALF))
    assert draft.can_release(Seat(1, 0b1, HALF))


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_rollback_is_the_identity_to_the_last_byte(random: Random, steps: int) -> None:
    world = History(random).run(steps).world.freeze()
    outside = chunks_as_bytes(world.chunks)
    draft = Draft(world)
    marks = []
    for _ in range(6):
        kept = draft.mark()
        marks.append((kept, chunks_as_bytes(kept)))
        record = world.nodes[random.choice(world.node_at)]
        seat = seats_for(random.choice(random.choice(REQUESTS)), record, draft)
        if seat is not None:
            draft.book(seat)
            if draft.can_release(seat) and random.random() < 0.3:
                draft.release(seat)
    for mark, kept_bytes in random.sample(marks, len(marks)):
        draft.rollback(mark)
        assert chunks_as_bytes(tuple(draft.chunks)) == kept_bytes
    assert chunks_as_bytes(world.chunks) == outside
