"""Who is stopped where queues have quotas: borrowers for owners, never an owner, nobody there and back."""

from __future__ import annotations

import pytest

from aliquot.core.events import Evicting, Reserved
from aliquot.core.ids import JobId
from aliquot.core.jobs import Stop
from aliquot.core.queues import CARDS, Queue, Quota
from aliquot.core.settings import Preemption
from aliquot.core.slices import Vector
from aliquot.core.steps import Cause
from tests.support.build import T4, a_request
from tests.support.full_sites import (
    HOUR,
    MINUTE,
    a_quota,
    at_place,
    carry_out,
    cleared,
    clearing,
    runs,
    singles,
    victims,
)
from tests.support.worlds import WorldBuilder

HALVES = (a_quota("one", 4), a_quota("two", 4))


def test_an_owner_takes_back_what_a_borrower_has_and_no_more() -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 7, queue="one")
    site.submit("own", [a_request(1)] * 4, queue="two")
    found = cleared(site, "own", queues=HALVES)
    assert found is not None
    assert len(found.victims) == 3
    assert {victim.cause for victim in found.victims} == {Cause.RECLAIM}
    assert cleared(site, "own", Preemption(reclaim=False), HALVES) is None


def test_a_queue_within_its_nominal_loses_nothing_whatever_the_priority() -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 4, queue="one", priority=-100)
    for at in range(4, 8):
        runs(site, f"n-{at}", ("n", [at]), queue="two")
    site.submit("greedy", priority=100, queue="two")
    found = cleared(site, "greedy", queues=HALVES)
    assert victims(found) == ["n-7"], "its own queue's, of lower priority"
    assert found is not None
    assert found.victims[0].cause is Cause.PRIORITY
    site.submit("modest", queue="two")
    assert cleared(site, "modest", queues=HALVES) is None


def test_reclaim_ends_after_one_eviction_where_what_was_lost_is_more_than_is_owned() -> None:
    """Fault B31: two checks that disagree let both queues evict each other in turn."""
    site = WorldBuilder().node("n", 8)
    runs(site, "five", *(("n", [at]) for at in range(5)), queue="one")
    site.later(MINUTE).submit("four", [a_request(1)] * 4, queue="two")
    found = cleared(site, "four", queues=HALVES)
    assert victims(found) == ["five"]
    assert found is not None
    carry_out(site, "four", found)
    for _ in range(20):
        site.later(HOUR)
        assert cleared(site, "five", queues=HALVES) is None


def test_who_borrows_less_takes_from_who_borrows_more_and_keeps_it() -> None:
    """Fault B34: the victim, submitted earlier, came back before the job it was stopped for."""
    queues = (a_quota("a", 2), a_quota("b", 2))
    site = WorldBuilder().node("n", 8)
    runs(site, "low", ("n", range(4)), queue="b")
    runs(site, "lower", ("n", range(4, 8)), queue="b", priority=-1)
    site.later(MINUTE).submit("high", cards=4, queue="a", priority=9)
    found = cleared(site, "high", queues=queues)
    assert victims(found) == ["lower"]
    assert found is not None
    carry_out(site, "high", found)
    for _ in range(20):
        site.later(HOUR)
        assert cleared(site, "lower", queues=queues) is None


def test_a_borrower_does_not_take_so_much_that_it_borrows_more_than_the_other() -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 8, queue="one")
    for cards, expected in ((4, 4), (5, 5), (6, None), (7, None)):
        site.submit(f"new-{cards}", cards=cards, queue="two")
        found = cleared(site, f"new-{cards}", queues=(a_quota("one", 2), a_quota("two", 4)))
        assert (None if found is None else len(found.victims)) == expected, cards


