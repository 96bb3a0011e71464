"""What every cluster does. A new one is added to CLUSTERS and gets the whole suite.

The suite speaks through the ports alone: events seen, steps carried out. A world folds what is seen, so that
"changes nothing" means what it means to the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import pytest

from aliquot.core import commit
from aliquot.core.events import Ended, Event, JobCancelled, JobSubmitted, NodeJoined, Started, StartRefused
from aliquot.core.forecast import Forecast
from aliquot.core.ids import JobId
from aliquot.core.lifecycle import Phase
from aliquot.core.steps import Kill, Move, Place, Plan, Start
from aliquot.core.world import World
from aliquot.engines.sim.cluster import SimCluster
from aliquot.ports import Cluster
from tests.support.build import a_job, a_node, a_placement, a_request, a_scenario, an_offer
from tests.support.first_fit import first_fit
from tests.support.invariants import broken_rules
from tests.support.same import fingerprint

NODES = (a_node("n0", 2), a_node("n1", 2))
JOBS = (
    a_job("one", seq=0),
    a_job("gang", [a_request(1), a_request(1)], seq=1),
    a_job("later", at=100, seq=2),  # something that happens while the others run
)
TURNS = 50  # more than any of these stories takes

# What each implementation is made from: NODES and JOBS; "one" and "gang" work for 500 ms or more.
CLUSTERS: Final[dict[str, Callable[[], Cluster]]] = {
    "sim": lambda: SimCluster(Forecast(a_scenario(NODES, [an_offer(job, 500) for job in JOBS]))),
}


class Watched:
    """A cluster, the world folded from what it tells, and all it told."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.world, self.told = cluster, World(), list[Event]()

    def see(self) -> Sequence[Event]:
        """What happened since."""
        events = self.cluster.observe()
        self.told.extend(events)
        self.world.apply_all(events)
        assert broken_rules(self.world.freeze()) == []
        return events

    def place(self, times: int = 1) -> None:
        """Grant what fits and carry out what is owed, `times` over."""
        frozen = self.world.freeze()
        self.world.apply_all(commit.check(first_fit(frozen, 0), frozen, 0).events)
        for _ in range(times):
            self.cluster.carry_out(self.world.outstanding())

    def settle(self) -> None:
        """Turns until nothing is owed any more."""
        for _ in range(TURNS):
            if not self.world.outstanding():
                return
            self.see()
        raise AssertionError(f"still owed after {TURNS} turns: {self.world.outstanding()}")

    def finish(self) -> None:
        """The loop until nothing happens."""
        for _ in range(TURNS):
            if not self.see():
                return
            self.place()
        raise AssertionError(f"still busy after {TURNS} turns")


@pytest.fixture(params=CLUSTERS.values(), ids=CLUSTERS.keys())
def watched(request: pytest.FixtureRequest) -> Watched:
    return Watched(request.param())


def test_it_tells_of_its_nodes_before_any_job(watched: Watched) -> None:
    watched.see()
    kinds = [type(event) for event in watched.told]
    assert kinds[:2] == [NodeJoined, NodeJoined]
    assert set(kinds[2:]) == {JobSubmitted}
    assert set(watched.world.node_at) == {node.id for node in NODES}


def test_what_it_tells_can_be_written_down(watched: Watched) -> None:
    watched.finish()
    assert msgspec.json.decode(msgspec.json.encode(watched.told), type=list[Event]) == watched.told


def test_times_of_what_it_tells_never_go_back(watched: Watched) -> None:
    watched.finish()
    times = [event.at for event in watched.told]
    assert times == sorted(times)


def test_what_was_told_is_told_once(watched: Watched) -> None:
    watched.see()
    told = watched.told[:]
    watched.see()
    assert not any(event in told for event in watched.told[len(told) :])


@pytest.mark.parametrize("times", [1, 3])
def test_every_start_is_answered_however_often_it_comes(watched: Watched, times: int) -> None:
    watched.see()
    watched.place(times)
    watched.settle()
    answered = {event.job for event in watched.told if isinstance(event, (Started, StartRefused, Ended))}
    assert answered == {"one", "gang"}


def test_a_start_that_comes_again_later_changes_nothing(watched: Watched) -> None:
    watched.see()
    watched.place()
    starts = [Start(JobId("one"), 1, (watched.world.grants[JobId("one")][0].placement,))]
    watched.settle()
    watched.cluster.carry_out(starts)
    watched.finish()
    watched.cluster.carry_out(starts)
    assert watched.see() == []
    ends = [event.job for event in watched.told if isinstance(event, Ended)]
    assert sorted(ends) == ["gang", "later", "one"]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("started", [True, False], ids=["while it runs", "before it was ever started"])
def test_every_kill_is_answered_by_an_end_and_frees_the_cards(
    watched: Watched, started: bool, times: int
) -> None:
    watched.see()
    if started:
        watched.place()
        watched.settle()
    else:
        watched.place(times=0)
    watched.world.apply(JobCancelled(0, JobId("one")))
    watched.cluster.carry_out([Kill(JobId("one"), 1)] * times)
    watched.see()
    assert JobId("one") not in watched.world.jobs
    assert [event for event in watched.told if isinstance(event, Ended) and event.job == "one"] != []


def test_a_kill_of_an_attempt_long_over_spares_the_present_one(watched: Watched) -> None:
    watched.see()
    watched.place(times=0)
    watched.world.apply(StartRefused(0, JobId("one"), 1, "in use"))
    record = watched.world.jobs[JobId("one")]
    assert record.attempt == 2
    frozen = watched.world.freeze()
    again = Place(JobId("one"), 2, (a_placement(NODES[1], [1]),))
    watched.world.apply_all(commit.check(Plan(0, (again,)), frozen, 0).events)
    watched.cluster.carry_out([*watched.world.outstanding(), Kill(JobId("one"), 1)])
    watched.settle()
    assert watched.world.jobs[JobId("one")].phase is Phase.RUNNING


def test_a_move_is_answered_and_the_work_goes_on(watched: Watched) -> None:
    watched.see()
    watched.place()
    watched.settle()
    there = a_placement(NODES[1], [1])
    frozen = watched.world.freeze()
    verdict = commit.check(Plan(0, (Move(JobId("one"), 1, 0, there),)), frozen, 0)
    assert verdict.refused == ()
    watched.world.apply_all(verdict.events)
    watched.cluster.carry_out(watched.world.outstanding() * 2)
    watched.settle()
    watched.finish()
    ends = [event.attempt for event in watched.told if isinstance(event, Ended) and event.job == "one"]
    assert ends == [1]


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Move(JobId("one"), 1, 0, a_placement(NODES[0], [0])), id="a move of what does not run"),
        pytest.param(Move(JobId("one"), 7, 0, a_placement(NODES[0], [0])), id="a move of an attempt to come"),
    ],
)
def test_a_step_about_what_is_not_there_is_harmless(watched: Watched, step: Move) -> None:
    watched.see()
    before = fingerprint(watched.world.freeze())
    watched.cluster.carry_out([step])
    assert [event for event in watched.cluster.observe() if not isinstance(event, JobSubmitted)] == []
    assert fingerprint(watched.world.freeze()) == before


def test_in_the_end_all_is_quiet_and_free(watched: Watched) -> None:
    watched.finish()
    assert dict(watched.world.jobs) == {}
    assert watched.see() == []
    assert watched.world.outstanding() == []
