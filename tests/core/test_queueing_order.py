"""Who goes next, told as small queues at one moment."""

from __future__ import annotations

import pytest

from aliquot.core.ids import JobId
from aliquot.core.queueing.lineup import Lineup
from aliquot.core.queueing.order import (
    Aging,
    Tier,
    Waiting,
    aged_priority,
    next_aging,
    place_in_queue,
    tier_of,
)
from aliquot.core.queueing.quota import Book, fits
from aliquot.core.queueing.tree import grow_tree, leaf_of
from aliquot.core.queues import CARDS, Queue, Quota

MINUTE = 60_000


class Hall:
    """Queues over 12 cards, and who waits in them."""

    def __init__(self, *queues: Queue, aging: Aging = Aging(), pool: int = 12) -> None:  # noqa: B008 - a frozen value
        self.tree = grow_tree(queues, {CARDS: pool})
        self.book = Book(self.tree)
        self.lineup = Lineup(self.tree, aging)
        self.levels = [0] * len(self.tree.names)
        self.count = 0

    def wait(
        self,
        name: str,
        queue: str = "",
        cards: int = 1,
        at: int = 0,
        priority: int = 0,
        tier: Tier = Tier.OWN,
    ) -> Hall:
        self.count += 1
        leaf = leaf_of(self.tree, queue)
        self.lineup.enter(Waiting(JobId(name), leaf, ((0, cards),), at, self.count, priority, tier))
        return self

    def use(self, queue: str, cards: int) -> Hall:
        self.book.add(leaf_of(self.tree, queue), ((0, cards),))
        return self

    def past(self, queue: str, level: int) -> Hall:
        self.levels[self.tree.node_of[queue]] = level
        return self

    def order(self, now: int = 0) -> str:
        """Everybody who waits in order, nobody admitted."""
        self.lineup.begin(self.book, now, tuple(self.levels))
        found = []
        while (waiting := self.lineup.first()) is not None:
            found.append(waiting.id)
            self.lineup.pass_over(waiting)
        return " ".join(found)

    def admitted(self, now: int = 0) -> str:
        """Who starts, in order, if only quotas count."""
        self.lineup.begin(self.book, now, tuple(self.levels))
        found = []
        while (waiting := self.lineup.first()) is not None:
            if fits(self.book, waiting.leaf, waiting.charge):
                self.lineup.admit(waiting)
                found.append(waiting.id)
            else:
                self.lineup.pass_over(waiting)
        return " ".join(found)


def owns(name: str, nominal: int, weight: int = 1000) -> Queue:
    return Queue(name, quotas=(Quota(CARDS, nominal),), weight=weight)


def test_equal_jobs_keep_their_order() -> None:
    hall = Hall(Queue("a")).wait("one", "a").wait("two", "a").wait("three", "a")
    assert hall.order() == "one two three"


def test_tiers_come_before_priorities() -> None:
    hall = Hall(owns("a", 2), owns("b", 0))
    hall.wait("borrows", "b", priority=9).wait("owns", "a").wait("spot", "a", priority=99, tier=Tier.SPOT)
    hall.wait("kept", "b", tier=Tier.RESERVED).wait("system", "b", tier=Tier.SYSTEM)
    assert hall.order() == "system kept owns borrows spot"


def test_a_queue_stops_being_within_its_nominal_as_it_fills() -> None:
    hall = Hall(owns("a", 2), owns("b", 2))
    hall.wait("a1", "a", 2, at=0).wait("a2", "a", 2, at=1).wait("b1", "b", 2, at=5)
    assert hall.admitted() == "a1 b1 a2"


def test_priority_comes_before_share_and_share_before_time() -> None:
    hall = Hall(Queue("a"), Queue("b")).use("a", 3)
    hall.wait("old", "a", at=1).wait("new", "b", at=2).wait("urgent", "a", at=3, priority=1)
    assert hall.order() == "urgent new old"


def test_share_after_admission_counts_so_a_small_job_may_go_first() -> None:
    hall = Hall(Queue("a"), Queue("b")).wait("big", "a", 4, at=1).wait("small", "b", 1, at=2)
    assert hall.order() == "small big"


def test_weights_divide_the_share() -> None:
    hall = Hall(owns("a", 0, weight=3000), owns("b", 0), pool=100)
    for number in range(8):
        hall.wait(f"a{number}", "a").wait(f"b{number}", "b")
    assert hall.admitted().startswith("a0 a1 b0 a2 a3 a4 b1 a5 a6 a7")


def test_levels_of_the_tree_are_fair_one_by_one() -> None:
    """Two teams in one lab and one in the other: the labs take turns, not the teams."""
    hall = Hall(Queue("l/x"), Queue("l/y"), Queue("m/z"), pool=100)
    for number in range(4):
        hall.wait(f"x{number}", "l/x").wait(f"y{number}", "l/y").wait(f"z{number}", "m/z")
    assert hall.admitted() == "x0 z0 y0 z1 x1 z2 y1 z3 x2 y2 x3 y3"


