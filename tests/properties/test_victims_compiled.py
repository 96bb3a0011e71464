"""The compiled search for victims against its plain twin: the same sets, costs and counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.settings import Preemption
from tests.properties.test_victims import COUSINS, sites
from tests.support.full_sites import a_quota, cleared
from tests.support.worlds import WorldBuilder

RULES = Preemption(most_evictions=10**6, again_milli=0)


@given(sites(nodes=3, members=3))
@settings(max_examples=60, deadline=None)
def test_both_engines_stop_the_same_where_priority_decides(site: WorldBuilder) -> None:
    assert cleared(site, "new", RULES, engine="numba") == cleared(site, "new", RULES, engine="python")


@given(sites(nodes=3, queues=COUSINS, members=3), st.lists(st.integers(0, 3), min_size=4, max_size=4))
@settings(max_examples=120, deadline=None)
def test_both_engines_stop_the_same_where_quotas_do(site: WorldBuilder, nominal: list[int]) -> None:
    pairs = enumerate(zip(COUSINS, nominal, strict=True))
    queues = tuple(a_quota(name, cards, weight=(1000, 700)[at % 2]) for at, (name, cards) in pairs)
    compiled = cleared(site, "new", RULES, queues, engine="numba")
    assert compiled == cleared(site, "new", RULES, queues, engine="python")
