"""Victims on small random sites: against every other set there is, and what must hold whatever happens."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.charging import capacity_of
from aliquot.core.clearing import Cleared
from aliquot.core.ids import JobId
from aliquot.core.jobs import Stop
from aliquot.core.memo import Memo
from aliquot.core.queueing.share import share_of
from aliquot.core.queueing.tree import ROOT
from aliquot.core.queues import CARDS, Queue
from aliquot.core.room.plot import ALIKE_MS
from aliquot.core.room.reclaim import sides
from aliquot.core.room.tenants import victim_cost
from aliquot.core.seating import seat_all
from aliquot.core.settings import Preemption
from aliquot.core.siting import Desk
from aliquot.core.standing import Standing
from aliquot.core.steps import Cause, Evict
from tests.support.build import a_request
from tests.support.full_sites import a_quota, carry_out, cleared, clearing
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

RULES = Preemption(most_evictions=10**6, again_milli=0)
MEMORY = 10_000
NAMES = ("a", "b", "c")
COUSINS = ("one/a", "one/b", "two/a", "two/b")

slices = st.integers(1, 3).map(lambda quarters: a_request(compute=250 * quarters, memory=MEMORY * quarters))
wholes = st.integers(1, 3).map(a_request)
requests = st.one_of(wholes, slices, st.just(a_request(2, compute=500, memory=MEMORY)))
costs = st.sampled_from([0, 20_000, 90_000, 300_000, 1_000_000])


@st.composite
def sites(
    draw: st.DrawFn, *, nodes: int = 2, queues: tuple[str, ...] = ("",), members: int = 1
) -> WorldBuilder:
    """A few nodes filled with jobs of many kinds, and a job `new` that waits."""
    site = WorldBuilder()
    for at in range(draw(st.integers(1, nodes))):
        site.node(f"n{at}", draw(st.integers(2, 4)))
    for at in range(draw(st.integers(4, 9))):
        gang = [draw(requests)] * draw(st.sampled_from([1, 1, 1, 2]))
        site.submit(
            f"j{at}",
            gang,
            priority=draw(st.integers(0, 2)),
            stop=Stop(checkpoint_ms=1, restart_ms=draw(costs)),
            queue=draw(st.sampled_from(queues)),
            spot=draw(st.integers(0, 19)) == 7,
        )
        site.placed()
    for job in site.holding:
        site.started(job)
    for job in site.waiting:
        site.cancel(job)
    several = st.lists(requests, min_size=1, max_size=members)
    alike = st.tuples(st.one_of(wholes, requests), st.integers(1, members)).map(
        lambda pair: [pair[0]] * pair[1]
    )
    wanted = draw(st.one_of(alike, several) if members > 1 else alike)
    site.submit("new", wanted, priority=draw(st.integers(1, 3)), queue=draw(st.sampled_from(queues)))
    return site


@given(sites())
@settings(max_examples=80, deadline=None)
def test_one_member_gets_the_best_of_all_sets(site: WorldBuilder) -> None:
    found = cleared(site, "new", RULES)
    best = best_set(site)
    if best is None:
        assert found is None
        return
    assert found is not None
    assert not found.is_bounded
    assert key_of(site, [victim.job for victim in found.victims]) == key_of(site, best)
    assert_minimal(site, found)


@given(sites(members=4))
@settings(max_examples=80, deadline=None)
def test_whoever_is_stopped_is_needed_and_of_lower_priority(site: WorldBuilder) -> None:
    found = cleared(site, "new", RULES)
    if found is None:
        assert not lets_in(site, may_be_stopped(site))
        return
    assert found.cost_ms == sum(cost_of(site, victim.job) for victim in found.victims)
    assert {victim.job for victim in found.victims} <= set(may_be_stopped(site))
    assert lets_in(site, [victim.job for victim in found.victims])
    assert_minimal(site, found)


@given(sites(members=3, queues=NAMES), st.lists(st.integers(0, 3), min_size=3, max_size=3))
@settings(max_examples=80, deadline=None)
def test_every_reclaim_lowers_the_sorted_shares_and_no_owner_loses(
    site: WorldBuilder, nominal: list[int]
) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, nominal, strict=True))
    found = cleared(site, "new", RULES, queues)
    if found is None or not reclaimed(found):
        return
    before = usage(site, queues)
    for victim in reclaimed(found):
        job = site.job(victim.job).job
        assert before[job.queue] > nominal[NAMES.index(job.queue)] * 1000
        assert job.queue != site.job("new").job.queue
    shares = shares_of(site, queues)
    carry_out(site, "new", found)
    assert shares_of(site, queues) < shares


@given(sites(members=2, queues=COUSINS), st.lists(st.integers(0, 2), min_size=4, max_size=4))
@settings(max_examples=80, deadline=None)
def test_a_reclaim_lowers_the_shares_where_the_two_queues_meet(
    site: WorldBuilder, nominal: list[int]
) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(COUSINS, nominal, strict=True))
    found = cleared(site, "new", RULES, queues)
    if found is None:
        return
    before = standing_of(site, queues)
    new = site.job("new").job.queue
    lost = {site.job(victim.job).job.queue for victim in reclaimed(found)}
    carry_out(site, "new", found)
    after = standing_of(site, queues)
    for queue in lost:
        leaf, tree = before.leaf(queue), before.tree
        mine, theirs = sides(tree, before.leaf(new), leaf)
        for node in tree.paths[leaf][: tree.paths[leaf].index(theirs) + 1]:
            slot = tree.slot[CARDS]
            assert before.book.total[node][slot] > tree.entitled[node][slot]
        measure = beyond if beyond(after, mine) == 0 else share
        shares = [
            sorted((measure(standing, mine), measure(standing, theirs)), reverse=True)
            for standing in (before, after)
        ]
        assert shares[1] < shares[0]


@given(sites(members=2, queues=NAMES), st.lists(st.integers(0, 3), min_size=3, max_size=3), st.data())
@settings(max_examples=30, deadline=None)
def test_a_fixed_demand_reaches_a_fixed_point(
    site: WorldBuilder, nominal: list[int], data: st.DataObject
) -> None:
    queues = tuple(a_quota(name, cards) for name, cards in zip(NAMES, nominal, strict=True))
    for at in range(data.draw(st.integers(0, 3))):
        site.submit(f"more-{at}", data.draw(requests), queue=data.draw(st.sampled_from(NAMES)))
    evictions = 0
    for _ in range(80):
        changed = False
        for name in site.waiting:
            found = cleared(site, name, Preemption(), queues)
            if found is not None:
                changed = True
                evictions += len(found.victims)
                carry_out(site, name, found)
        if not changed:
            break
    else:
        raise AssertionError(f"still moving after {evictions} evictions")
    assert all(
        site.job(name).evictions <= Preemption().most_evictions
        for name in site.world.jobs
        if is_plain(site, name)
    )


def reclaimed(found: Cleared) -> list[Evict]:
    """Who is stopped because its queue borrowed."""
    stopped = [step for step in found.victims if isinstance(step, Evict)]
    return [step for step in stopped if step.cause is Cause.RECLAIM]


def is_plain(site: WorldBuilder, name: str) -> bool:
    """Whether a job is not spot work, which may be stopped without end."""
    return not site.job(name).job.spot


@given(sites(members=3))
@settings(max_examples=20, deadline=None)
def test_the_same_site_gives_the_same_answer(site: WorldBuilder) -> None:
    assert cleared(site, "new", RULES) == cleared(site, "new", RULES)
    plan = clearing(site, RULES)
    found = plan.clear(site.job("new"))
    assert found == cleared(site, "new", RULES)


def may_be_stopped(site: WorldBuilder) -> list[str]:
    """Running jobs of lower priority than `new`, and spot work."""
    mine = site.job("new").job.priority
    jobs = (site.job(name).job for name in site.holding)
    return [job.id for job in jobs if job.spot or job.priority < mine]


def cost_of(site: WorldBuilder, name: str) -> int:
    """What stopping a job costs."""
    cost = victim_cost(site.job(name), site.at, RULES)
    assert cost is not None
    return cost


def key_of(site: WorldBuilder, names: list[str]) -> tuple[Any, ...]:
    """Worst rank, cost in minutes, number."""
    jobs = [site.job(name).job for name in names]
    worst = max(((not job.spot, job.priority) for job in jobs), default=())
    return (worst, sum(cost_of(site, name) for name in names) // ALIKE_MS, len(names))


def best_set(site: WorldBuilder) -> list[str] | None:
    """By trying all."""
    names = may_be_stopped(site)
    sets = [list(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]
    desk = Desk(site.frozen, policy(), Memo())
    fitting = [chosen for chosen in sets if lets_in(site, chosen, desk)]
    return min(fitting, key=lambda chosen: key_of(site, chosen), default=None)


def lets_in(site: WorldBuilder, names: list[str], desk: Desk | None = None) -> bool:
    """Whether `new` finds seats once `names` are gone."""
    desk = desk or Desk(site.frozen, policy(), Memo())
    mark = desk.mark()
    for name in names:
        for grant in site.world.grants[JobId(name)]:
            assert grant.seat is not None
            desk.release(grant.seat)
    seats = seat_all(desk, site.job("new").job)
    desk.rollback(mark)
    return seats is not None


def assert_minimal(site: WorldBuilder, found: Cleared) -> None:
    """Nobody could be spared."""
    names = [victim.job for victim in found.victims]
    for name in names:
        assert not lets_in(site, [other for other in names if other != name])


def usage(site: WorldBuilder, queues: tuple[Queue, ...]) -> dict[str, int]:
    """Milli-cards that each queue is charged for."""
    sums = dict.fromkeys(NAMES, 0)
    for name in site.holding:
        record = site.job(name)
        sums[record.job.queue] += sum(part.milli for part in record.asked)
    return sums


def shares_of(site: WorldBuilder, queues: tuple[Queue, ...]) -> list[int]:
    """The shares of all queues, largest first."""
    standing = standing_of(site, queues)
    return sorted((share_of(standing.book, node) for node in standing.tree.children[ROOT]), reverse=True)


def beyond(standing: Standing, node: int) -> int:
    """Cards that a node has beyond its own; of equal weight, so what shares are made of."""
    slot = standing.tree.slot[CARDS]
    return max(0, standing.book.total[node][slot] - standing.tree.entitled[node][slot])


def share(standing: Standing, node: int) -> int:
    """The share of a node."""
    return share_of(standing.book, node)


def standing_of(site: WorldBuilder, queues: tuple[Queue, ...]) -> Standing:
    """The queues and what they use now."""
    how = policy(queues=queues)
    standing = Standing(site.frozen, how, capacity_of(site.frozen, how))
    standing.sync(site.frozen, site.at)
    return standing
