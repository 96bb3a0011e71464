"""Shares, and usage that fades: the worked numbers of their docstrings and more."""

from __future__ import annotations

from aliquot.core.decay import Account, change_rate, level_at, per_weight
from aliquot.core.queueing.quota import Book
from aliquot.core.queueing.share import BILLION, NO_END, share_after, share_of
from aliquot.core.queueing.tree import grow_tree
from aliquot.core.queues import CARDS, MEMORY, Queue, Quota

DAY = 24 * 3600 * 1000
UNIT = 2**32


def book_of(*queues: Queue, pool: int = 12, **used: int) -> Book:
    tree = grow_tree(queues, {CARDS: pool})
    book = Book(tree)
    for name, amount in used.items():
        book.add(tree.node_of[name], ((0, amount),))
    return book


def owns(name: str, nominal: int, weight: int = 1000) -> Queue:
    return Queue(name, quotas=(Quota(CARDS, nominal),), weight=weight)


def share(book: Book, name: str, asked: int = 0) -> int:
    return share_after(book, book.tree.node_of[name], ((0, asked),) if asked else ())


def test_within_its_nominal_a_queue_has_no_share() -> None:
    assert share(book_of(owns("a", 4), a=3), "a", 1) == 0


def test_beyond_it_the_share_is_of_what_the_parent_can_lend_by_weight() -> None:
    assert share(book_of(owns("a", 4, weight=2000), a=6), "a", 2) == BILLION // 6


def test_weight_zero_is_last_as_soon_as_it_borrows() -> None:
    book = book_of(owns("a", 4, weight=0), a=4)
    assert share(book, "a") == 0
    assert share(book, "a", 1) == NO_END


def test_the_dominant_resource_counts() -> None:
    tree = grow_tree([Queue("a")], {CARDS: 10, MEMORY: 1000})
    book = Book(tree)
    book.add(tree.node_of["a"], ((0, 2), (1, 500)))
    assert share_of(book, tree.node_of["a"]) == BILLION // 2


def test_a_queue_that_names_memory_is_not_judged_by_its_cards() -> None:
    tree = grow_tree([Queue("a", nominal_mib=500)], {CARDS: 10, MEMORY: 1000})
    book = Book(tree)
    book.add(tree.node_of["a"], ((0, 8), (1, 500)))
    assert share_of(book, tree.node_of["a"]) == 0


def test_two_halves_of_a_queue_have_the_share_of_the_whole() -> None:
    whole = book_of(owns("a", 4), a=6)
    halves = book_of(owns("b", 2, weight=500), owns("c", 2, weight=500), b=3, c=3)
    assert share(halves, "b") == share(halves, "c") == share(whole, "a")


def test_at_a_constant_rate_half_the_distance_is_left_after_each_half_life() -> None:
    account = Account(rate=8)
    assert [level_at(account, days * DAY) // UNIT for days in (0, 1, 2)] == [0, 4, 6]
    assert level_at(account, 3 * DAY) == 7 * UNIT


def test_idle_usage_halves() -> None:
    account = change_rate(Account(rate=8), 3 * DAY, -8)
    assert level_at(account, 4 * DAY) == 7 * UNIT // 2
    assert level_at(account, 400 * DAY) == 0


def test_time_that_runs_backwards_changes_nothing() -> None:
    account = Account(level=5 * UNIT, rate=1, since_ms=DAY)
    assert level_at(account, 0) == 5 * UNIT
    assert change_rate(account, 0, 2) == Account(5 * UNIT, 3, DAY)


def test_past_usage_counts_by_weight_and_weight_zero_is_last() -> None:
    assert per_weight(600, 2000) == 300
    assert per_weight(1, 0) > per_weight(2**61, 1000)
