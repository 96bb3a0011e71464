"""What every clock does. A new one is added to CLOCKS and gets the whole suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest

from aliquot.core.forecast import Forecast
from aliquot.engines.sim.cluster import SimCluster
from aliquot.ports import Clock
from tests.support.build import a_job, a_node, a_scenario, an_offer


class Wound(NamedTuple):
    """A clock, and how to let the loop turn once more."""

    clock: Clock
    turn: Callable[[], object]


def virtual() -> Wound:
    """The sim engine's, in a scenario with something at 0 and at 5000."""
    offers = [an_offer(a_job("now"), at) for at in (100, 2_000)]
    scenario = a_scenario([a_node("n", 1)], [offers[0], an_offer(a_job("later", at=5_000))])
    cluster = SimCluster(Forecast(scenario))
    cluster.observe()
    return Wound(cluster, cluster.observe)


CLOCKS: Final[dict[str, Callable[[], Wound]]] = {"virtual": virtual}


@pytest.fixture(params=CLOCKS.values(), ids=CLOCKS.keys())
def wound(request: pytest.FixtureRequest) -> Wound:
    made: Wound = request.param()
    return made


def test_time_is_whole_milliseconds_and_stands_still_between_turns(wound: Wound) -> None:
    assert isinstance(wound.clock.now(), int)


def test_time_never_goes_back(wound: Wound) -> None:
    seen = [wound.clock.now()]
    for ahead in (30, 10, 20):
        wound.clock.wake_at(wound.clock.now() + ahead)
        wound.turn()
        seen.append(wound.clock.now())
    assert seen == sorted(seen)


def test_the_loop_turns_again_by_then_though_nothing_happens(wound: Wound) -> None:
    at = wound.clock.now() + 40
    wound.clock.wake_at(at)
    wound.turn()
    assert wound.clock.now() <= at + 1_000, "a real clock may be a little late, none sleeps through"
    assert wound.clock.now() < 5_000


@pytest.mark.parametrize("ahead", [0, -1, -1_000_000])
def test_a_time_that_has_passed_is_now_and_holds_nothing_up(wound: Wound, ahead: int) -> None:
    before = wound.clock.now()
    wound.clock.wake_at(before + ahead)
    wound.turn()
    wound.clock.wake_at(wound.clock.now() + 5)
    wound.turn()
    assert wound.clock.now() >= before + 5


def test_of_several_times_the_earliest_comes_first(wound: Wound) -> None:
    now = wound.clock.now()
    for ahead in (300, 100, 200, 100):
        wound.clock.wake_at(now + ahead)
    wound.turn()
    assert now + 100 <= wound.clock.now() < now + 200
