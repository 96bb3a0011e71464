"""The ledger under news that comes in any order, twice, late or not at all, with crashes in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from aliquot.core.events import Ended, Granted, JobSubmitted, Outcome, StartRefused
from aliquot.core.grants import GrantState
from aliquot.core.ids import JobId
from aliquot.core.planner import Memo
from aliquot.core.steps import Kill, Start
from tests.support.build import a_request
from tests.support.planning import carried_out, nodes_of, settings
from tests.support.same import excess, same_world
from tests.support.worlds import WorldBuilder

HOW = settings()
EIGHT = a_request(8)
Story = Callable[[WorldBuilder], object]


# --- a job that is deleted -------------------------------------------------------------------------------


def deleted(site: WorldBuilder) -> object:
    return site.cancel("j1")


def over(site: WorldBuilder) -> object:
    """Its processes are gone."""
    return site.ended("j1", Outcome.FAILED, attempt=1)


def killed(site: WorldBuilder) -> object:
    """Nothing more is ever told by anybody; the engine carries out what is owed, and says so."""
    assert site.world.outstanding() == [Kill(JobId("j1"), 1)]
    return over(site)


def restart(site: WorldBuilder) -> object:
    """The planner begins again from the record, and the nodes report anew."""
    site.world = site.rebuilt()
    return site.node("n", 8)


def late_update(site: WorldBuilder) -> object:
    """The object's last update, told when it is long gone."""
    first = next(event for event in site.events if isinstance(event, JobSubmitted))
    return site.happen(first).started("j1", attempt=1).stopping("j1", attempt=1)


@pytest.mark.parametrize(
    "news",
    [
        pytest.param([deleted, over], id="delete, terminate-done"),
        pytest.param([over, deleted], id="terminate-done, delete"),
        pytest.param([deleted, killed], id="delete only"),
        pytest.param([deleted, restart, killed, restart], id="delete during an outage, then resync"),
        pytest.param([deleted, over, late_update], id="an update that arrives after delete"),
    ],
)
def test_b01_the_next_job_has_the_node_in_the_first_cycle_after_the_processes_are_gone(
    news: list[Story],
) -> None:
    """B01, by the planner: in all five orders no card leaks, and nobody comes back."""
    site, memo = WorldBuilder().node("n", 8).submit("j1", EIGHT), Memo()
    carried_out(site, HOW, memo=memo)
    site.started("j1").submit("j2", EIGHT)
    for happens in news:
        if "j1" in site.holding:
            assert nodes_of(carried_out(site, HOW, memo=memo)) == {}, "while its processes live"
        happens(site)
    assert site.free_cards == 8
    assert nodes_of(carried_out(site, HOW, memo=memo)) == {"j2": ["n"]}
    assert site.holding == ["j2"]
    assert site.phase("j1") is None
    assert same_world(site.frozen, site.rebuilt().freeze())


# --- failures at every step --------------------------------------------------------------------------


def refuse(site: WorldBuilder) -> object:
    """Isolate or launch: the node turns it away."""
    return site.refused("j")


def die(site: WorldBuilder) -> object:
    """Watch: it ran, and its processes are gone."""
    return site.started("j").ended("j", Outcome.LOST)


def die_unseen(site: WorldBuilder) -> object:
    """Launch: its end is heard of before its start."""
    return site.ended("j", Outcome.LOST)


def lose_node(site: WorldBuilder) -> object:
    """Watch: the node goes, and comes back with the proof that nothing runs."""
    return site.started("j").lose("n").ended("j", Outcome.LOST).node("n", 3, cpu=9_000, numa=3)


def stop_for_others(site: WorldBuilder) -> object:
    """It winds up, and is over."""
    return site.started("j").stopping("j").ended("j", Outcome.LOST)


@pytest.mark.parametrize("seed", range(4))
def test_b08_two_hundred_failures_at_random_points_leak_nothing(seed: int) -> None:
    """B08: with crashes before and after each release is on record; one reserve and one release each."""
    random = Random(seed)
    site = WorldBuilder().node("n", 3, cpu=9_000, numa=3)
    before = site.row("n")
    site.submit("j", a_request(3, cpu=5_001))
    for attempt in range(1, 51):
        site.later(100_000)
        carried_out(site, HOW)
        assert site.free_cards == 0
        if random.random() < 0.5:  # killed behind the intent: it is owed still
            site.world = site.rebuilt()
            (start,) = site.world.outstanding()
            assert isinstance(start, Start)
        release = random.choice((refuse, die, die_unseen, lose_node, stop_for_others))
        if random.random() < 0.5:  # killed between the release and its record: told, and never written down
            known = len(site.events)
            release(site)
            del site.events[known:]
            site.world = site.rebuilt()
            assert site.free_cards == 0, "what is not on record did not happen"
        release(site)
        for _ in range(random.randrange(3)):  # told again
            site.ended("j", Outcome.LOST, attempt=attempt).refused("j", attempt=attempt)
        assert site.row("n") == before
        assert excess(site.frozen) == {}
        assert same_world(site.frozen, site.rebuilt().freeze())
    reserves = Counter(event.attempt for event in site.events if isinstance(event, Granted))
    assert reserves == dict.fromkeys(range(1, 51), 1)
    released = {event.attempt for event in site.events if isinstance(event, (Ended, StartRefused))}
    assert released == set(reserves)


# --- who comes too late ------------------------------------------------------------------------------


def test_b14_what_was_deleted_while_nobody_served_is_ended_first_and_its_card_goes_to_the_next() -> None:
    """B14: the intent is on record, so whoever serves next owes the end; nobody has to remember it."""
    site = WorldBuilder().node("gpu-3", 1).submit("j1").placed().started("j1").cancel("j1")
    site.world = site.rebuilt()
    assert site.world.outstanding() == [Kill(JobId("j1"), 1)]
    site.submit("j2")
    assert nodes_of(carried_out(site, HOW)) == {}
    site.ended("j1", Outcome.FAILED)
    assert nodes_of(carried_out(site, HOW)) == {"j2": ["gpu-3"]}


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_b14_a_stale_start_after_the_end_changes_nothing(is_rebuilt: bool) -> None:
    """B14: a delayed duplicate of what was told before the release, of the same attempt."""
    site = WorldBuilder().node("n", 1).submit("j3").placed().started("j3")
    granted = site.granted_events()[-1]
    site.ended("j3").submit("j4").placed()
    if is_rebuilt:
        site.world = site.rebuilt()
    before = site.frozen
    site.happen(granted).started("j3", attempt=1).stopping("j3", attempt=1)
    assert same_world(before, site.frozen)
    assert site.states("j4") == [GrantState.ASSUMED]
    assert [type(step) for step in site.world.outstanding()] == [Start]
