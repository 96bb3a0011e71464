"""Dependencies, arrays and gang minimums as short stories."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.ids import JobId
from aliquot.core.jobs import Array, When
from aliquot.core.queueing.deps import (
    Edge,
    check_array,
    check_edges,
    check_minimum,
    find_cycle,
    held,
    openings,
    release,
)


def edges(text: str) -> list[Edge]:
    """`b>a c>>a`: b after a, c after-ok a."""
    found = []
    for word in text.split():
        when = When.SUCCEEDED if ">>" in word else When.ENDED
        job, on = word.replace(">>", ">").split(">")
        found.append(Edge(JobId(job), JobId(on), when))
    return found


@pytest.mark.parametrize(
    ("graph", "over", "succeeded", "freed", "doomed"),
    [
        pytest.param("b>a", "", True, "b", "", id="after a success"),
        pytest.param("b>a", "", False, "b", "", id="after a failure too"),
        pytest.param("b>>a", "", True, "b", "", id="after-ok a success"),
        pytest.param("b>>a", "", False, "", "b", id="a failure dooms after-ok"),
        pytest.param("b>a b>x", "", True, "", "", id="one of two is not enough"),
        pytest.param("b>a b>x", "x", True, "b", "", id="the second of two"),
        pytest.param("b>>a c>>b d>b", "", False, "d", "b c", id="doom runs down, plain after is released"),
        pytest.param("b>a c>a d>b", "", True, "b c", "", id="not those further down"),
        pytest.param("b>>a b>x", "", False, "", "b", id="doomed though it waits for another as well"),
        pytest.param("b>>a b>a", "", True, "b", "", id="twice the same"),
        pytest.param("z>y", "", True, "", "", id="nothing to do with it"),
    ],
)
def test_what_an_end_releases(graph: str, over: str, succeeded: bool, freed: str, doomed: str) -> None:
    before = dict.fromkeys((JobId(job) for job in over.split()), True)
    found = release(edges(graph), before, JobId("a"), succeeded=succeeded)
    assert (" ".join(found.freed), " ".join(found.doomed)) == (freed, doomed)


def test_held_names_the_edges_that_hold() -> None:
    graph = edges("b>a b>>x c>a")
    assert held(graph, {JobId("a"): True, JobId("x"): False}) == {JobId("b"): (graph[1],)}
    assert held(graph, {JobId("a"): False, JobId("x"): True}) == {}


def test_a_circle_is_refused_with_its_members() -> None:
    with pytest.raises(SpecError, match="jobs wait for each other: b after c after d after b"):
        check_edges(edges("a>b b>c c>d d>b"), [JobId(job) for job in "abcd"])
    with pytest.raises(SpecError, match="a after a"):
        check_edges(edges("a>a"), [JobId("a")])


def test_waiting_for_a_stranger_is_refused() -> None:
    with pytest.raises(SpecError, match="'b' waits for 'a', which is not there"):
        check_edges(edges("b>a"), [JobId("b")])
    check_edges(edges("b>a"), [JobId("a")])


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = [Edge(JobId(str(at)), JobId(str(at + 1))) for at in range(5000)]
    check_edges(chain, [JobId(str(at)) for at in range(5001)])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_a_circle_is_found_exactly_where_no_order_exists(pairs: list[tuple[int, int]]) -> None:
    after: dict[JobId, list[JobId]] = {}
    for job, on in pairs:
        after.setdefault(JobId(str(job)), []).append(JobId(str(on)))
    circle = find_cycle(after)
    left = {job: set(others) for job, others in after.items()}
    while ready := [job for job, others in left.items() if not others & left.keys()]:
        for job in ready:
            del left[job]
    assert bool(circle) == bool(left)
    assert all(on in after[job] for job, on in pairwise(circle))


@pytest.mark.parametrize(
    ("array", "under_way", "expected"),
    [(Array("a", 10, 3), 1, 2), (Array("a", 10, 3), 5, 0), (Array("a", 10), 4, 6), (Array("a", 2, 9), 0, 2)],
)
def test_an_array_opens_up_to_its_width(array: Array, under_way: int, expected: int) -> None:
    assert openings(array, under_way) == expected


@pytest.mark.parametrize("array", [Array("a", 0), Array("a", 4, 0), Array("a", 4, -1)])
def test_arrays_of_nothing_are_refused(array: Array) -> None:
    with pytest.raises(SpecError, match="too small"):
        check_array(array, "jobs[sweep]")


def test_a_gang_needs_all_unless_it_says_how_many() -> None:
    assert check_minimum(None, 6, "jobs[g]") == 6
    assert check_minimum(2, 6, "jobs[g]") == 2


@pytest.mark.parametrize("minimum", [0, -1, 7])
def test_a_minimum_of_none_or_more_than_there_are_is_refused(minimum: int) -> None:
    with pytest.raises(SpecError, match=rf"jobs\[g\].minimum: minimum {minimum} of 6 members"):
        check_minimum(minimum, 6, "jobs[g]")
