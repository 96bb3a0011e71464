"""Members alike are seated at one go exactly where they would be one after the other, compiled and plain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import settings as no_deadline
from hypothesis import strategies as st

from aliquot.core.jobs import Request
from aliquot.core.memo import Memo
from aliquot.core.placement.cells import I32
from aliquot.core.settings import Settings
from aliquot.core.siting import Desk, Seated
from tests.support.build import a_node, a_request
from tests.support.worlds import WorldBuilder

RULES = st.sampled_from(["best-fit", "spread", "random", "dot-product", "gpu-packing", "gpu-clustering"])
NODES = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from([4_000, 9_000]), st.sampled_from([0, 2])),
    min_size=1,
    max_size=6,
)
ASKS = st.builds(
    a_request, st.integers(0, 1), cpu=st.sampled_from([0, 900, 2_500]), host=st.sampled_from([0, 100, 3_000])
) | st.builds(a_request, memory=st.sampled_from([8_000, 30_000]), compute=st.sampled_from([None, 100, 330]))


class Series(NamedTuple):
    """So many times `request`, on some of the rows; then back to before, where `undone`."""

    request: Request
    most: int
    rows: set[int]
    undone: bool


STORY = st.lists(
    st.builds(Series, ASKS, st.integers(1, 9), st.sets(st.integers(0, 5), min_size=1), st.booleans()),
    min_size=1,
    max_size=6,
)


def a_desk(nodes: list[tuple[int, int, int]], rule: str, engine: str) -> Desk:
    """Over nodes of so many cards, cores and NUMA nodes."""
    site = WorldBuilder()
    for at, (cards, cpu, numa) in enumerate(nodes):
        site.node(a_node(f"n{at}", cards, cpu=cpu, host=7_000, numa=numa))
    return Desk(site.frozen, Settings(policy=((rule, 1.0),), engine=engine), Memo())


def one_by_one(desk: Desk, request: Request, rows: I32, most: int) -> list[Seated]:
    """Up to `most` seats, each chosen once the last is booked."""
    seats: list[Seated] = []
    while len(seats) < most and (seat := desk.seat_within(request, rows)) is not None:
        seats.append(seat)
    return seats


def at_one_go(desk: Desk, request: Request, rows: I32, most: int) -> list[Seated]:
    """The same by a series."""
    seats = desk.seat_series(request, rows, most)
    assert seats is not None, "rules need nobody else for a single card"
    return seats


@no_deadline(deadline=None, max_examples=60)  # the first example compiles
@given(NODES, STORY, RULES)
def test_a_series_sits_where_its_members_would_one_by_one(
    nodes: list[tuple[int, int, int]], story: list[Series], rule: str
) -> None:
    found = []
    for engine, seated in (("python", one_by_one), ("python", at_one_go), ("numba", at_one_go)):
        desk, seen = a_desk(nodes, rule, engine), list[object]()
        for request, most, some, undone in story:
            rows = np.array(sorted(row for row in some if row < len(nodes)), np.int32)
            mark = desk.mark()
            seen.append(seated(desk, request, rows, most))
            seen.append(desk.fills(request).tolist())
            if undone:
                desk.rollback(mark)
        seen += [column.tolist() for chunk in desk.draft.chunks for column in chunk]
        seen += [desk.placer.feasible_rows(desk.memo.options(request)[0][1]) for request, *_ in story]
        seen += [column.tolist() for column in desk.placer.board.cells[:8]]
        found.append(seen)
    assert found[0] == found[1]
    assert found[0] == found[2]


def test_sets_of_cards_and_values_are_chosen_one_by_one() -> None:
    nodes, rows = [(4, 9_000, 0)], np.array([0], np.int32)
    assert a_desk(nodes, "best-fit", "python").seat_series(a_request(2), rows, 2) is None
    assert a_desk(nodes, "future-packing", "python").seat_series(a_request(), rows, 2) is None


@given(NODES, ASKS, st.integers(1, 9), ASKS, st.integers(1, 9), RULES)
def test_series_on_rows_apart_are_booked_one_after_the_other_or_none_of_them(
    nodes: list[tuple[int, int, int]], one: Request, few: int, other: Request, many: int, rule: str
) -> None:
    desk, twin = a_desk(nodes, rule, "python"), a_desk(nodes, rule, "python")
    rows = np.arange(len(nodes), dtype=np.int32)
    asked = [(one, rows[::2], few), (other, rows[1::2], many)]
    each = [at_one_go(twin, *series) for series in asked]
    before, state = [column.tolist() for chunk in desk.draft.chunks for column in chunk], desk.state
    seats = desk.seat_all_series(asked)
    if [len(found) for found in each] == [few, many]:
        assert seats == each
    else:
        assert seats == []
        assert desk.state == state
        assert [column.tolist() for chunk in desk.draft.chunks for column in chunk] == before
