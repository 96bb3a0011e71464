"""I3 for the whole loop: wherever it is killed, it goes on as if it had not been."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.events import Ended, Granted, Started
from tests.support.invariants import broken_rules
from tests.support.runs import Run, random_scenario
from tests.support.same import same_world

FEW = settings(max_examples=20, deadline=None)
RANDOMS = st.randoms(use_true_random=False)
CRASHES = st.lists(st.none() | st.integers(0, 3), max_size=40)


@FEW
@given(RANDOMS, CRASHES)
def test_a_run_that_is_killed_again_and_again_is_the_run_that_never_was(
    random: Random, crashes: list[int | None]
) -> None:
    """No intent is lost, none is carried out twice with a second effect: event for event the same."""
    scenario = random_scenario(random)
    steady, killed = Run(scenario), Run(scenario)
    goes_on = True
    for crash in crashes:
        if goes_on:
            goes_on = killed.turn(crash)
    if goes_on:
        killed.to_the_end()
    steady.to_the_end()
    assert killed.events == steady.events
    assert same_world(killed.world.freeze(), steady.world.freeze())


@FEW
@given(RANDOMS)
def test_a_run_keeps_every_rule_and_each_attempt_starts_and_ends_once(random: Random) -> None:
    run = Run(random_scenario(random))
    while run.turn():
        assert broken_rules(run.world.freeze()) == []
    for kind in (Granted, Started, Ended):
        told = [(event.job, event.attempt) for event in run.events if isinstance(event, kind)]
        assert len(told) == len(set(told)), kind
    assert broken_rules(run.world.freeze()) == []


@FEW
@given(RANDOMS)
def test_what_ends_in_a_run_has_had_the_time_its_work_takes(random: Random) -> None:
    scenario = random_scenario(random)
    run = Run(scenario).to_the_end()
    work = {offer.job.id: offer.work_ms for offer in scenario.offers}
    began = {(event.job, event.attempt): event.at for event in run.events if isinstance(event, Started)}
    for event in run.events:
        if isinstance(event, Ended) and event.outcome.value == "succeeded":
            takes = work[event.job]
            assert takes is not None
            assert event.at - began[event.job, event.attempt] >= takes
