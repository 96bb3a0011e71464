"""The queue tree: absent, 0 and unlimited, whose promise is whose, and every way to write it wrong."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from aliquot.core.errors import SpecError
from aliquot.core.queueing.tree import (
    ROOT,
    UNBOUNDED,
    QueueTree,
    grow_tree,
    home_of,
    leaf_of,
    overpromised,
)
from aliquot.core.queues import (
    CARDS,
    MEMORY,
    UNLIMITED,
    Discipline,
    Limit,
    Measure,
    Queue,
    Quota,
    Resource,
    check_queues,
    find_queue,
)

MONEY = Resource(Measure.MONEY)
H100 = Resource(Measure.CARDS, "H100")


def cards(
    name: str,
    nominal: Limit = None,
    *,
    borrowing: Limit = None,
    lending: Limit = None,
    maximum: Limit = None,
    weight: int = 1000,
) -> Queue:
    quota = Quota(CARDS, nominal, borrowing, lending, maximum)
    return Queue(name, quotas=(quota,), weight=weight)


def grow(*queues: Queue, pool: int = 12) -> QueueTree:
    return grow_tree(queues, {CARDS: pool})


def numbers(tree: QueueTree, name: str) -> tuple[int, int, int, int]:
    """(entitled, shared, kept, headroom) in cards."""
    node, slot = tree.node_of[name], tree.slot[CARDS]
    return (
        tree.entitled[node][slot],
        tree.shared[node][slot],
        tree.kept[node][slot],
        tree.headroom[node][slot],
    )


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        pytest.param(cards("a"), (0, 0, 0, UNBOUNDED), id="nothing said: nothing of its own, borrows freely"),
        pytest.param(cards("a", 0), (0, 0, 0, UNBOUNDED), id="nominal 0"),
        pytest.param(
            cards("a", 4), (4, 4, 0, UNBOUNDED), id="absent borrowing is unlimited, absent lending all"
        ),
        pytest.param(cards("a", 4, borrowing=0), (4, 4, 0, 0), id="borrowing 0 is none"),
        pytest.param(
            cards("a", 4, borrowing=UNLIMITED), (4, 4, 0, UNBOUNDED), id="borrowing written unlimited"
        ),
        pytest.param(cards("a", 4, lending=0), (4, 4, 4, UNBOUNDED), id="lending 0 keeps all"),
        pytest.param(cards("a", 4, lending=1), (4, 4, 3, UNBOUNDED), id="lending 1 keeps the rest"),
        pytest.param(cards("a", 4, lending=9), (4, 4, 0, UNBOUNDED), id="lending more than there is"),
        pytest.param(cards("a", 4, lending=UNLIMITED), (4, 4, 0, UNBOUNDED), id="lending written unlimited"),
        pytest.param(cards("a", 4, maximum=6), (4, 4, 0, 2), id="a hard maximum cuts borrowing"),
        pytest.param(cards("a", 4, borrowing=1, maximum=6), (4, 4, 0, 1), id="the tighter of the two"),
        pytest.param(cards("a", maximum=0), (0, 0, 0, 0), id="maximum 0 closes the queue"),
    ],
)
def test_each_limit_is_absent_or_a_number_or_unlimited(
    queue: Queue, expected: tuple[int, int, int, int]
) -> None:
    assert numbers(grow(queue), "a") == expected


def test_a_parent_without_nominal_has_what_its_children_have() -> None:
    tree = grow(cards("lab/x", 3), cards("lab/y", 2))
    assert numbers(tree, "lab")[:2] == (5, 5)


def test_what_children_do_not_name_belongs_to_the_parents_own_jobs_and_is_lendable() -> None:
    tree = grow(cards("lab", 8), cards("lab/x", 3))
    assert numbers(tree, "lab/*") == (5, 5, 0, UNBOUNDED)
    assert numbers(tree, "*")[0] == 4


def test_what_a_child_keeps_is_not_its_parents_to_give() -> None:
    tree = grow(cards("lab", 8), cards("lab/x", 3, lending=1))
    assert numbers(tree, "lab") == (8, 6, 0, UNBOUNDED)
    assert numbers(tree, "")[:2] == (12, 10)


def test_the_pool_is_its_capacity_unless_stated() -> None:
    assert numbers(grow(), "")[0] == 12
    assert numbers(grow(cards("", 8)), "")[0] == 8


def test_a_resource_the_pool_cannot_count_is_unbounded_there() -> None:
    tree = grow_tree([Queue("a", quotas=(Quota(MONEY, 500_000, borrowing=0),))], {CARDS: 8})
    slot, node = tree.slot[MONEY], tree.node_of["a"]
    assert tree.reach[ROOT][slot] == UNBOUNDED
    assert tree.reach[node][slot] == 500_000


def test_a_queue_is_judged_in_what_it_names_and_one_that_names_nothing_in_all() -> None:
    tree = grow_tree([Queue("a", nominal_mib=1024), Queue("b")], {CARDS: 8, MEMORY: 4096})
    assert [tree.resources[slot] for slot in tree.named[tree.node_of["a"]]] == [MEMORY]
    assert [tree.resources[slot] for slot in tree.named[tree.node_of["b"]]] == [CARDS, MEMORY]


def test_priority_and_discipline_come_from_the_nearest_queue_above_that_says() -> None:
    tree = grow(
        Queue("a", priority=7, discipline=Discipline.STRICT),
        Queue("a/b"),
        Queue("a/b/c", priority=2),
        Queue("a/b/d", priority=0),
    )
    found = {name: (tree.priority[node], tree.discipline[node]) for name, node in tree.node_of.items()}
    assert found["a/*"] == (7, Discipline.STRICT)
    assert found["a/b/*"] == (7, Discipline.STRICT)
    assert found["a/b/d"] == (0, Discipline.STRICT)
    assert found["a/b/c"] == (2, Discipline.STRICT)
    assert found["*"] == (0, None)


def test_a_written_parent_outranks_the_path() -> None:
    tree = grow(Queue("cohort"), Queue("team", parent="cohort"))
    assert tree.names[tree.parent[tree.node_of["team"]]] == "cohort"


def test_jobs_of_a_deleted_queue_are_counted_at_the_nearest_queue_that_is_left() -> None:
    tree = grow(cards("lab", 8), cards("lab/x", 3))
    assert tree.names[home_of(tree, "lab/gone/deep")] == "lab/*"
    assert tree.names[home_of(tree, "elsewhere")] == "*"
    assert tree.names[home_of(tree, "lab/x")] == "lab/x"


def test_new_jobs_for_an_unknown_queue_are_refused_with_those_there_are() -> None:
    tree = grow(cards("ai-lab/training", 3))
    with pytest.raises(SpecError, match=r"no queue 'ai-lab/trainin'.*one of ai-lab, ai-lab/training"):
        leaf_of(tree, "ai-lab/trainin")
    with pytest.raises(SpecError, match="no queue"):
        leaf_of(tree, "ai-lab/*")
    assert tree.names[leaf_of(tree, "ai-lab")] == "ai-lab/*"
    assert find_queue("", []) == ""


def test_promises_beyond_the_pool_are_told_not_refused() -> None:
    assert overpromised(grow(cards("a", 8), cards("b", 8))) == {CARDS: 4}
    assert overpromised(grow(cards("a", 8))) == {}
    assert overpromised(grow(Queue("a"))) == {}


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        pytest.param([Queue("a"), Queue("a")], "'a' is there twice", id="the same name twice"),
        pytest.param([Queue("a//b")], "'a//b' is not the name", id="an empty part"),
        pytest.param([Queue("/a")], "'/a' is not the name", id="a leading slash"),
        pytest.param([Queue("a /b")], "'a /b' is not the name", id="a blank at the end of a part"),
        pytest.param([Queue("a/*")], r"'a/\*' is not the name", id="the name of an own leaf"),
        pytest.param([Queue("a", weight=-1)], "weight -1 is negative", id="a negative weight"),
        pytest.param([cards("a", -1)], "nominal -1 is negative", id="a negative nominal"),
        pytest.param([cards("a", 4, borrowing=-1)], "borrowing -1 is negative", id="negative borrowing"),
        pytest.param([cards("a", UNLIMITED)], "cannot be unlimited", id="an unlimited promise"),
        pytest.param([cards("a", 4, maximum=3)], "maximum 3 is below nominal 4", id="maximum below nominal"),
        pytest.param([cards("", 4, maximum=6)], "the pool itself has no maximum", id="a maximum of the pool"),
        pytest.param([cards("", lending=0)], "the pool itself has no lending", id="lending of the pool"),
        pytest.param(
            [cards("", borrowing=UNLIMITED)], "the pool itself has no borrowing", id="borrowing of the pool"
        ),
        pytest.param(
            [Queue("a", nominal_mib=1, quotas=(Quota(MEMORY, 2),))],
            "two quotas for memory",
            id="twice memory",
        ),
        pytest.param(
            [Queue("a", parent="lob"), Queue("lab")],
            "declare it, leave parent out, or one of a, lab",
            id="an unknown parent",
        ),
        pytest.param(
            [Queue("a", parent="b"), Queue("b", parent="c"), Queue("c", parent="a")],
            "queues are above themselves: a < b < c < a",
            id="a circle of three",
        ),
        pytest.param([Queue("a", parent="a")], "above themselves: a < a", id="its own parent"),
        pytest.param(
            [Queue("a", parent="a/b"), Queue("a/b")], "above themselves", id="a parent below it by path"
        ),
    ],
)
def test_bad_queues_are_refused_by_name(queues: Iterable[Queue], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        check_queues(queues)


def test_children_promised_more_than_a_stated_parent_are_refused() -> None:
    with pytest.raises(SpecError, match=r"below 'lab' are promised 5 of cards, it has 4"):
        grow(cards("lab", 4000), cards("lab/x", 5000))


def test_a_maximum_below_what_the_children_are_promised_is_refused() -> None:
    with pytest.raises(
        SpecError, match=r"'lab' are promised 5\.5 of cards, it may never have more than 2"
    ) as said:
        grow(cards("lab", maximum=2000), cards("lab/x", 4000), cards("lab/y", 1500))
    assert (said.value.field, said.value.value) == ("queues[lab].cards.maximum", "2")
    grow(cards("lab", maximum=5500), cards("lab/x", 4000), cards("lab/y", 1500))


def test_the_tree_does_not_depend_on_the_order_it_is_written_in() -> None:
    queues = [cards("b/y", 1), cards("a", 2), cards("b", 4), Queue("b/x/deep")]
    assert grow(*queues) == grow(*reversed(queues))


def test_cards_of_one_model_are_a_resource_of_their_own() -> None:
    assert str(H100) == "cards H100"
    tree = grow_tree([Queue("a", quotas=(Quota(H100, 2), Quota(CARDS, 4)))], {CARDS: 8, H100: 4})
    assert tree.resources == (CARDS, H100)
