"""Searches for others to stop under a bound of work: everybody's turn comes, and it comes to rest."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from aliquot.core.planner import Memo, explain_wait, plan
from aliquot.core.settings import Preemption, Settings
from aliquot.core.steps import Evict, Gate, Search, Wait
from tests.support.build import a_request
from tests.support.full_sites import singles
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

PHASES = (Phase.explicit, Phase.generate)


def how(work: int, per_plan: int = 64) -> Settings:
    """Preemption with so much work in a plan."""
    return policy(preemption=Preemption(work=work, per_plan=per_plan, grace_ms=1000))


def a_site(vain: int, *, newcomers: int = 0) -> WorldBuilder:
    """A full node of 8 cards. Who waits first can't have anybody: each of another width, and too wide.

    The last, `modest`, of lower priority than they, could stop a job of its own.
    """
    site = WorldBuilder().node("n", 8)
    singles(site, "n", priority=1)
    site.later(60_000)
    for at in range(vain):
        site.submit(f"vain-{at}", [a_request(8)] * (at + 2), priority=9)
    site.submit("modest", priority=5)
    return site


def stopped(site: WorldBuilder, rules: Settings, plans: int, come: int = 0) -> list[Evict]:
    """Who is stopped in so many plans; before each, `come` jobs come that can't have anybody either."""
    memo, found = Memo(), []
    for turn in range(plans):
        for at in range(come):
            site.submit(f"late-{turn}-{at}", [a_request(8)] * (50 + turn * come + at), priority=9)
        decided = plan(site.frozen, rules, site.at, memo)
        assert decided == plan(site.frozen, rules, site.at, Memo()), "a warm memo plans as an empty one"
        site.check(*decided.steps)
        assert site.verdict.refused == ()
        found += [step for step in decided.steps if isinstance(step, Evict)]
        if decided.wake_ms is None and not come:
            break
        site.later(1000)
    return found


@given(vain=st.integers(0, 12), work=st.integers(1, 60), per_plan=st.integers(1, 3), come=st.integers(0, 3))
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_whoever_waits_is_looked_at_in_the_end(vain: int, work: int, per_plan: int, come: int) -> None:
    site = a_site(vain)
    found = stopped(site, how(work, per_plan), 2 * vain + 4, come)
    assert [step.for_job for step in found] == ["modest"]


@given(vain=st.integers(0, 12), work=st.integers(1, 200), per_plan=st.integers(1, 4))
@settings(max_examples=20, deadline=None, phases=PHASES)
def test_it_comes_to_rest_where_nothing_happens(vain: int, work: int, per_plan: int) -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", priority=9)
    for at in range(vain):
        site.submit(f"vain-{at}", [a_request(8)] * (at + 1), priority=1)
    memo, rules = Memo(), how(work, per_plan)
    for _ in range(3 * vain + 6):
        decided = plan(site.frozen, rules, site.at, memo)
        site.check(*decided.steps)
        if not any(isinstance(step, Search) for step in decided.steps) and decided.wake_ms is None:
            return
        site.later(1000)
    raise AssertionError("it looks again and again though nothing happens")


def test_whose_turn_has_not_come_is_told_so_and_later_is_not() -> None:
    site = a_site(4)
    rules = how(1)
    first = explain_wait(site.frozen, rules, site.job("modest").job.id, Memo(), site.at)
    assert (first.gate, first.unsearched) == (Gate.FIT, True)
    stopped(site, rules, 10)
    said = plan(site.frozen, rules, site.at, Memo())
    waits = [step for step in said.steps if isinstance(step, Wait)]
    assert not any(step.unsearched for step in waits)


def test_where_one_plan_is_enough_nothing_is_recorded() -> None:
    site = a_site(4)
    steps = plan(site.frozen, how(150_000), site.at, Memo()).steps
    assert not any(isinstance(step, Search) for step in steps)
    assert any(isinstance(step, Evict) for step in steps)
