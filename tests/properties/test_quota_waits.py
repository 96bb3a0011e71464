"""Who waits for quota is told so without a search, and for all that are charged alike: nobody loses by it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.charging import capacity_of
from aliquot.core.ids import JobId
from aliquot.core.memo import Memo
from aliquot.core.planner import plan
from aliquot.core.queueing.quota import Book, Charge, find_shortage
from aliquot.core.queueing.share import share_after, share_of
from aliquot.core.queueing.tree import QueueTree, grow_tree
from aliquot.core.queues import CARDS, Queue
from aliquot.core.room.reclaim import below_of, open_leaves, reclaim_right
from aliquot.core.settings import Preemption
from aliquot.core.standing import Standing
from aliquot.core.steps import Step, Wait
from aliquot.core.wishes import Level, Wish
from tests.properties.test_victims import COUSINS, requests, sites
from tests.support.full_sites import a_quota, clearing
from tests.support.planning import settings as policy
from tests.support.worlds import WorldBuilder

RULES = Preemption(most_evictions=10**6, again_milli=0)
WISHES = (None, Wish(preferred=Level("rack")), Wish(required=Level("node")))

nominals = st.lists(st.integers(0, 3), min_size=4, max_size=4)


def queues_of(nominal: list[int]) -> tuple[Queue, ...]:
    """Two departments of two queues each."""
    pairs = enumerate(zip(COUSINS, nominal, strict=True))
    return tuple(a_quota(name, cards, weight=(1000, 700)[at % 2]) for at, (name, cards) in pairs)


def and_some_wait(site: WorldBuilder, draw: st.DrawFn, queues: tuple[str, ...] = COUSINS) -> WorldBuilder:
    """Jobs of few sizes and many wishes, in all queues."""
    for at in range(draw(st.integers(1, 12))):
        members = [draw(requests)] * draw(st.integers(1, 2))
        site.submit(
            f"w{at}",
            members,
            priority=draw(st.integers(0, 2)),
            queue=draw(st.sampled_from(queues)),
            wish=draw(st.sampled_from(WISHES)),
            spot=draw(st.integers(0, 9)) == 3,
        )
    return site


@st.composite
def crowds(draw: st.DrawFn) -> WorldBuilder:
    """A full site where many wait."""
    return and_some_wait(draw(sites(nodes=3, queues=COUSINS)), draw)


def a_tree(nominal: list[int], cards: int = 6) -> QueueTree:
    """The tree of these queues."""
    return grow_tree(queues_of(nominal), {CARDS: cards * 1000})


@given(crowds(), nominals)
@settings(max_examples=60, deadline=None)
def test_a_search_for_who_is_ruled_out_finds_nobody(site: WorldBuilder, nominal: list[int]) -> None:
    queues = queues_of(nominal)
    for job in site.waiting:
        record = site.job(job)
        one = clearing(site, RULES, queues)
        if one.is_ruled_out(record.job):
            assert one.is_ruled_out(record.job), "and says so again"
            assert clearing(site, RULES, queues).clear(record) is None


@given(crowds(), nominals)
@settings(max_examples=60, deadline=None)
def test_what_one_is_told_of_quota_holds_for_all_that_are_charged_alike(
    site: WorldBuilder, nominal: list[int]
) -> None:
    how = policy(queues=queues_of(nominal), preemption=RULES)
    together = plan(site.frozen, how, site.at, Memo())
    singly = plan(site.frozen, how, site.at, Memo(), explained=JobId("somebody"))
    assert done(together.steps) == done(singly.steps)


def done(steps: tuple[Step, ...]) -> list[Step]:
    """All that is more than a word to those who wait."""
    return [step for step in steps if not isinstance(step, Wait)]


moves = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-3, 5), st.sampled_from(["add", "rollback", "mark"])),
    max_size=30,
)


@given(moves, nominals)
@settings(max_examples=100, deadline=None)
def test_a_share_that_is_kept_is_the_share_there_is(
    history: list[tuple[int, int, str]], nominal: list[int]
) -> None:
    tree = a_tree(nominal)
    book, mark = Book(tree), 0
    for queue, amount, what in history:
        match what:
            case "add":
                book.add(leaf_at(tree, queue), charge(tree, amount))
            case "rollback":
                book.rollback(min(mark, book.mark()))
            case _:
                mark = book.mark()
        for one in (book, book.copy()):
            for node in range(len(tree.names)):
                assert share_of(one, node) == share_after(one, node, ())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=10),
    nominals,
    st.integers(0, 3),
    st.integers(1, 4),
)
@settings(max_examples=200, deadline=None)
def test_where_there_is_a_right_the_leaf_is_open(
    running: list[tuple[int, int]], nominal: list[int], taker: int, asked: int
) -> None:
    tree = a_tree(nominal)
    book = Book(tree)
    for queue, amount in running:
        book.add(leaf_at(tree, queue), charge(tree, amount))
    mine = (leaf_at(tree, taker), charge(tree, asked))
    losers = {(leaf_at(tree, queue), charge(tree, amount)) for queue, amount in running}
    found = set(open_leaves(book, mine, below_of(tree, sorted({leaf for leaf, _ in losers}))))
    for loser in losers:
        if loser[0] != mine[0] and reclaim_right(book, mine, loser) is not None:
            assert loser[0] in found


@given(crowds(), nominals)
@settings(max_examples=30, deadline=None)
def test_what_quota_could_never_give_is_asked_once(site: WorldBuilder, nominal: list[int]) -> None:
    how = policy(queues=queues_of(nominal), preemption=RULES)
    standing = Standing(site.frozen, how, capacity_of(site.frozen, how))
    for job in site.waiting:
        leaf = standing.leaf(site.job(job).job.queue)
        for flavour in standing.flavours(site.job(job).job):
            lacking = find_shortage(Book(standing.tree), leaf, flavour.charge)
            for _ in range(2):
                assert standing.shortage_when_idle(leaf, flavour.charge) == lacking


def leaf_at(tree: QueueTree, queue: int) -> int:
    """The node of one of the queues."""
    return tree.node_of[COUSINS[queue]]


def charge(tree: QueueTree, cards: int) -> Charge:
    """So many cards."""
    return ((tree.slot[CARDS], cards * 1000),)
