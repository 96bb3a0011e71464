"""When rows have room at the first, remembered from plan to plan, against working it out anew."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from aliquot.core.jobs import Request
from aliquot.core.moments import MomentsMemo
from aliquot.core.placement.cells import I64
from aliquot.core.placement.stays import Clock
from aliquot.core.planner import Memo
from aliquot.core.records import Frozen
from aliquot.core.room.shadow import FAR
from aliquot.core.settings import Overrun
from aliquot.core.siting import Desk
from aliquot.core.slices import Ask, Cut
from aliquot.core.steps import Plan
from tests.properties.test_cycle import FULL, Timed
from tests.support.build import a_request

ASKED = (
    a_request(1),
    a_request(2),
    a_request(1, cpu=3000),
    Request(0, 0, 1, Ask(Cut.SHARED, compute_milli=300)),
)
OVERRUNS = (Overrun(500, 300), Overrun(0, 0), Overrun(60_000, 1000))


class Foreseen(Timed):
    """A history in which at each plan the moments are asked for, now and a little later."""

    checked = 0

    def __init__(self, random: Random, overrun: Overrun) -> None:
        self.warm, self.overrun = Memo(), overrun
        super().__init__(random, replace(FULL, overrun=overrun))

    def decide(self, seen: Frozen) -> Plan:
        """One plan, after both agree."""
        for late in (0, self.random.choice([0, 1, 400, 3_000, 20_000])):
            for request in ASKED:
                self.compare(seen, self.at + late, request)
        return super().decide(seen)

    def compare(self, seen: Frozen, now: int, request: Request) -> None:
        """What is remembered is what is worked out."""
        desk = Desk(seen, replace(self.how, engine="numba"), self.warm)
        (_, shape), *_ = desk.memo.options(request)
        clock = Clock(now, now, FAR, self.overrun.least_ms, self.overrun.again_milli)

        def first(memo: MomentsMemo) -> I64:
            stays = self.warm.ends.of(seen, self.how)
            return memo.of(desk.placer, shape, stays, self.warm.ends.number, clock, seen.rows)

        warm, cold = first(self.warm.moments), first(MomentsMemo())
        np.testing.assert_array_equal(warm[: seen.rows], cold[: seen.rows])
        self.checked += int(((cold > now) & (cold < FAR)).sum())


@pytest.mark.parametrize("overrun", OVERRUNS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(random=st.randoms(use_true_random=False), steps=st.integers(30, 90))
def test_moments_remembered_are_those_worked_out_anew(overrun: Overrun, random: Random, steps: int) -> None:
    Foreseen(random, overrun).run(steps)


def test_the_histories_have_rows_that_come_free_later() -> None:
    histories = [Foreseen(Random(seed), OVERRUNS[0]) for seed in range(3)]
    for history in histories:
        history.run(60)
    assert sum(history.checked for history in histories) > 0
