"""Quota arithmetic on small cohorts one can add up by hand, and the faults others had with it."""

from __future__ import annotations

import numpy as np
import pytest

from aliquot.core.queueing.overcommit import Excess
from aliquot.core.queueing.quota import (
    Book,
    available,
    borrows,
    charge_of,
    concerning,
    find_overcommits,
    find_shortage,
    fits,
    open_book,
    overdrawn,
)
from aliquot.core.queueing.tree import grow_tree
from aliquot.core.queues import CARDS, MEMORY, UNLIMITED, Limit, Queue, Quota


def cards(name: str, nominal: Limit = None, **limits: Limit) -> Queue:
    return Queue(name, quotas=(Quota(CARDS, nominal, **limits),))


class Site:
    """A pool of cards with queues, spoken to by name."""

    def __init__(self, pool: int, *queues: Queue) -> None:
        self.tree = grow_tree(queues, {CARDS: pool})
        self.book = Book(self.tree)

    def use(self, name: str, amount: int) -> Site:
        self.book.add(self.tree.node_of[name], ((0, amount),))
        return self

    def left(self, name: str) -> int:
        return available(self.book, self.tree.node_of[name], 0)

    def borrows(self, name: str, amount: int) -> int:
        return borrows(self.book, self.tree.node_of[name], ((0, amount),))

    def fits(self, name: str, amount: int) -> bool:
        return fits(self.book, self.tree.node_of[name], ((0, amount),))


def test_a_queue_takes_its_own_then_what_others_leave() -> None:
    site = Site(12, cards("a", 4), cards("b", 4))
    assert site.left("a") == 12
    assert site.use("b", 3).left("a") == 9
    assert [site.borrows("a", amount) for amount in (4, 5)] == [0, 1]


def test_what_is_not_lent_is_out_of_reach() -> None:
    site = Site(12, cards("a", 4), cards("b", 4, lending=1))
    assert site.left("a") == 9
    assert site.use("a", 9).left("b") == 3


def test_kept_quota_is_used_first_and_then_drawn_from_above() -> None:
    site = Site(12, cards("a", 4), cards("b", 4, lending=1)).use("b", 5)
    assert site.left("a") == 7  # b uses the 3 it keeps and 2 of the 9 others see
    assert site.use("b", -3).left("a") == 9


def test_borrowing_stops_at_the_limit_and_at_the_hard_maximum() -> None:
    assert Site(12, cards("a", 4, borrowing=2), cards("b", 8)).left("a") == 6
    assert Site(12, cards("a", 4, maximum=5), cards("b", 8)).left("a") == 5
    assert Site(12, cards("a", 4, borrowing=0), cards("b", 8)).left("a") == 4


def test_limits_hold_at_every_level() -> None:
    site = Site(24, cards("lab", 8, borrowing=4), cards("lab/x", 4), cards("lab/y", 4), cards("other", 16))
    assert site.left("lab/x") == 12
    assert site.use("lab/y", 3).left("lab/x") == 9
    assert site.use("other", 14).left("lab/x") == 7
    assert [site.borrows("lab/x", amount) for amount in (4, 5, 6)] == [0, 1, 2]


def test_a_limit_of_a_parent_leaves_what_its_children_keep_alone() -> None:
    site = Site(20, cards("lab", 10, borrowing=0), cards("lab/x", 4, lending=0), cards("lab/y", 0))
    assert site.left("lab/y") == 6
    site.use("lab/y", 6)
    assert site.left("lab/x") == 4
    assert site.use("lab/x", 4).book.total[site.tree.node_of["lab"]] == [10]


def test_two_borrowers_in_one_cycle_do_not_both_get_the_last_share() -> None:
    """Nominal 4 each, A and B full, C idle: of two jobs of 4 exactly one is admitted, and 12 are used."""
    site = Site(12, cards("a", 4), cards("b", 4), cards("c", 4)).use("a", 4).use("b", 4)
    admitted = []
    for name in ("a", "b"):
        if site.fits(name, 4):
            site.use(name, 4)
            admitted.append(name)
    assert admitted == ["a"]
    assert site.book.total[0] == [12]


@pytest.mark.parametrize(
    ("borrowing", "admitted"),
    [
        pytest.param(None, True, id="absent: may borrow"),
        pytest.param(UNLIMITED, True, id="unlimited: may borrow"),
        pytest.param(0, False, id="0: may not"),
        pytest.param(3, False, id="3 is too little"),
        pytest.param(4, True, id="4 is just enough"),
    ],
)
def test_no_borrowing_limit_is_not_a_limit_of_nothing(borrowing: Limit, admitted: bool) -> None:
    """16 in all; A (nominal 4) uses 2, B 5 of 8, C nothing of its 4: a job of 6 fits A by borrowing."""
    site = Site(16, cards("a", 4, borrowing=borrowing), cards("b", 8), cards("c", 4)).use("a", 2).use("b", 5)
    assert site.fits("a", 6) is admitted