def test_the_last_rule_is_used_only_where_nothing_else_helps() -> None:
    """A job of eight stands for all its queue borrows: without it the queue has less than the newcomer."""
    queues = (a_quota("one", 0), a_quota("two", 0))
    site = WorldBuilder().node("n", 8)
    runs(site, "eight", ("n", range(8)), queue="one", stop=Stop(checkpoint_ms=1))
    site.submit("new", cards=2, queue="two")
    found = cleared(site, "new", queues=queues)
    assert victims(found) == ["eight"]
    assert found is not None
    carry_out(site, "new", found)
    assert cleared(site, "eight", queues=queues) is None
    other = WorldBuilder().node("n", 8).node("m", 2)
    runs(other, "eight", ("n", range(8)), queue="one", stop=Stop(checkpoint_ms=1))
    runs(other, "own", ("m", range(2)), queue="two", priority=-1)
    other.later(HOUR).submit("new", cards=2, queue="two")
    assert victims(cleared(other, "new", queues=queues)) == ["own"], (
        "though that costs two hours and the other nothing"
    )


def test_a_set_whose_victim_could_take_it_back_is_refused() -> None:
    """After both are gone the small one's queue is below its nominal, and the newcomer borrows."""
    site = WorldBuilder().node("t", 2, model=T4).node("n", 8).node("m", 4)
    stay = Stop(preemptible=False)
    runs(site, "small", ("t", [0]), queue="one")
    runs(site, "large", ("n", range(8)), ("m", [0]), queue="one")
    runs(site, "stays", ("m", [1, 2, 3]), queue="one", stop=stay)
    queues = (a_quota("one", 4), a_quota("two", 0))
    site.submit("new", [a_request(2, models=("T4",)), a_request(4, models=("H100",))], queue="two")
    assert cleared(site, "new", queues=queues) is None
    site.submit("fair", cards=4, queue="two")
    assert victims(cleared(site, "fair", queues=queues)) == ["large"]


def test_between_sisters_their_parent_decides_and_cousins_are_left_alone() -> None:
    queues = (a_quota("org/a", 2), a_quota("org/b", 2), a_quota("other", 4))
    site = WorldBuilder().node("n", 8)
    for at in range(4):
        runs(site, f"a{at}", ("n", [at]), queue="org/a")
    for at in range(4):
        runs(site, f"o{at}", ("n", [at + 4]), queue="other", priority=-1)
    site.submit("b", cards=2, queue="org/b")
    assert victims(cleared(site, "b", queues=queues)) == ["a2", "a3"]


def test_of_a_borrowing_parent_only_the_child_that_borrows_loses() -> None:
    queues = (a_quota("org/a", 2), a_quota("org/b", 2), a_quota("other", 4))
    site = WorldBuilder().node("n", 8)
    for at in range(2):
        runs(site, f"a{at}", ("n", [at]), queue="org/a", priority=-9, stop=Stop(checkpoint_ms=1))
    for at in range(4):
        runs(site, f"b{at}", ("n", [at + 2]), queue="org/b")
    for at in range(2):
        runs(site, f"o{at}", ("n", [at + 6]), queue="other")
    site.later(HOUR).submit("more", cards=2, queue="other")
    assert victims(cleared(site, "more", queues=queues)) == ["b2", "b3"]


def test_the_queue_with_most_beyond_its_own_pays_first() -> None:
    queues = (a_quota("less", 1), a_quota("most", 1), a_quota("own", 6))
    site = WorldBuilder().node("n", 8)
    for at in range(3):
        runs(site, f"l{at}", ("n", [at]), queue="less", stop=Stop(checkpoint_ms=1))
    for at in range(5):
        runs(site, f"m{at}", ("n", [at + 3]), queue="most", priority=50)
    site.later(HOUR).submit("new", cards=2, queue="own")
    assert victims(cleared(site, "new", queues=queues)) == ["m3", "m4"]


def test_a_queue_of_weight_nothing_gives_back_whatever_it_borrowed() -> None:
    queues = (a_quota("free", 0, weight=0), a_quota("two", 0))
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 8, queue="free")
    site.submit("new", cards=8, queue="two")
    found = cleared(site, "new", queues=queues)
    assert found is not None
    assert len(found.victims) == 8
    carry_out(site, "new", found)
    assert cleared(site, "n-0", queues=queues) is None


