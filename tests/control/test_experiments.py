"""Experiments: simulate, compare, replay, explain, on scenarios handed in instead of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from aliquot.bootstrap import make_sim
from aliquot.control.encode import encode_json
from aliquot.control.experiments import Experiments, ReplayAsk
from aliquot.control.whatif import Run, find_policy
from aliquot.core.errors import NotFoundError
from aliquot.core.report.result import Standing
from aliquot.core.settings import Discipline, MixSource
from aliquot.core.steps import Gate
from aliquot.core.workload import Scenario
from tests.support.build import a_job, a_node, a_request, a_scenario, an_offer
from tests.support.planning import settings

HOUR = 3_600_000
POLICIES = (
    ("packed", settings()),
    ("whole-card-fifo", settings("spread", shared=False, discipline=Discipline.STRICT, by_priority=False)),
    ("learnt", settings("future-packing", mix_source=MixSource.WINDOW)),
)
PATHS = (Path("site.yaml"),)


def scenario() -> Scenario:
    """Two machines of two cards; four slices, then a job for two whole cards, then one for three."""
    offers = [an_offer(a_job(f"s{seq}", a_request(1, compute=250), seq=seq), HOUR) for seq in range(4)]
    offers.append(an_offer(a_job("pair", cards=2, at=60_000, seq=4), HOUR))
    offers.append(an_offer(a_job("never", cards=3, at=60_000, seq=5), HOUR))
    made = a_scenario([a_node("a", 2), a_node("b", 2)], offers)
    return Scenario(made.name, made.nodes, made.offers, POLICIES)


def load(paths: Sequence[Path]) -> Scenario:
    return scenario()


def experiments() -> Experiments:
    return Experiments(make_sim, load, {"openb": lambda ask: scenario()})


def test_one_run_under_the_first_policy_or_the_one_named() -> None:
    first = experiments().simulate(PATHS, None, None)
    named = experiments().simulate(PATHS, "whole-card-fifo", 7)
    assert (first.policy, first.seed, first.standing) == ("packed", 0, Standing.WHAT_IF)
    assert (named.policy, named.seed) == ("whole-card-fifo", 7)
    assert (first.scorecard.jobs, first.scorecard.finished) == (6, 5)


def test_jobs_that_can_never_fit_are_counted() -> None:
    assert experiments().simulate(PATHS, None, None).scorecard.never == 1


def test_slices_share_a_card_and_whole_cards_keep_the_pair_waiting() -> None:
    packed, whole = experiments().compare(PATHS, ["packed", "whole-card-fifo"], None)
    assert packed.scorecard.wait_max_ms == 0
    assert whole.scorecard.wait_max_ms == HOUR - 60_000


def test_the_same_run_gives_the_same_bytes() -> None:
    assert encode_json(experiments().compare(PATHS, [], None)) == encode_json(
        experiments().compare(PATHS, [], None)
    )


def test_progress_is_told_job_by_job() -> None:
    told: list[tuple[int, int]] = []
    experiments().simulate(PATHS, None, None, lambda done, total: told.append((done, total)))
    assert told == [(4, 6), (6, 6)]


def test_a_replay_is_a_replay_and_takes_changes() -> None:
    result = experiments().replay("openb", ReplayAsk("any", 42), "packed", {"shared": False})
    assert (result.standing, result.seed) == (Standing.REPLAY, 42)
    assert result.scorecard.surplus_card_hours


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda it: it.simulate(PATHS, "pakced", None), "no policy 'pakced'; did you mean 'packed'?"),
        (
            lambda it: it.explain(PATHS, "pear", None, None, None),
            "no job 'pear' in site.yaml; did you mean 'pair'?",
        ),
        (
            lambda it: it.replay("opnb", ReplayAsk("any", 1), "packed"),
            "no trace 'opnb'; did you mean 'openb'?",
        ),
    ],
    ids=["policy", "job", "trace"],
)
def test_names_that_are_not_there(ask, told: str) -> None:  # type: ignore[no-untyped-def] # a call
    with pytest.raises(NotFoundError) as caught:
        ask(experiments())
    assert str(caught.value) == told


# --- explain -----------------------------------------------------------------------------------------------


def test_a_placed_job_with_its_runner_up() -> None:
    told = experiments().explain(PATHS, "s0", "packed", None, None)
    assert told.place is not None
    assert told.place.runner_up is not None
    assert (told.wait, told.placed_ms, told.over, told.placement) == (None, 0, False, ("best-fit",))


def test_a_waiting_job_at_a_time_with_its_place_in_the_queue() -> None:
    told = experiments().explain(PATHS, "pair", "whole-card-fifo", 30 * 60_000, None)
    assert told.wait is not None
    assert (told.wait.gate, told.position, told.waiting, told.nodes) == (Gate.FIT, 1, 2, 2)
    assert (told.place, told.placed_ms, told.at_ms) == (None, None, 30 * 60_000)


def test_later_it_is_placed_and_later_still_it_is_over() -> None:
    later = experiments().explain(PATHS, "pair", "whole-card-fifo", 90 * 60_000, None)
    assert (later.wait, later.placed_ms, later.over) == (None, HOUR, False)
    done = experiments().explain(PATHS, "pair", "whole-card-fifo", 5 * HOUR, None)
    assert (done.placed_ms, done.over) == (HOUR, True)


def test_before_it_is_submitted_there_is_nothing_to_say() -> None:
    told = experiments().explain(PATHS, "pair", None, 0, None)
    assert (told.place, told.wait, told.over) == (None, None, False)


def test_what_can_never_fit_is_explained_when_all_is_over() -> None:
    told = experiments().explain(PATHS, "never", None, None, None)
    assert told.wait is not None
    assert told.wait.gate is Gate.NEVER


# --- runs --------------------------------------------------------------------------------------------------


def test_the_mix_of_the_whole_list_is_known_from_the_start_or_learnt_on_the_way() -> None:
    listed = Run(scenario(), POLICIES[0][1], make_sim).finish()
    learnt = Run(scenario(), POLICIES[2][1], make_sim).finish()
    assert (listed.epoch.number, sum(count for _, count in listed.epoch.mix)) == (1, 6)
    assert sum(count for _, count in learnt.epoch.mix) == 4, "those of the first instant"


def test_a_run_may_be_stopped_at_a_time_and_gone_on_with() -> None:
    run = Run(scenario(), POLICIES[0][1], make_sim)
    *_, last = run.turns(at_ms=60_000)
    assert last <= 60_001
    assert run.world.tally.submitted == 6
    assert [wait.gate for wait in run.waits()] == [Gate.NEVER]
    run.finish()
    assert run.never() == 1
    assert not run.world.grants


def test_a_seed_replaces_the_policy_s_own() -> None:
    assert find_policy(scenario(), None, 9)[1].seed == 9
    assert find_policy(scenario(), "packed")[1] == POLICIES[0][1]