def test_past_usage_decides_between_equal_shares() -> None:
    hall = Hall(Queue("a"), Queue("b")).past("a", 5).past("b", 4)
    assert hall.wait("a1", "a", at=1).wait("b1", "b", at=2).order() == "b1 a1"


def test_a_closed_queue_sends_nobody_more_in_this_pass_but_in_the_next() -> None:
    hall = Hall(Queue("a")).wait("one", "a").wait("two", "a")
    for _ in range(2):
        hall.lineup.begin(hall.book, 0)
        first = hall.lineup.first()
        assert first is not None
        assert first.id == "one"
        hall.lineup.close(first)
        assert hall.lineup.first() is None


def test_what_is_held_for_an_owner_is_not_lent_again() -> None:
    """a's 4 are lent out but for 3; its job of 4 waits, and b may not borrow the 3 meanwhile."""
    hall = Hall(owns("a", 4), owns("b", 8)).use("b", 9).wait("mine", "a", 4).wait("more", "b", 3)
    mark = hall.book.mark()
    hall.lineup.begin(hall.book, 0)
    first = hall.lineup.first()
    assert first is not None
    assert not fits(hall.book, first.leaf, first.charge)
    hall.lineup.hold(first)
    second = hall.lineup.first()
    assert second is not None
    assert (first.id, second.id) == ("mine", "more")
    assert not fits(hall.book, second.leaf, second.charge)
    hall.book.rollback(mark)
    assert hall.order() == "mine more"


def test_a_job_that_leaves_or_comes_back_changed_is_noticed() -> None:
    hall = Hall(Queue("a")).wait("one", "a").wait("two", "a")
    assert hall.order() == "one two"
    hall.lineup.leave(JobId("one"))
    hall.lineup.leave(JobId("never was"))
    hall.wait("three", "a").wait("two", "a")
    assert hall.order() == "three two"


def test_usage_that_changed_between_passes_is_noticed() -> None:
    hall = Hall(Queue("a"), Queue("b")).wait("a1", "a", at=1).wait("b1", "b", at=2)
    assert hall.order() == "a1 b1"
    assert hall.use("a", 1).order() == "b1 a1"
    assert hall.use("b", 2).order() == "a1 b1"


@pytest.mark.parametrize(
    ("priority", "waited", "expected"),
    [
        pytest.param(0, 9, 0, id="not a step yet"),
        pytest.param(0, 10, 1, id="one step"),
        pytest.param(0, 1000, 5, id="the ceiling"),
        pytest.param(7, 1000, 7, id="above the ceiling nothing rises"),
        pytest.param(-3, 40, 1, id="from below nothing"),
        pytest.param(0, -50, 0, id="a clock that went back"),
    ],
)
def test_waiting_raises_a_priority_to_the_ceiling(priority: int, waited: int, expected: int) -> None:
    assert aged_priority(priority, 0, waited, Aging(10, 5)) == expected


@pytest.mark.parametrize(
    ("priority", "now", "expected"), [(0, 0, 10), (0, 10, 20), (4, 9, 10), (5, 0, None), (0, 999, None)]
)
def test_the_next_rise_is_known_beforehand(priority: int, now: int, expected: int | None) -> None:
    assert next_aging(priority, 0, now, Aging(10, 5)) == expected
    assert next_aging(priority, 0, now, Aging()) is None


def test_an_old_job_passes_those_of_higher_priority_that_came_later() -> None:
    hall = Hall(Queue("a"), aging=Aging(MINUTE, 10)).wait("old", "a", at=0)
    hall.wait("urgent", "a", at=3 * MINUTE, priority=4)
    assert hall.order(3 * MINUTE) == "urgent old"
    assert hall.order(5 * MINUTE) == "urgent old"
    hall.wait("late", "a", at=4 * MINUTE, priority=4)
    assert hall.order(20 * MINUTE) == "old urgent late"
    assert hall.order(3 * MINUTE) == "urgent late old"


def test_borrowing_is_decided_and_never_fixed() -> None:
    hall = Hall(owns("a", 2))
    leaf = leaf_of(hall.tree, "a")
    waiting = Waiting(JobId("x"), leaf, ((0, 2),), 0, 0, tier=Tier.BORROWING)
    assert tier_of(hall.book, waiting) is Tier.OWN
    assert tier_of(hall.use("a", 1).book, waiting) is Tier.BORROWING
    assert (
        place_in_queue(waiting, 0, Aging())[0]
        == place_in_queue(waiting._replace(tier=Tier.OWN), 0, Aging())[0]
    )


def test_an_empty_hall_has_no_first() -> None:
    assert Hall(Queue("a")).order() == ""
