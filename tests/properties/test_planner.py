"""What holds for every plan: a memo never changes it, both engines make it, commit finds it true.

The histories are those of the invariants, planned by the real planner instead of first fit.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.control.encode import encode_json
from aliquot.core import commit
from aliquot.core.planner import Memo, explain_wait, plan
from aliquot.core.records import Frozen
from aliquot.core.settings import Discipline, Rescue, Settings
from aliquot.core.steps import Gate, Place, Plan, Wait, Withdraw
from tests.support.histories import MIX, History
from tests.support.invariants import broken_rules
from tests.support.same import chunks_as_bytes, excess

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RANDOMS = st.randoms(use_true_random=False)
STEPS = st.integers(20, 60)
POLICIES = ("future-packing", "fgd", "best-fit", "spread")


def policy(name: str, **changes: object) -> Settings:
    """One policy with the window mix of the histories, uncompiled."""
    return replace(MIX, policy=((name, 1.0),), engine="python", **changes)  # type: ignore[arg-type]  # fields of Settings


class Planned(History):
    """A history whose plans are made by the planner, with a memo as warm as it gets."""

    def __init__(self, random: Random, how: Settings) -> None:
        self.how, self.memo = how, Memo()
        self.plans: list[Plan] = []
        super().__init__(random)

    def decide(self, seen: Frozen) -> Plan:
        """One plan on `seen`."""
        return plan(seen, self.how, self.at, self.memo)

    def _commit(self, seen: Frozen) -> None:
        decided = self.decide(seen)
        self.plans.append(decided)
        verdict = commit.check(decided, self.world.freeze(), self.at)
        if seen.version == self.world.freeze().version:
            assert verdict.refused == (), "a plan on the world as it is holds"
        self.accepted += len(verdict.events)
        self.record(*verdict.events)


class Doubted(Planned):
    """Each plan is made again with an empty memo: the same, byte for byte (I10)."""

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        warm = super().decide(seen)
        assert encode_json(warm) == encode_json(plan(seen, self.how, self.at, Memo()))
        return warm


class Compiled(Planned):
    """Each plan is made again by the compiled kernels, also with a warm memo."""

    def __init__(self, random: Random, how: Settings) -> None:
        self.other = Memo()
        super().__init__(random, how)

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        plain = super().decide(seen)
        quick = plan(seen, replace(self.how, engine="numba"), self.at, self.other)
        assert encode_json(plain) == encode_json(quick)
        return plain


@pytest.mark.parametrize("name", POLICIES)
@FEW
@given(random=RANDOMS, steps=STEPS)
def test_a_warm_memo_never_changes_a_plan(name: str, random: Random, steps: int) -> None:
    """I10, over losses, returns, releases, swapped boards, stale worlds and new epochs."""
    Doubted(random, policy(name)).run(steps)


@FEW
@given(random=RANDOMS, steps=STEPS)
def test_a_warm_memo_never_changes_a_plan_with_moves_and_scatter(random: Random, steps: int) -> None:
    Doubted(random, policy("future-packing", rescue=Rescue(share=0.5, tidy_from_milli=0), scatter=True)).run(
        steps
    )


@FEW
@given(random=RANDOMS, steps=STEPS)
def test_a_warm_memo_never_changes_a_plan_of_weighted_policies(random: Random, steps: int) -> None:
    how = replace(policy("best-fit"), policy=(("best-fit", 0.5), ("fgd", 0.3), ("spread", 0.2)))
    Doubted(random, how).run(steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@FEW
@given(random=RANDOMS, steps=STEPS)
def test_both_engines_make_the_same_plan(name: str, random: Random, steps: int) -> None:
    Compiled(random, policy(name)).run(steps)


def test_both_engines_make_the_same_plan_in_one_long_history() -> None:
    history = Compiled(Random(11), policy("future-packing")).run(120)
    assert history.accepted


@pytest.mark.parametrize(
    "how", [policy("future-packing"), policy("spread", shared=False)], ids=["slices", "whole"]
)
@FEW
@given(random=RANDOMS, steps=STEPS)
def test_what_is_planned_keeps_every_invariant(how: Settings, random: Random, steps: int) -> None:
    """I1, I2, I5 after every step, and nothing over its capacity by any plan's doing."""
    history = Planned(random, how)
    for _ in range(steps):
        before, made = excess(history.world.freeze()), len(history.plans)
        history.step()
        now = history.world.freeze()
        assert broken_rules(now) == []
        if len(history.plans) > made:
            assert all(over <= before.get(place, 0) for place, over in excess(now).items())


@FEW
@given(random=RANDOMS, steps=STEPS)
def test_every_waiting_job_gets_one_step_and_planning_writes_nothing(random: Random, steps: int) -> None:
    history = Planned(random, policy("best-fit")).run(steps)
    seen = history.world.freeze()
    before = chunks_as_bytes(seen.chunks)
    decided = plan(seen, history.how, history.at, history.memo)
    about = [step.job for step in decided.steps if isinstance(step, (Place, Wait, Withdraw))]
    assert about == [key[3] for key in seen.pending]
    assert chunks_as_bytes(seen.chunks) == before


@FEW
@given(random=RANDOMS, steps=STEPS)
def test_reasons_always_add_up_to_the_nodes(random: Random, steps: int) -> None:
    """Whatever waits once all that fits has been placed can be explained, node by node."""
    history = Planned(random, policy("best-fit")).run(steps)
    history._plan()
    seen = history.world.freeze()
    for key in seen.pending:
        wait = explain_wait(seen, history.how, key[3], history.memo, history.at)
        if wait.gate in {Gate.FIT, Gate.NEVER, Gate.GANG, Gate.TOPOLOGY, Gate.FRAGMENTATION, Gate.RELEASE}:
            assert sum(reason.nodes for reason in wait.reasons) == seen.rows
            assert all(
                reason.best is None or reason.need is None or reason.best < reason.need or reason.best >= 0
                for reason in wait.reasons
            )
        else:
            assert wait.gate in {Gate.BACKOFF, Gate.DEPENDENCY, Gate.ARRAY} or wait.fenced
            assert wait.reasons == ()


@FEW
@given(random=RANDOMS, steps=STEPS)
def test_what_strict_order_places_comes_before_all_that_waits(random: Random, steps: int) -> None:
    history = Planned(random, policy("best-fit", discipline=Discipline.STRICT)).run(steps)
    for decided in history.plans:
        steps = [step for step in decided.steps if isinstance(step, (Place, Wait))]
        gates = [step.gate if isinstance(step, Wait) else None for step in steps]
        held = [gate for gate in gates if gate in {None, Gate.FIT, Gate.ORDER}]
        assert held == sorted(held, key=lambda gate: (gate is not None, gate is Gate.ORDER))
        assert held.count(Gate.FIT) <= 1
