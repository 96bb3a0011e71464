"""A plan leaves nothing behind but itself and the memo: what it worked with is freed as soon as it is made.

Things that hold each other live on until Python looks for garbage, and looking costs a service of many jobs a
tenth of its time.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from msgspec.structs import replace

from aliquot.core.planner import explain_wait
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.records import Frozen
from aliquot.core.settings import (
    Backfill,
    Colocation,
    Defrag,
    ElasticRules,
    Idling,
    Order,
    Preemption,
    Rescue,
    SpotCap,
)
from aliquot.core.steps import Plan
from tests.properties.test_planner import Planned, policy

SHORT = Order(half_life_ms=0, aging_ms=1_000)
RULES = Preemption(grace_ms=500)
QUEUES = (Queue("a", quotas=(Quota(CARDS, 3_000),)), Queue("a/b", quotas=(Quota(CARDS, 1_000),)))
WAYS = {
    "plain": policy("future-packing"),
    "compiled": replace(policy("fgd"), engine="numba"),
    "moves": policy(
        "future-packing",
        rescue=Rescue(share=0.5, tidy_from_milli=0),
        scatter=True,
        defrag=Defrag(moves_an_hour=1000, after_ms=0),
    ),
    "backfill": policy("best-fit", backfill=Backfill(overdue_ms=1_000), elastic=ElasticRules(dwell_ms=100)),
    "priority": policy("best-fit", preemption=RULES, idling=Idling(stop_after_ms=500)),
    "queues": policy("best-fit", preemption=RULES, queues=QUEUES, order=SHORT, elastic=ElasticRules()),
    "compiled queues": replace(
        policy("best-fit", preemption=RULES, queues=QUEUES, order=SHORT), engine="numba"
    ),
    "shared": policy("best-fit", colocation=Colocation(), spot_cap=SpotCap(), preemption=RULES),
}


class Tidy(Planned):
    """Counts what of each plan has to be looked for to be freed."""

    def decide(self, seen: Frozen) -> Plan:
        """One plan, and why somebody waits."""
        with nothing_left_behind():
            decided = super().decide(seen)
            for key in seen.pending[:1]:
                explain_wait(seen, self.how, key[3], self.memo, self.at)
        return decided


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """What is made meanwhile, and no longer reachable, must be gone."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        ours = [type(each) for each in gc.garbage if type(each).__module__.startswith("aliquot.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not ours, Counter(kind.__name__ for kind in ours)


@pytest.mark.parametrize("name", WAYS)
def test_what_a_plan_works_with_is_freed_when_it_is_made(name: str) -> None:
    gc.collect()
    gc.freeze()
    try:
        for seed in range(3):
            Tidy(Random(seed), WAYS[name]).run(80)
    finally:
        gc.unfreeze()
