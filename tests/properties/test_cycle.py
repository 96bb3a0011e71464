"""What makes a cycle on a large site short changes no plan: ends kept, rows compiled, answers repeated.

And whoever is passed over because one like it was refused would have been refused.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.control.encode import encode_json
from aliquot.core.again import Again
from aliquot.core.events import Event, JobSubmitted
from aliquot.core.hopeless import Hopeless
from aliquot.core.passing import Pass
from aliquot.core.planner import Memo, plan
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.records import Frozen, JobRecord
from aliquot.core.settings import Backfill, Order, Overrun, Preemption, Rescue, Settings
from aliquot.core.steps import Plan, Reserve, Wait
from tests.properties.test_planner import Planned, policy

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RANDOMS = st.randoms(use_true_random=False)
STEPS = st.integers(30, 90)
QUEUES = (
    Queue("a", quotas=(Quota(CARDS, 3000, borrowing=4000),)),
    Queue("b", quotas=(Quota(CARDS, 2000),), weight=500),
    Queue("b/c"),
)
EAGER = Backfill(overdue_ms=3_000, overdue_wide_ms=1_000, wide_cards=3, reservations=3, first=2)
FULL = policy(
    "best-fit",
    backfill=EAGER,
    queues=QUEUES,
    order=Order(aging_ms=2_000, aging_ceiling=3, half_life_ms=20_000),
    overrun=Overrun(least_ms=500, again_milli=300),
)
HOWS = [
    pytest.param(FULL, id="backfill"),
    pytest.param(replace(FULL, preemption=Preemption(per_plan=2, grace_ms=500)), id="preemption"),
    pytest.param(replace(FULL, rescue=Rescue(share=0.5, tidy_from_milli=0)), id="moves"),
    pytest.param(replace(FULL, backfill=None), id="no-reservations"),
]


class Unaware(Again):
    """Nobody is like anybody."""

    def key(self, *_: object) -> None:
        """Every job is looked at."""
        return


class Hopeful(Hopeless):
    """Everybody has a turn."""

    def note(self, record: JobRecord) -> None:
        """Nobody is passed over."""


class Timed(Planned):
    """A history with queues, priorities and estimates, planned with a warm memo, and again in another way."""

    def __init__(self, random: Random, how: Settings) -> None:
        self.other = Memo()
        super().__init__(random, how)

    def record(self, *events: Event) -> None:
        """Jobs get what the plain histories do not have."""
        super().record(*(self._timed(event) for event in events))

    def _timed(self, event: Event) -> Event:
        if not isinstance(event, JobSubmitted):
            return event
        chance = self.random
        job = replace(
            event.job,
            estimate_ms=chance.choice([None, 1_000, 5_000, 5_000, 20_000]),
            queue=chance.choice(["a", "b", "b/c"]),
            priority=chance.choice([0, 0, 1, 5]),
        )
        return JobSubmitted(event.at, job)


class Compiled(Timed):
    """Each plan is made again by the compiled half."""

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        plain = super().decide(seen)
        quick = plan(seen, replace(self.how, engine="numba"), self.at, self.other)
        assert encode_json(plain) == encode_json(quick)
        return plain


class Thorough(Timed):
    """Each plan is made again from nothing, every job by itself."""

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        warm = super().decide(seen)
        if seen.pending:
            again = Pass(seen, self.how, self.at, Memo(), None, again=Unaware).run()
            assert encode_json(warm) == encode_json(again)
        return warm


FEWER = replace(FULL, backfill=replace(EAGER, reservations=1, first=1))
TURNS = [
    pytest.param(FULL, id="backfill"),
    pytest.param(FEWER, id="one-reservation"),
    pytest.param(replace(FEWER, preemption=Preemption(work=20, grace_ms=500)), id="preemption"),
    pytest.param(replace(FULL, backfill=None, preemption=Preemption(per_plan=2)), id="no-reservations"),
]


class Patient(Timed):
    """Each plan is made again with a turn for everybody: the same but for what those are told who wait."""

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        short = super().decide(seen)
        if seen.pending:
            full = Pass(seen, self.how, self.at, Memo(), None, hopeless=Hopeful).run()
            assert full.wake_ms == short.wake_ms
            assert acts(full) == acts(short)
            assert {step.job for step in waits(short)} <= {step.job for step in waits(full)}
        return short


def acts(made: Plan) -> list[object]:
    """All that is done."""
    return [step for step in made.steps if not isinstance(step, Wait)]


def waits(made: Plan) -> list[Wait]:
    """Who is told to wait."""
    return [step for step in made.steps if isinstance(step, Wait)]


@pytest.mark.parametrize("how", TURNS)
@FEW
@given(random=RANDOMS, steps=STEPS)
def test_a_turn_for_everybody_makes_the_same_plan(how: Settings, random: Random, steps: int) -> None:
    Patient(random, how).run(steps)


@pytest.mark.parametrize("how", HOWS)
@FEW
@given(random=RANDOMS, steps=STEPS)
def test_looking_at_every_job_by_itself_makes_the_same_plan(
    how: Settings, random: Random, steps: int
) -> None:
    Thorough(random, how).run(steps)


@pytest.mark.parametrize("how", HOWS[:2])
def test_the_compiled_look_ahead_makes_the_same_plan(how: Settings) -> None:
    histories = [Compiled(Random(seed), how) for seed in range(4)]
    for history in histories:
        history.run(100)
    steps = [step for history in histories for made in history.plans for step in made.steps]
    assert any(isinstance(step, Reserve) and not step.firm for step in steps)
