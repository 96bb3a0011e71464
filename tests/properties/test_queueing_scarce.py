"""What a pool that lost nodes has is divided by what it promised, however queues are cut up."""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from aliquot.core.decay import Account, change_rate, level_at
from aliquot.core.ids import JobId
from aliquot.core.queueing.lineup import Lineup
from aliquot.core.queueing.order import Waiting
from aliquot.core.queueing.quota import Book, fits
from aliquot.core.queueing.tree import QueueTree, grow_tree, leaf_of, overpromised
from aliquot.core.queues import CARDS, Queue, Quota

HALF_LIFE = 400
WEIGHTS = st.sampled_from([500, 1000, 3000])


def owns(name: str, nominal: int, weight: int = 1000) -> Queue:
    return Queue(name, quotas=(Quota(CARDS, nominal),), weight=weight)


@given(
    half=st.integers(1, 4),
    others=st.lists(st.integers(1, 6), min_size=1, max_size=2),
    lost=st.integers(1, 9),
    weights=st.lists(WEIGHTS, min_size=6, max_size=6),
)
@example(half=4, others=[8], lost=8, weights=[1000] * 6)  # had 67 % of a's nominal, not 50 %
@settings(max_examples=20, deadline=None)
def test_who_cuts_its_queue_in_two_has_no_more_of_a_scarce_pool(
    half: int, others: list[int], lost: int, weights: list[int]
) -> None:
    pool = 2 * half + sum(others) - lost
    assume(pool > 0)
    rest = [owns(f"b{at}", nominal, weights[at]) for at, nominal in enumerate(others)]
    whole = served(pool, owns("a", 2 * half, weights[3]), *rest)
    parts = served(pool, owns("a1", half, weights[4]), owns("a2", half, weights[5]), *rest)
    assert parts["a1"] + parts["a2"] <= whole["a"] + 0.75  # cards are whole: a part of one is left to turns


@given(st.lists(st.integers(1, 6), min_size=2, max_size=3), st.integers(1, 12), st.lists(WEIGHTS, min_size=3))
@settings(max_examples=20, deadline=None)
def test_the_same_part_of_every_nominal_is_met_whatever_the_weights(
    nominals: list[int], pool: int, weights: list[int]
) -> None:
    assume(pool < sum(nominals))
    queues = [owns(f"q{at}", nominal, weights[at]) for at, nominal in enumerate(nominals)]
    had = served(pool, *queues)
    for at, nominal in enumerate(nominals):
        assert abs(had[f"q{at}"] - pool * nominal / sum(nominals)) < 1


def served(pool: int, *queues: Queue) -> dict[str, float]:
    """Cards that each queue has on average over the later half, when all always want one more.

    A card comes free every turn: one job starts in each, and runs for as many turns as there are cards.
    """
    turns = 24 * pool
    tree = grow_tree(queues, {CARDS: pool})
    assert overpromised(tree)
    lineup, book = Lineup(tree), Book(tree)
    accounts = {queue.name: Account() for queue in queues}
    running: list[tuple[int, Waiting]] = []
    had, came = dict.fromkeys(accounts, 0), dict.fromkeys(accounts, 0)
    for turn in range(turns):
        for _, gone in [entry for entry in running if entry[0] <= turn]:
            book.remove(gone.leaf, gone.charge)
            shift(accounts, tree, gone, turn, -1)
        running = [entry for entry in running if entry[0] > turn]
        for at, queue in enumerate(queues):  # nobody ever has fewer waiting than there are cards
            for number in range(pool if turn == 0 else came[queue.name]):
                job = JobId(f"{queue.name}.{turn}.{number}")
                lineup.enter(Waiting(job, leaf_of(tree, queue.name), ((0, 1),), turn, -at))
        came = dict.fromkeys(accounts, 0)
        lineup.begin(book, turn, past(accounts, tree, turn))
        first = lineup.first()
        assert first is not None
        assert fits(book, first.leaf, first.charge)
        lineup.admit(first)
        lineup.leave(first.id)
        came[tree.names[first.leaf]] += 1
        shift(accounts, tree, first, turn, 1)
        running.append((turn + pool, first))
        if turn >= turns // 2:
            for name in had:
                had[name] += book.total[tree.node_of[name]][0]
    return {name: total / (turns - turns // 2) for name, total in had.items()}


def shift(accounts: dict[str, Account], tree: QueueTree, job: Waiting, turn: int, sign: int) -> None:
    name = tree.names[job.leaf]
    accounts[name] = change_rate(accounts[name], turn, sign, half_life=HALF_LIFE)


def past(accounts: dict[str, Account], tree: QueueTree, turn: int) -> tuple[int, ...]:
    levels = [0] * len(tree.names)
    for name, account in accounts.items():
        for node in tree.paths[tree.node_of[name]]:
            levels[node] += level_at(account, turn, HALF_LIFE)
    return tuple(levels)
