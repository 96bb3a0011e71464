"""A queue within its nominal gets it, whatever others keep back and whatever the pool's nominal says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.charging import capacity_of
from aliquot.core.queueing.tree import OWN, ROOT, QueueTree
from aliquot.core.queues import CARDS, POOL, Queue
from aliquot.core.settings import Order, Preemption, Settings
from aliquot.core.standing import Standing
from tests.core.test_planner_preemption import full, settle
from tests.support.full_sites import a_quota
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

THERE = 8
LENDING = st.none() | st.integers(0, 3)


def a_queue(draw: st.DrawFn, name: str, nominal: int) -> Queue:
    """With a lending limit or without."""
    lending = draw(LENDING)
    return a_quota(name, nominal) if lending is None else a_quota(name, nominal, lending=lending)


@st.composite
def divisions(draw: st.DrawFn) -> Settings:
    """Two or three departments, some with queues below them; all they are promised is there."""
    left, queues = draw(st.integers(4, THERE)), list[Queue]()
    if left < THERE or draw(st.booleans()):
        queues.append(a_quota(POOL, left))
    for top in "abc"[: draw(st.integers(2, 3))]:
        promised = 0
        for name in draw(st.sampled_from([(), (f"{top}/x",), (f"{top}/x", f"{top}/y")])):
            nominal = draw(st.integers(0, min(3, left - promised)))
            promised += nominal
            queues.append(a_queue(draw, name, nominal))
        own = draw(st.integers(promised, max(promised, min(4, left))))
        queues.append(a_queue(draw, top, own))
        left -= own
    rules = Preemption(grace_ms=30_000, most_evictions=10**6)
    return policy(queues=tuple(queues), order=Order(half_life_ms=0), preemption=rules)


def tree_of(site: WorldBuilder, how: Settings) -> QueueTree:
    """The queues over the cards of `site`."""
    return Standing(site.frozen, how, capacity_of(site.frozen, how)).tree


@given(divisions(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_queue_within_its_nominal_gets_it_from_borrowers_without_end(
    how: Settings, data: st.DataObject
) -> None:
    site = WorldBuilder().nodes(2, THERE // 2)
    tree = tree_of(site, how)
    leaves = [node for node, below in enumerate(tree.children) if not below and node != ROOT]
    owners = [leaf for leaf in leaves if OWN not in tree.names[leaf]]
    slot = tree.slot[CARDS]
    owner = data.draw(st.sampled_from(owners))
    nominal = tree.entitled[owner][slot] // 1000
    for leaf in data.draw(st.lists(st.sampled_from(leaves), unique=True)):
        for at in range(THERE if leaf != owner else 0):
            site.submit(f"{leaf}-{at}", queue=queue_of(tree, leaf))
    site = full(site, how)
    for at in range(nominal):
        site.submit(f"own-{at}", queue=queue_of(tree, owner))
    site = settle(site, how, 6)
    assert sum(name.startswith("own-") for name in site.holding) == nominal
    assert len(site.holding) * 1000 <= tree.entitled[ROOT][slot]


def queue_of(tree: QueueTree, leaf: int) -> str:
    """The queue whose own jobs `leaf` holds."""
    name = tree.names[leaf]
    return POOL if name == "*" else name.removesuffix("/*")
