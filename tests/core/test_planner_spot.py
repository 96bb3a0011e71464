"""Spot work under a cap: it starts only on cards that others are not expected to want, and is told so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from aliquot.core.ids import JobId
from aliquot.core.planner import Memo, explain_wait
from aliquot.core.settings import HOUR_MS, Preemption, Settings, SpotCap
from aliquot.core.steps import Evict, Gate, Place, SpotRoom, Wait
from aliquot.core.tide import BIN_MS
from aliquot.core.units import FULL
from aliquot.interfaces.cli.gates import gate_lines
from tests.support.planning import carried_out, gates, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

CAPPED = settings(spot_cap=SpotCap(), preemption=Preemption())


def after_a_rush(cards: int = 8, rush: int = 5, how: Settings = CAPPED) -> WorldBuilder:
    """A node on which `rush` cards were wanted once, and nothing is now."""
    site = WorldBuilder().node("n", cards).submit("rush", cards=rush)
    carried_out(site, how)
    return site.started("rush").later(60_000).ended("rush")


def test_it_takes_what_is_not_expected_to_be_wanted_and_no_more() -> None:
    site = after_a_rush().submit("s1", cards=2, spot=True).submit("s2", cards=2, spot=True)
    decided = carried_out(site, CAPPED)
    assert nodes_of(decided) == {"s1": ["n"]}
    (wait,) = [step for step in decided.steps if isinstance(step, Wait)]
    assert (wait.job, wait.gate) == ("s2", Gate.SPOT)
    assert wait.room == SpotRoom(3 * FULL, 2 * FULL, 8 * FULL, HOUR_MS)
    assert list(gate_lines(wait)) == ["Spot work may hold 3 of 8 cards in the coming hour, and holds 2."]
    assert decided.wake_ms == BIN_MS


def test_others_take_what_they_need() -> None:
    site = after_a_rush().submit("s1", cards=3, spot=True).submit("big", cards=5)
    assert set(nodes_of(carried_out(site, CAPPED))) == {"s1", "big"}


def test_nobody_is_stopped_when_more_is_expected() -> None:
    site = after_a_rush(rush=2).submit("s1", cards=6, spot=True)
    carried_out(site, CAPPED)
    site.started("s1").submit("big", cards=4)
    decided = carried_out(site, CAPPED)
    assert [step.job for step in decided.steps if isinstance(step, Evict)] == ["s1"]
    calm = after_a_rush(rush=2).submit("s1", cards=6, spot=True)
    carried_out(calm, CAPPED)
    calm.started("s1").submit("small", cards=2)
    assert [type(step) for step in carried_out(calm, CAPPED).steps] == [Place]
    calm.started("small")
    assert not any(isinstance(step, Evict) for step in planned(calm, CAPPED).steps)


def test_without_a_cap_it_takes_whatever_is_free() -> None:
    free = replace(CAPPED, spot_cap=None)
    site = after_a_rush(how=free).submit("s1", cards=8, spot=True)
    assert nodes_of(carried_out(site, free)) == {"s1": ["n"]}


def test_a_quiet_night_makes_room_again() -> None:
    """What happened once in ten days at this time is not expected at a quantile of nine tenths."""
    site = after_a_rush().submit("s1", cards=8, spot=True)
    assert gates(carried_out(site, CAPPED)) == {"s1": Gate.SPOT}
    site.later(10 * 24 * HOUR_MS)
    assert nodes_of(carried_out(site, CAPPED)) == {"s1": ["n"]}


@pytest.mark.parametrize("drained", [False, True])
def test_cards_that_take_no_work_are_nobodys(drained: bool) -> None:
    site = after_a_rush().node("m", 4)
    if drained:
        site.drain("m")
    site.submit("s1", cards=4, spot=True)
    assert gates(carried_out(site, CAPPED)) == ({"s1": Gate.SPOT} if drained else {})


def test_explain_says_which_gate_it_is() -> None:
    site = after_a_rush().submit("s1", cards=4, spot=True)
    carried_out(site, CAPPED)
    told = explain_wait(site.frozen, CAPPED, JobId("s1"), Memo(), site.at)
    assert (told.gate, told.room) == (Gate.SPOT, SpotRoom(3 * FULL, 0, 8 * FULL, HOUR_MS))
