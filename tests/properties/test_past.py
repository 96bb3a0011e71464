"""What queues have used decides between equal shares: by weight, in a scarce pool by what was promised, and
however often it is looked at.
"""

from __future__ import annotations

from hypothesis import assume, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from aliquot.core.planner import Memo
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Order, Settings
from aliquot.core.world import World
from tests.support.planning import carried_out, nodes_of, planned, settings
from tests.support.worlds import WorldBuilder

MINUTE = 60_000
HOUR = 60 * MINUTE
CARDS_HERE = 8

RUNS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.integers(1, CARDS_HERE),
        st.integers(1, 3 * HOUR),
        st.integers(0, 2 * HOUR),
    ),
    min_size=1,
    max_size=5,
)
"""(queue, cards, for how long, how long nothing ran before) of jobs one after the other."""

WEIGHTS = st.sampled_from([250, 1000, 1500, 4000])


def owners(one: int, other: int) -> Settings:
    """Two queues that own as many cards as each other, of these weights, and one that borrows."""
    own = (Quota(CARDS, 1000 * CARDS_HERE),)
    queues = (Queue("a", quotas=own, weight=one), Queue("b", quotas=own, weight=other), Queue("else"))
    return settings(order=Order(half_life_ms=HOUR), queues=queues)


def lived(how: Settings, runs: list[tuple[str, int, int, int]], looks: list[int]) -> list[str]:
    """Who starts after `runs` on cards that both want; `looks`: when plans are made between, for nothing."""
    site, memo = WorldBuilder(), Memo()
    site.world = World(half_life_ms=HOUR)
    site.node("n", CARDS_HERE).node("m", CARDS_HERE).submit("filler", queue="else", cards=CARDS_HERE)
    carried_out(site, how, memo=memo)
    pending = sorted(looks)

    def go(ms: int) -> None:
        until = site.at + ms
        while pending and pending[0] < until:
            site.later(max(0, pending.pop(0) - site.at))
            planned(site, how, memo=memo)
        site.later(until - site.at)

    for at, (queue, cards, ran, before) in enumerate(runs):
        go(before)
        site.submit(f"j{at}", queue=queue, cards=cards)
        carried_out(site, how, memo=memo)
        site.started(f"j{at}")
        go(ran)
        site.ended(f"j{at}")
    site.submit("a", queue="a", cards=CARDS_HERE).submit("b", queue="b", cards=CARDS_HERE)
    return list(nodes_of(carried_out(site, how, memo=memo)))


def used(queue: str, runs: list[tuple[str, int, int, int]]) -> float:
    """Decayed use at the end, in closed form; each run is c * (2 ** -end - 2 ** -start), in hours ago."""
    ago = sum(ran + before for _, _, ran, before in runs)
    total = 0.0
    for name, cards, ran, before in runs:
        ago -= before
        if name == queue:
            total += cards * (0.5 ** ((ago - ran) / HOUR) - 0.5 ** (ago / HOUR))
        ago -= ran
    return total


@given(RUNS, WEIGHTS, WEIGHTS)
@example([("a", 4, HOUR, 0), ("b", 4, HOUR, 0)], 1000, 4000)  # b used more, but by weight less
@example([("a", 4, HOUR, 0), ("b", 1, 2 * HOUR, 0)], 1000, 1000)  # a's use has faded since it was last read
@hypothesis_settings(max_examples=60, deadline=None)
def test_who_used_less_by_weight_has_the_next_turn(
    runs: list[tuple[str, int, int, int]], one: int, other: int
) -> None:
    a, b = used("a", runs) / one, used("b", runs) / other
    assume(abs(a - b) > 0.05 * (a + b))  # the order reads the last full minute
    assert lived(owners(one, other), runs, []) == ["a" if a < b else "b"]


@given(RUNS, st.lists(st.integers(0, 20 * HOUR), max_size=8), WEIGHTS, WEIGHTS)
@hypothesis_settings(max_examples=60, deadline=None)
def test_how_often_plans_are_made_does_not_change_who_has_the_next_turn(
    runs: list[tuple[str, int, int, int]], looks: list[int], one: int, other: int
) -> None:
    how = owners(one, other)
    assert lived(how, runs, looks) == lived(how, runs, [])


@given(st.integers(1, CARDS_HERE - 1), st.integers(1, 3 * HOUR), WEIGHTS, WEIGHTS)
@hypothesis_settings(max_examples=30, deadline=None)
def test_in_a_scarce_pool_it_is_the_promise_that_counts_and_not_the_weight(
    cards: int, ran: int, one: int, other: int
) -> None:
    """a is promised three times what b is. Both have had the same: less of a's promise than of b's."""
    queues = (
        Queue("a", quotas=(Quota(CARDS, 3000 * CARDS_HERE),), weight=one),
        Queue("b", quotas=(Quota(CARDS, 1000 * CARDS_HERE),), weight=other),
    )
    how = settings(order=Order(half_life_ms=100 * HOUR), queues=queues)
    site = WorldBuilder()
    site.world = World(half_life_ms=100 * HOUR)
    site.node("n", 2 * CARDS_HERE).submit("a0", queue="a", cards=cards).submit("b0", queue="b", cards=cards)
    carried_out(site, how)
    site.started("a0").started("b0").later(ran + MINUTE).ended("a0").ended("b0")
    # of its promise each would then have a quarter: the shares are equal
    site.submit("b1", queue="b", cards=2).submit("a1", queue="a", cards=6).submit("a2", queue="a", cards=6)
    site.submit("b2", queue="b", cards=2)
    assert next(iter(nodes_of(planned(site, how)))) == "a1"
