"""Over random trees and histories: nothing is promised twice, and who has a promise gets it in the end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.ids import JobId
from aliquot.core.queueing.lineup import Lineup
from aliquot.core.queueing.order import Tier, Waiting, tier_of
from aliquot.core.queueing.quota import Book, available, fits, overdrawn
from aliquot.core.queueing.tree import ROOT, UNBOUNDED, QueueTree, grow_tree, leaf_of
from aliquot.core.queues import CARDS, Queue, Quota
from tests.support.build import leaves_of

POOL = 16
LIMITS = st.none() | st.integers(0, 8)


@st.composite
def trees(draw: st.DrawFn) -> QueueTree:
    """Up to three levels; a parent's nominal, where stated, covers its children's."""
    queues = []
    for top in draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)):
        children = [
            f"{top}/{leaf}" for leaf in draw(st.lists(st.sampled_from("xyz"), max_size=3, unique=True))
        ]
        promised = 0
        for name in children:
            nominal = draw(st.integers(0, 3))
            promised += nominal
            queues.append(draw(limited(name, nominal)))
        own = draw(st.none() | st.integers(promised, promised + 4))
        queues.append(draw(limited(top, own, least=promised if own is None else own)))
    return grow_tree(queues, {CARDS: POOL})


@st.composite
def limited(draw: st.DrawFn, name: str, nominal: int | None, least: int | None = None) -> Queue:
    floor = nominal if least is None else least
    maximum = draw(st.none() | st.integers(floor or 0, 12)) if (floor or 0) <= 12 else None
    quota = Quota(CARDS, nominal, draw(LIMITS), draw(LIMITS), maximum)
    return Queue(name, quotas=(quota,), weight=draw(st.sampled_from([0, 500, 1000, 3000])))


@given(trees(), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6), st.booleans()), max_size=60))
@settings(max_examples=150, deadline=None)
def test_what_is_admitted_never_exceeds_what_any_node_may_use(
    tree: QueueTree, history: list[tuple[int, int, bool]]
) -> None:
    book, running = Book(tree), list[tuple[int, int]]()
    for pick, amount, starts in history:
        leaf = leaves_of(tree)[pick % len(leaves_of(tree))]
        if starts and fits(book, leaf, ((0, amount),)):
            book.add(leaf, ((0, amount),))
            running.append((leaf, amount))
        elif not starts and running:
            gone, held = running.pop(pick % len(running))
            book.remove(gone, ((0, held),))
        assert overdrawn(book) == []
        check_sums(book)
    for leaf, amount in running:
        book.remove(leaf, ((0, amount),))
    assert not book.columns().any()
    assert not any(any(row) for row in book.drawn)


def check_sums(book: Book) -> None:
    """Totals add up, nothing is negative, and what is drawn is what is beyond the kept."""
    tree = book.tree
    for node, below in enumerate(tree.children):
        if below:
            assert book.total[node][0] == sum(book.total[child][0] for child in below)
            beyond = sum(max(0, book.drawn[child][0] - tree.kept[child][0]) for child in below)
            assert book.drawn[node][0] == beyond
        assert 0 <= book.drawn[node][0] <= book.total[node][0] <= POOL


@given(trees(), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=20))
@settings(max_examples=100, deadline=None)
def test_available_is_the_most_that_fits_and_never_beyond_reach(
    tree: QueueTree, history: list[tuple[int, int]]
) -> None:
    book = Book(tree)
    for pick, amount in history:
        leaf = leaves_of(tree)[pick % len(leaves_of(tree))]
        most = available(book, leaf, 0)
        assert 0 <= most <= tree.reach[leaf][0] <= UNBOUNDED
        assert not fits(book, leaf, ((0, most + 1),))
        book.add(leaf, ((0, min(amount, most)),))


@given(trees(), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=20))
@settings(max_examples=100, deadline=None)
def test_what_a_queue_keeps_is_there_whatever_others_do(
    tree: QueueTree, history: list[tuple[int, int]]
) -> None:
    book = Book(tree)
    promised = sum(tree.entitled[child][0] for child in tree.children[ROOT][:-1])
    owner = next((leaf for leaf in leaves_of(tree) if tree.kept[leaf][0]), None)
    for pick, amount in history:
        leaf = leaves_of(tree)[pick % len(leaves_of(tree))]
        if leaf != owner and fits(book, leaf, ((0, amount),)):
            book.add(leaf, ((0, amount),))
    if owner is not None and promised <= POOL:
        assert available(book, owner, 0) >= tree.kept[owner][0]


@given(trees(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_a_queue_within_its_nominal_gets_it_in_finite_time(tree: QueueTree, width: int) -> None:
    """Borrowers always want more; what an owner waits for is held, so it starts once enough has ended."""
    promised = sum(tree.entitled[child][0] for child in tree.children[ROOT][:-1])
    owners = [leaf for leaf in leaves_of(tree) if tree.entitled[leaf][0] >= width]
    if promised > POOL or not owners:
        return
    book, owner, lineup = Book(tree), owners[0], Lineup(tree)
    running: list[tuple[int, int, int]] = []
    for turn in range(12):
        for leaf, amount, _ in [entry for entry in running if entry[2] <= turn]:
            book.remove(leaf, ((0, amount),))
        running = [entry for entry in running if entry[2] > turn]
        for leaf in leaves_of(tree):
            if turn == 0 and leaf == owner:
                continue
            for number in range(POOL):
                amount = width if leaf == owner else 1
                lineup.enter(Waiting(JobId(f"{number}.{leaf}"), leaf, ((0, amount),), turn, leaf))
        running += play(lineup, book, turn)
    assert sum(amount for leaf, amount, _ in running if leaf == owner) > tree.entitled[owner][0] - width


def play(lineup: Lineup, book: Book, turn: int) -> list[tuple[int, int, int]]:
    """One pass: who starts, as (leaf, cards, end); each runs five turns."""
    started: list[Waiting] = []
    held: list[Waiting] = []
    lineup.begin(book, turn)
    while (waiting := lineup.first()) is not None:
        if fits(book, waiting.leaf, waiting.charge):
            lineup.admit(waiting)
            started.append(waiting)
        elif tier_of(book, waiting) is Tier.OWN:
            lineup.hold(waiting)
            held.append(waiting)
        else:
            lineup.close(waiting)
    for waiting in held:
        book.remove(waiting.leaf, waiting.charge)
    for waiting in started:
        lineup.leave(waiting.id)
    return [(waiting.leaf, waiting.charge[0][1], turn + 5) for waiting in started]


@given(st.integers(0, 4), st.sampled_from([500, 1000, 2000]), st.integers(0, 9), st.integers(3, 40))
@settings(max_examples=60, deadline=None)
def test_splitting_a_queue_into_two_equal_halves_gains_nothing(
    half: int, weight: int, other: int, pool: int
) -> None:
    """Also where the pool has less than it promised; over time `test_queueing_scarce` looks at that."""

    def owns(name: str, nominal: int, share: int) -> Queue:
        return Queue(name, quotas=(Quota(CARDS, nominal),), weight=share)

    whole = takes(pool, owns("a", 2 * half, 2 * weight), owns("b", other, 1000))
    parts = takes(pool, owns("a1", half, weight), owns("a2", half, weight), owns("b", other, 1000))
    assert parts["a1"] + parts["a2"] <= whole["a"] + 1
    assert abs(parts["a1"] - parts["a2"]) <= 1


def takes(pool: int, *queues: Queue) -> dict[str, int]:
    """What each queue holds when all of them always want one card more, the last one asking first."""
    tree = grow_tree(queues, {CARDS: pool})
    book, lineup = Book(tree), Lineup(tree)
    for number in range(pool):
        for at, queue in enumerate(reversed(queues)):
            leaf = leaf_of(tree, queue.name)
            lineup.enter(Waiting(JobId(f"{number}.{queue.name}"), leaf, ((0, 1),), number, at))
    lineup.begin(book, 0)
    while (waiting := lineup.first()) is not None:
        if fits(book, waiting.leaf, waiting.charge):
            lineup.admit(waiting)
        else:
            lineup.close(waiting)
    return {queue.name: book.total[tree.node_of[queue.name]][0] for queue in queues}


def test_the_generated_trees_have_depth() -> None:
    tree = grow_tree([Queue("a/x")], {CARDS: POOL})
    assert [len(path) for path in tree.paths] == sorted(len(path) for path in tree.paths)
    assert all(upper < lower for path in tree.paths for lower, upper in pairwise(path))