def test_quota_is_cleared_even_where_there_is_room() -> None:
    queues = (a_quota("capped", 4, borrowing=0), a_quota("rest", 4))
    site = WorldBuilder().nodes(2)
    for at in range(4):
        runs(site, f"c{at}", ("n0", [at]), queue="capped")
    site.later(HOUR)
    site.submit("high", cards=2, queue="capped", priority=5)
    found = cleared(site, "high", queues=queues)
    assert victims(found) == ["c2", "c3"]
    assert found is not None
    assert found.seats[0].seat.mask.bit_count() == 2
    site.submit("equal", cards=2, queue="capped")
    assert cleared(site, "equal", queues=queues) is None


def test_where_room_and_quota_are_lacking_those_who_give_both_go() -> None:
    """The spot job is cheapest and would free a card, but its queue's quota is not what is lacking."""
    queues = (a_quota("capped", 2, borrowing=0), a_quota("rest", 6))
    site = WorldBuilder().node("n", 3)
    runs(site, "c0", ("n", [0]), queue="capped")
    runs(site, "c1", ("n", [1]), queue="capped")
    runs(site, "spot", ("n", [2]), queue="rest", spot=True)
    site.submit("high", queue="capped", priority=5)
    assert victims(cleared(site, "high", queues=queues)) == ["c1"]


def test_who_is_being_stopped_already_counts_as_gone_from_its_queue() -> None:
    queues = (a_quota("lender", 4), a_quota("late", 4))
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 8, queue="lender")
    for at in range(4):
        site.happen(Evicting(site.at, JobId(f"n-{at}"), 1, Cause.RECLAIM, None, 1000))
    site.submit("held", cards=4, queue="late")
    site.submit("own", queue="late")
    assert victims(cleared(site, "own", queues=queues)) == [], "it gets what comes free"
    kept = (at_place(site, "n", range(4)),)
    site.happen(Reserved(site.at, JobId("held"), kept, site.at + 1000, site.at + HOUR, firm=True))
    assert cleared(site, "own", queues=queues) is None, "what is left of the lender is its own"


def test_two_in_one_plan_do_not_take_a_lender_below_its_own() -> None:
    queues = (a_quota("lender", 4), a_quota("b", 2), a_quota("c", 3))
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 8, queue="lender")
    site.submit("b", cards=2, queue="b").submit("c", cards=3, queue="c")
    plan = clearing(site, queues=queues)
    first = plan.clear(site.job("b"))
    assert first is not None
    assert len(first.victims) == 2
    assert plan.clear(site.job("c")) is None, "two more could go, and it needs three"


def test_spot_work_within_its_queues_nominal_goes_too() -> None:
    site = WorldBuilder().node("n", 8)
    singles(site, "n", 4, queue="one", spot=True)
    for at in range(4, 8):
        runs(site, f"n-{at}", ("n", [at]), queue="two")
    site.submit("more", queue="two")
    found = cleared(site, "more", queues=HALVES)
    assert found is not None
    assert [victim.cause for victim in found.victims] == [Cause.SPOT]


@pytest.mark.parametrize("cards", [1, 3])
def test_what_is_asked_counts_for_quota_not_what_is_held(cards: int) -> None:
    """A quarter of a card each: the borrower has four of them beyond its nominal of one card."""
    queues = (a_quota("slices", 1), Queue("own", quotas=(Quota(CARDS, nominal=3000),)))
    site = WorldBuilder().node("n", 2)
    for at in range(8):
        quarter = at_place(site, "n", [at // 4], a_quarter())
        runs(site, f"s{at}", quarter, request=a_request(compute=250, memory=20000), queue="slices")
    site.submit("new", a_request(1), queue="own").submit("wide", a_request(2), queue="own")
    found = cleared(site, "new", queues=queues)
    assert found is not None
    assert len(found.victims) == 4
    assert cleared(site, "wide", queues=queues) is None


def a_quarter() -> Vector:
    """A quarter of an H100."""
    return Vector(250, 20000, 0)
