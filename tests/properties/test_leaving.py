"""Those who leave and what is promised of it: the kernel and its twin make the same draft."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.draft import Draft
from aliquot.core.grants import Seat
from aliquot.core.memo import Memo
from aliquot.core.records import Frozen
from aliquot.core.room.leaving import Seats, make_room
from aliquot.core.siting import Desk
from tests.properties.test_victims import requests, sites
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder


def draft_after(world: Frozen, leaving: list[Seat], promised: list[Seat], *, compiled: bool) -> Draft:
    """A draft where so much was given back and taken."""
    draft = Draft(world)
    free = [seat for seat in promised if draft.can_release(seat)]
    make_room(draft, Seats(leaving), Seats(free), compiled=compiled)
    return draft


@given(sites(nodes=3), st.data())
@settings(max_examples=100, deadline=None)
def test_both_engines_make_the_same_room(site: WorldBuilder, data: st.DataObject) -> None:
    world = site.frozen
    held = [grant.seat for grants in world.grants.values() for grant in grants if grant.seat is not None]
    leaving = data.draw(st.lists(st.sampled_from(held), unique_by=id, max_size=8)) if held else []
    promised = list(leaving)
    desk = Desk(world, policy(), Memo())
    for request in data.draw(st.lists(requests, max_size=4)):  # of what is free already
        seated = desk.seat(request)
        promised += [] if seated is None else [seated.seat]
    promised = data.draw(st.permutations(promised))
    plain = draft_after(world, leaving, promised, compiled=False)
    quick = draft_after(world, leaving, promised, compiled=True)
    for mine, theirs in zip(plain.chunks, quick.chunks, strict=True):
        for column, one, other in zip(mine._fields, mine, theirs, strict=True):
            assert np.array_equal(one, other), column
    assert set(plain.take_touched()) <= set(quick.take_touched())
