"""What every clock does. A new one is added to CLOCKS and gets the whole suite."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from aliquot.core.forecast import Forecast
from aliquot.engines.local.clock import LocalClock
from aliquot.engines.local.cluster import LocalCluster
from aliquot.engines.local.launcher import Launcher
from aliquot.engines.local.places import Places
from aliquot.engines.sim.cluster import SimCluster
from aliquot.ports import Clock
from tests.support.build import a_job, a_node, a_scenario, an_offer


class Wound(NamedTuple):
    """A clock, and how to let the loop turn once more."""

    clock: Clock
    turn: Callable[[], object]
    close: Callable[[], object] = lambda: None


def virtual() -> Wound:
    """The sim engine's, in a scenario with something at 0 and at 5000."""
    offers = [an_offer(a_job("now"), at) for at in (100, 2_000)]
    scenario = a_scenario([a_node("n", 1)], [offers[0], an_offer(a_job("later", at=5_000))])
    cluster = SimCluster(Forecast(scenario))
    cluster.observe()
    return Wound(cluster, cluster.observe)


def real() -> Wound:
    """The local engine's, whose cluster sleeps until it is time."""
    folder = tempfile.TemporaryDirectory()
    clock = LocalClock()
    places = Places(Path("/none"), Path(folder.name) / "attempts", Path(folder.name) / "output")
    launcher = Launcher(places, clock.now, lambda job: None)

    def close() -> None:
        launcher.close()
        folder.cleanup()

    return Wound(clock, LocalCluster(launcher, clock).wait, close)


CLOCKS: Final[dict[str, Callable[[], Wound]]] = {"virtual": virtual, "real": real}


@pytest.fixture(params=CLOCKS.values(), ids=CLOCKS.keys())
def wound(request: pytest.FixtureRequest) -> Iterator[Wound]:
    made: Wound = request.param()
    yield made
    made.close()


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
    assert wound.clock.now() >= at


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
    for ahead in (900_000, 100, 600_000, 100):
        wound.clock.wake_at(now + ahead)
    wound.turn()
    assert now + 100 <= wound.clock.now() < now + 600_000