def test_a_quota_lowered_below_usage_evicts_nobody_and_shows_the_excess() -> None:
    site = Site(6, cards("a", 2, borrowing=0), cards("b", 4)).use("a", 3).use("b", 5)
    assert site.left("a") == 0
    assert site.left("b") == 0
    over = {(site.tree.names[short.node], short.need, short.have) for short in overdrawn(site.book)}
    assert over == {("", 8, 6), ("a", 3, 2)}


def test_what_is_used_or_promised_too_much_is_said_in_numbers_to_those_who_feel_it() -> None:
    site = Site(6, cards("a", 2, borrowing=0), cards("b", 5), cards("b/x", 1)).use("a", 3).use("b/x", 2)
    found = find_overcommits(site.book)
    assert [(over.queue, over.excess, over.amount, over.most) for over in found] == [
        ("", Excess.PROMISED, 7, 6),
        ("a", Excess.USED, 3, 2),
    ]
    assert concerning(found, site.tree, "a") == found
    assert concerning(found, site.tree, "b/x") == found[:1], "a queue beside it does not"
    assert concerning(found, site.tree, "a/gone") == found, "its jobs count in a"
    assert find_overcommits(Site(6, cards("a", 2), cards("b", 4)).use("a", 6).book) == (), "that is borrowing"


def test_capacity_lost_below_the_promises_is_not_given_out() -> None:
    site = Site(6, cards("a", 4, lending=0), cards("b", 4, lending=0)).use("a", 4)
    assert site.left("b") == 2


def test_the_shortage_names_the_queue_that_is_empty() -> None:
    site = Site(12, cards("lab", 4, borrowing=1), cards("lab/x", 2), cards("other", 8))
    x = site.tree.node_of["lab/x"]
    short = find_shortage(site.book, x, ((0, 6),))
    assert short is not None
    assert (site.tree.names[short.node], short.resource, short.need, short.have) == ("lab", CARDS, 6, 5)
    assert find_shortage(site.book, x, ((0, 5),)) is None


def test_several_resources_all_have_to_fit() -> None:
    queue = Queue("a", nominal_mib=320_000, quotas=(Quota(CARDS, 4000, borrowing=0),))
    tree = grow_tree([queue], {CARDS: 8000, MEMORY: 640_000})
    book, a = Book(tree), tree.node_of["a"]
    asked = charge_of(tree, {MEMORY: 400_000, CARDS: 4000})
    assert fits(book, a, asked)
    assert borrows(book, a, asked) == 1
    assert not fits(book, a, charge_of(tree, {CARDS: 4001, MEMORY: 1}))


def test_a_queue_without_quotas_borrows_whatever_it_takes() -> None:
    site = Site(8, cards("a", 4), Queue("guest"))
    assert site.borrows("guest", 1) == 1
    assert site.left("guest") == 8


def test_a_book_opens_from_names_and_keeps_what_deleted_queues_use() -> None:
    tree = grow_tree([cards("lab", 8), cards("lab/x", 4)], {CARDS: 12})
    book = open_book(tree, {"lab/gone": {CARDS: 3}, "lab/x": {CARDS: 2, MEMORY: 99}})
    assert book.total[tree.node_of["lab"]] == [5]
    assert book.total[tree.node_of["lab/*"]] == [3]


def test_release_does_not_need_the_queue_to_exist_any_more() -> None:
    """Usage is kept by the job that made it: the tree may lose the queue and get it back in between."""
    before = grow_tree([cards("x", 4)], {CARDS: 4})
    without = grow_tree([], {CARDS: 4})
    running = {"x": {CARDS: 4}}
    assert available(open_book(before, running), before.node_of["x"], 0) == 0
    assert available(open_book(without, running), without.node_of["*"], 0) == 0
    assert available(open_book(without, {}), without.node_of["*"], 0) == 4
    assert available(open_book(before, {}), before.node_of["x"], 0) == 4


def test_rollback_is_the_identity_and_a_copy_goes_its_own_way() -> None:
    site = Site(12, cards("a", 4, lending=1), cards("b", 4)).use("a", 3)
    before = (site.book.columns(), [row.copy() for row in site.book.drawn])
    twin, mark = site.book.copy(), site.book.mark()
    site.use("a", 5).use("b", 2)
    site.book.remove(site.tree.node_of["a"], ((0, 1),))
    site.book.rollback(mark)
    assert np.array_equal(site.book.columns(), before[0])
    assert site.book.drawn == before[1]
    site.use("a", 1)
    assert np.array_equal(twin.columns(), before[0])
