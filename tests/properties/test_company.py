"""Shared cards through random histories: the ledger is never overbooked, and every fold divides alike."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.events import Ended, Event, JobCancelled, JobSubmitted, Outcome
from aliquot.core.image import image_of, world_of
from aliquot.core.settings import Backfill, Colocation, Preemption, SpotCap
from aliquot.core.together import Together
from aliquot.core.units import FULL
from aliquot.core.world import World
from tests.properties.test_planner import Doubted, policy
from tests.support.build import a_job, a_request
from tests.support.histories import MIX, History
from tests.support.invariants import broken_rules
from tests.support.same import fingerprint

FEW = examples(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
RANDOMS = st.randoms(use_true_random=False)
DECODER = msgspec.json.Decoder(Event)
ASKED = (
    (a_request(1, cpu=500),),
    (a_request(2),),
    (a_request(1), a_request(1)),
    (a_request(1, memory=2_000),),
)


class Crowded(History):
    """A history in which nearly all jobs may share, and ask for few shapes."""

    def _submit(self) -> None:
        self._names += 1
        memory = self.random.choice((3_000, 7_000, 20_000))
        job = a_job(
            f"j{self._names}",
            self.random.choice(ASKED),
            at=self.at,
            seq=self._names,
            priority=self.random.randrange(2),
            spot=self.random.random() < 0.2,
            estimate_ms=self.random.choice((None, 4_000)),
            together=Together(memory, compute_milli=400, bandwidth_milli=300)
            if self.random.random() < 0.9
            else None,
        )
        self.record(JobSubmitted(self.at, job))

    def step(self) -> None:
        """One thing happens; seldom to nodes, so that there is somebody to join."""
        self.at += self.random.randrange(1, 2_000)
        often = (
            Crowded._submit, Crowded._submit, History._plan, History._plan_late, History._look,
            History._carry_out, History._wind_up, History._cancel,
        )  # fmt: skip  # one list, not one name a line
        if self.random.random() < 0.05:
            History.step(self)
        else:
            self.random.choice(often)(self)


class Planned(Doubted):
    """The same, planned by the planner, whose plans hold and do not depend on its memo."""

    _submit = Crowded._submit
    step = Crowded.step


@FEW
@given(RANDOMS, st.integers(20, 80))
def test_a_company_is_the_whole_card_and_no_more(random: Random, steps: int) -> None:
    """Its parts add up to what one of them alone would book, each has at least the memory it declared."""
    history = Crowded(random)
    for _ in range(steps):
        history.step()
        world = history.world.freeze()
        assert broken_rules(world) == []
        for group in set(world.company.values()):
            held = [world.grants[job] for job in group]
            assert (
                len({frozenset(card for grant in one for card in grant.placement.cards) for one in held}) == 1
            )
            for job, grants in zip(group, held, strict=True):
                together = world.jobs[job].job.together
                assert together is not None
                assert all(grant.placement.vector.memory >= together.memory_mib for grant in grants)
            for place in (grant.placement for grant in held[0]):
                parts = [
                    grant.placement.vector
                    for grants in held
                    for grant in grants
                    if set(grant.placement.cards) == set(place.cards)
                ]
                assert sum(part.compute for part in parts) == FULL
                assert sum(part.bandwidth for part in parts) == FULL


@FEW
@given(RANDOMS, st.integers(20, 80))
def test_a_world_rebuilt_from_record_or_image_divides_alike(random: Random, steps: int) -> None:
    history = Crowded(random).run(steps)
    rebuilt = World(window=MIX.mix_window)
    rebuilt.apply_all(DECODER.decode(msgspec.json.encode(event)) for event in history.events)
    again = world_of(image_of(history.world), window=MIX.mix_window)
    assert fingerprint(rebuilt.freeze()) == fingerprint(history.world.freeze())
    assert fingerprint(again.freeze()) == fingerprint(history.world.freeze())
    for world in (again, history.world):
        for job in sorted(world.jobs):
            attempt = world.jobs[job].attempt
            world.apply_all([JobCancelled(history.at, job), Ended(history.at, job, attempt, Outcome.FAILED)])
        assert world.tides.tide.now_milli == 0
    assert again.tides.tide == history.world.tides.tide


@pytest.mark.parametrize("stops", [False, True], ids=["nobody is stopped", "others are stopped"])
@examples(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=RANDOMS, steps=st.integers(20, 60))
def test_plans_that_share_hold_and_a_warm_memo_never_changes_them(
    stops: bool, random: Random, steps: int
) -> None:
    how = replace(
        policy("best-fit"),
        colocation=Colocation(0, 3),
        backfill=Backfill(overdue_ms=5_000),
        spot_cap=SpotCap(),
        preemption=Preemption(grace_ms=1_000) if stops else None,
    )
    history = Planned(random, how)
    for _ in range(steps):
        history.step()
        assert broken_rules(history.world.freeze()) == []


def test_the_planned_histories_do_share() -> None:
    joined = 0
    for seed in range(9):
        how = replace(policy("best-fit"), colocation=Colocation(0, 3), preemption=Preemption())
        history = Planned(Random(seed), how).run(60)
        joined += sum(bool(getattr(event, "beside", ())) for event in history.events)
    assert joined > 5


def test_the_histories_do_share() -> None:
    joined, sizes = 0, set()
    for seed in range(12):
        history = Crowded(Random(seed))
        for _ in range(80):
            history.step()
            sizes |= {len(group) for group in history.world.freeze().company.values()}
        joined += sum(bool(getattr(event, "beside", ())) for event in history.events)
    assert joined > 20
    assert sizes >= {2, 3}
