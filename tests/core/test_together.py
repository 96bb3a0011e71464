"""Predicted speeds of jobs that share cards, and how the booking of a card is divided among them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.company import Companies, divide, split_card
from aliquot.core.grants import NOTHING
from aliquot.core.ids import JobId
from aliquot.core.slices import Vector
from aliquot.core.together import SEATS, Together, predict_speeds
from aliquot.core.units import FULL
from tests.support.build import a_node, a_placement

GPU, CPU = Together(1, (0, 0, 1000, 0)), Together(1, (0, 1000, 0, 0))
HALVES, QUARTERS = Together(1, (0, 500, 500, 0)), Together(1, (250, 250, 250, 250))


def used(compute: int, bandwidth: int, **more: int) -> Together:
    """A job that was measured alone."""
    return Together(1, compute_milli=compute, bandwidth_milli=bandwidth, **more)


def staged(*parts: int, **more: int) -> Together:
    """A job of stages."""
    return Together(1, parts, **more)


@pytest.mark.parametrize(
    ("group", "speeds"),
    [
        pytest.param([GPU], (1000,), id="alone: full speed"),
        pytest.param([HALVES, HALVES], (751, 751), id="gaps that fit: one iteration each, times 1.33"),
        pytest.param([GPU, CPU], (751, 751), id="nothing in common"),
        pytest.param([GPU, GPU], (375, 375), id="both on the GPU all the time: half, and a third slower"),
        pytest.param([QUARTERS] * 4, (729, 729, 729, 729), id="four that take turns through all stages"),
        pytest.param([HALVES] * 3, (333, 333, 333), id="three that need two stages can't fit one turn"),
        pytest.param(
            [staged(0, 500, 500, 0, iteration_ms=100), staged(0, 500, 500, 0, iteration_ms=300)],
            (250, 751),
            id="one iteration each per turn: the shorter waits for the longer",
        ),
        pytest.param(
            [staged(0, 500, 500, 0, iteration_ms=100), HALVES], (751, 751), id="unsaid: as long as the other"
        ),
        pytest.param([staged(0, 0, 1000, 0, overhead_milli=0)] * 2, (500, 500), id="measured: nothing else"),
        pytest.param([used(300, 200), used(400, 200)], (952, 952), id="room for both: the overhead alone"),
        pytest.param([used(600, 200), used(500, 200)], (865, 865), id="110 % of compute"),
        pytest.param([used(100, 900), used(100, 600)], (634, 634), id="150 % of bandwidth"),
        pytest.param(
            [used(600, 0, overhead_milli=0), used(600, 0, overhead_milli=200)], (694, 694), id="the most"
        ),
        pytest.param([GPU, used(1, 1)], None, id="two kinds of profile: nobody knows"),
        pytest.param([QUARTERS] * 5, None, id="more than there are stages"),
    ],
)
def test_what_a_group_gets_through(group: list[Together], speeds: tuple[int, ...] | None) -> None:
    assert predict_speeds(tuple(group)) == speeds


@st.composite
def profiles(draw: st.DrawFn) -> Together:
    cuts = sorted(draw(st.integers(0, FULL)) for _ in range(SEATS - 1))
    parts = tuple(high - low for low, high in zip([0, *cuts], [*cuts, FULL], strict=True))
    return Together(
        1, parts, draw(st.none() | st.integers(1, 10_000)), overhead_milli=draw(st.none() | st.just(0))
    )


@given(st.lists(profiles(), min_size=2, max_size=4), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_nobody_is_faster_than_alone_and_order_does_not_count(group: list[Together], random: object) -> None:
    speeds = predict_speeds(tuple(group))
    assert speeds is not None
    assert all(1 <= speed <= FULL for speed in speeds)
    order = list(range(len(group)))
    random.shuffle(order)  # type: ignore[attr-defined] - hypothesis has no public type for it
    shuffled = predict_speeds(tuple(group[at] for at in order))
    assert shuffled == tuple(speeds[at] for at in order)


@given(st.lists(profiles(), min_size=2, max_size=4))
@settings(deadline=None)
def test_no_stage_is_busier_than_all_the_time(group: list[Together]) -> None:
    """Per stage the parts that all of them use of it, at their speeds, are one card's worth at most."""
    speeds = predict_speeds(tuple(group))
    assert speeds is not None
    for stage in range(SEATS):
        assert (
            sum(speed * one.stages_milli[stage] for speed, one in zip(speeds, group, strict=True)) <= FULL**2
        )


@pytest.mark.parametrize(
    ("memories", "parts"),
    [
        pytest.param([5], [(1000, 90, 1000)], id="alone: all of it"),
        pytest.param(
            [20, 30], [(500, 60, 500), (500, 30, 500)], id="two: the eldest keeps what nobody declared"
        ),
        pytest.param([20, 30, 10], [(334, 50, 334), (333, 30, 333), (333, 10, 333)], id="three: it adds up"),
    ],
)
def test_a_card_is_divided_without_a_rest(memories: list[int], parts: list[tuple[int, int, int]]) -> None:
    assert [tuple(part) for part in split_card(Vector(1000, 90, 1000), memories)] == parts


def test_who_goes_leaves_its_part_to_those_who_stay() -> None:
    node = a_node("n", 2)
    whole = a_placement(node, (0, 1))
    a, b, c = map(JobId, "abc")
    alone = {a: (whole,)}
    guest = a_placement(node, (1, 0), NOTHING)
    two = divide({**alone, b: (guest,)}, {a: 10, b: 20})
    assert [place[0].vector.memory for place in two.values()] == [whole.vector.memory - 20, 20]
    assert not two[a][0].whole
    three = divide({**two, c: (guest,)}, {a: 10, b: 20, c: 30})
    left = divide({a: three[a], c: three[c]}, {a: 10, c: 30}, three[b])
    assert [place[0].vector.memory for place in left.values()] == [whole.vector.memory - 30, 30]
    assert divide({a: left[a]}, {a: 10}, left[c]) == alone
    assert divide({c: left[c]}, {c: 30}, left[a])[c][0].vector == whole.vector


def test_companies_know_who_is_there() -> None:
    a, b, c = map(JobId, "abc")
    companies = Companies()
    companies.join(b, (a,))
    companies.join(c, (a, b))
    assert companies.of(b) == (a, b, c)
    assert companies.leave(a) == (b, c)
    assert companies.listed() == ((b, c),)
    assert companies.leave(c) == (b,)
    assert (companies.listed(), companies.of(b), companies.leave(b)) == ((), (b,), ())
