"""The compiled search for victims against its plain twin: the same sets, costs and counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.census import Census
from aliquot.core.ids import JobId
from aliquot.core.memo import Memo
from aliquot.core.room.effort import Effort
from aliquot.core.room.ground import Ground
from aliquot.core.room.prospects import lacking_cards, weigh_compiled, weigh_plain
from aliquot.core.room.tenants import offers_of, open_pool
from aliquot.core.room.vacancy import Wish
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk
from tests.properties.test_victims import COUSINS, sites
from tests.support.full_sites import a_quota, cleared
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

RULES = Preemption(most_evictions=10**6, again_milli=0)


@given(sites(nodes=3, members=3))
@settings(max_examples=60, deadline=None)
def test_both_engines_stop_the_same_where_priority_decides(site: WorldBuilder) -> None:
    assert cleared(site, "new", RULES, engine="numba") == cleared(site, "new", RULES, engine="python")


@given(
    sites(nodes=3, queues=COUSINS, members=3),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
@settings(max_examples=120, deadline=None)
def test_both_engines_stop_the_same_where_quotas_do(
    site: WorldBuilder, nominal: list[int], lending: list[int]
) -> None:
    """Lending of 3 is all that anybody has."""
    limits = enumerate(zip(COUSINS, nominal, lending, strict=True))
    queues = tuple(
        a_quota(name, cards, weight=(1000, 700)[at % 2], lending=lent) for at, (name, cards, lent) in limits
    )
    compiled = cleared(site, "new", RULES, queues, engine="numba")
    assert compiled == cleared(site, "new", RULES, queues, engine="python")


@given(sites(nodes=3, members=2), st.integers(1, 3), st.lists(st.integers(0, 8), max_size=3))
@settings(max_examples=120, deadline=None)
def test_both_engines_weigh_rows_alike(site: WorldBuilder, priority: int, barred: list[int]) -> None:
    """Also where some are not to be had any more."""
    desk = Desk(site.frozen, policy(engine="numba"), Memo())
    census = Census(desk, site.frozen, RULES, None, site.at)
    tenants = census.tenants
    pool = open_pool(tenants, offers_of(tenants, RULES, priority=priority, claim=None))
    ground = Ground(desk.placer.board.cells, pool, lambda *_: 0, None, Effort(), compiled=True)
    for at in barred:
        if at < len(tenants):
            ground.bar(at)
    request = site.frozen.jobs[JobId("new")].job.members[0]
    wish = Wish(request, tuple(shape for _, shape in desk.memo.options(request)))
    lack = lacking_cards(ground.cells, site.frozen.rows, wish)
    compiled, plain = np.zeros((2, len(lack), 4), np.int64)
    weigh_compiled(ground, lack, compiled)
    weigh_plain(ground, lack, plain)
    np.testing.assert_array_equal(compiled, plain)
