"""Groups of jobs on shared cards: who fits whom, what never breaks, how near the best small cases come."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.room import grouping
from aliquot.core.room.colocate import Candidates, ColocateRules, colocate, worth_of_speed
from aliquot.core.room.grouping import Groups, Sharing

CPU, GPU, BOTH = 0, 1, 2
WIDTHS = (1, 2, 4)


def total_value(
    groups: Groups,
    jobs: Candidates,
    sharing: Sharing,
    rules: ColocateRules,
) -> float:
    """What `colocate` raises: the sum of speeds relative to running alone, times their values."""
    value = worth_of_speed(jobs, sharing, rules)
    empty = sharing.alone.shape[1]
    total = 0.0
    for members, width in zip(groups.members, groups.width, strict=True):
        kinds = [int(jobs.kind[job]) if job >= 0 else empty for job in members]
        period = sharing.period[(width, *kinds)]
        total += sum(
            value[job] * sharing.alone[width, jobs.kind[job]] / period for job in members if job >= 0
        )
    return float(total)


def a_sharing(*, gain: bool = True) -> Sharing:
    """Three kinds: CPU and GPU bound jobs fit into each other's gaps, one that uses both fits nobody.

    A turn takes as long as the busier resource, and a tenth more per companion; without `gain`, the sum.
    """
    use = ((1.0, 0.1), (0.1, 1.0), (1.0, 1.0), (0.0, 0.0))
    period = np.full((len(WIDTHS), 4, 4, 4, 4), np.inf)
    for seats in itertools.product(range(4), repeat=4):
        present = [use[kind] for kind in seats if kind < 3]
        if present:
            busy = max(sum(part) for part in zip(*present, strict=True)) if gain else float(len(present))
            period[(slice(None), *seats)] = busy * (1 + 0.1 * (len(present) - 1))
    return Sharing(np.array(WIDTHS, np.int64), period, np.ones((len(WIDTHS), 3)))


def candidates(*jobs: tuple[int, int, float]) -> Candidates:
    """(width in cards, kind, effort in s) each."""
    return Candidates(
        np.array([WIDTHS.index(width) for width, _, _ in jobs], np.int64),
        np.array([kind for _, kind, _ in jobs], np.int64),
        np.array([effort for _, _, effort in jobs], float),
    )


def as_sets(groups: Groups) -> set[frozenset[int]]:
    return {frozenset(int(job) for job in members if job >= 0) for members in groups.members}


job_lists = st.lists(
    st.tuples(st.sampled_from(WIDTHS), st.sampled_from((CPU, GPU, BOTH)), st.floats(0, 1e6)), max_size=24
)


@pytest.mark.parametrize(
    ("jobs", "capacity", "expected"),
    [
        pytest.param([(1, CPU, 10.0), (1, GPU, 10.0)], 2, {frozenset({0}), frozenset({1})}, id="room: alone"),
        pytest.param([(1, CPU, 10.0), (1, GPU, 10.0)], 1, {frozenset({0, 1})}, id="no room: together"),
        pytest.param(
            [(2, CPU, 9.0), (2, GPU, 9.0), (2, CPU, 9.0), (2, GPU, 9.0)],
            4,
            {frozenset({0, 1}), frozenset({2, 3})},
            id="each with one that fits into its gaps",
        ),
        pytest.param(
            [(1, BOTH, 10.0), (1, BOTH, 20.0)], 1, {frozenset({0})}, id="no gaps: the shorter alone"
        ),
        pytest.param([(2, CPU, 1.0), (1, GPU, 10.0)], 2, {frozenset({0})}, id="widths never mix"),
        pytest.param([(4, CPU, 10.0)], 3, set(), id="wider than all there is: waits"),
        pytest.param([], 3, set(), id="nobody"),
        pytest.param([(1, CPU, 10.0)], 0, set(), id="no cards"),
    ],
)
def test_who_shares_with_whom(
    jobs: list[tuple[int, int, float]], capacity: int, expected: set[frozenset[int]]
) -> None:
    assert as_sets(colocate(candidates(*jobs), a_sharing(), capacity)) == expected


def test_where_sharing_gains_nothing_nobody_shares() -> None:
    jobs = candidates(*[(1, kind, 10.0 * at + 1) for at, kind in enumerate((CPU, GPU, CPU, GPU, BOTH))])
    groups = colocate(jobs, a_sharing(gain=False), 3)
    assert as_sets(groups) == {frozenset({0}), frozenset({1}), frozenset({2})}


def test_combinations_without_a_period_are_left_alone() -> None:
    sharing = a_sharing()
    sharing.period[:, [CPU, GPU], [GPU, CPU]] = np.inf
    groups = colocate(candidates((1, CPU, 1.0), (1, GPU, 1.0)), sharing, 1)
    assert as_sets(groups) == {frozenset({0})}


@given(job_lists, st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_groups_keep_capacity_width_and_membership(jobs: list[tuple[int, int, float]], capacity: int) -> None:
    columns, sharing = candidates(*jobs), a_sharing()
    groups = colocate(columns, sharing, capacity)
    seated = groups.members[groups.members >= 0]
    assert len(seated) == len(set(seated.tolist()))
    assert sharing.widths[groups.width].sum() <= capacity
    for members, width in zip(groups.members, groups.width, strict=True):
        present = members[members >= 0]
        assert len(present) >= 1
        assert (members[: len(present)] >= 0).all()
        assert (columns.width[present] == width).all()
    again = colocate(columns, sharing, capacity)
    assert (again.members == groups.members).all()


@given(job_lists, st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_nobody_waits_beside_cards_that_he_fits(jobs: list[tuple[int, int, float]], capacity: int) -> None:
    columns, sharing = candidates(*jobs), a_sharing()
    groups = colocate(columns, sharing, capacity)
    left = capacity - int(sharing.widths[groups.width].sum())
    waiting = set(range(len(jobs))) - set(groups.members[groups.members >= 0].tolist())
    assert all(jobs[at][0] > left for at in waiting)


@given(job_lists, st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_no_swap_between_groups_raises_the_value(jobs: list[tuple[int, int, float]], capacity: int) -> None:
    columns, sharing, rules = candidates(*jobs), a_sharing(), ColocateRules(trades=50)
    groups = colocate(columns, sharing, capacity, rules)
    reached = total_value(groups, columns, sharing, rules)
    for one, two in itertools.combinations(range(len(groups.width)), 2):
        for seat, other in itertools.product(range(4), repeat=2):
            mine, yours = groups.members[one, seat], groups.members[two, other]
            if min(mine, yours) < 0 or groups.width[one] != groups.width[two]:
                continue
            swapped = groups.members.copy()
            swapped[one, seat], swapped[two, other] = yours, mine
            kinds_differ = columns.kind[mine] != columns.kind[yours]
            value = total_value(Groups(swapped, groups.width), columns, sharing, rules)
            assert not kinds_differ or value <= reached * (1 + 1e-6)


def test_small_cases_come_close_to_the_best_there_is() -> None:
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(3, 7))
        jobs = candidates(*[(1, int(rng.integers(0, 3)), float(rng.exponential(1e4))) for _ in range(count)])
        sharing, rules = a_sharing(), ColocateRules()
        reached = total_value(colocate(jobs, sharing, 2, rules), jobs, sharing, rules)
        best = max(total_value(groups, jobs, sharing, rules) for groups in every_grouping(count, most=2))
        ratios.append(reached / best)
    assert max(ratios) <= 1 + 1e-9
    assert min(ratios) >= 0.75
    assert np.mean(ratios) >= 0.95


def test_the_compiled_moves_equal_their_plain_twins() -> None:
    rng = np.random.default_rng(7)
    jobs = candidates(*[(1, int(rng.integers(0, 3)), float(rng.exponential(1e4))) for _ in range(9)])
    sharing, rules = a_sharing(), ColocateRules()
    value = worth_of_speed(jobs, sharing, rules)
    members = np.array([[0, 1, 2, -1], [3, 4, -1, -1], [5, -1, -1, -1]], np.int64)
    plain = members.copy()
    width = np.zeros(3, np.int64)
    grouping._trade(members, width, jobs.kind, value, sharing.period, sharing.alone, 5)
    grouping._trade.py_func(plain, width, jobs.kind, value, sharing.period, sharing.alone, 5)  # type: ignore[attr-defined] - numba keeps it
    assert (members == plain).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param({"kind": np.array([3])}, "kind", id="a kind that is not in the table"),
        pytest.param({"width": np.array([-1])}, "width", id="a width that is not in the table"),
        pytest.param({"effort_s": np.array([np.nan])}, "effort_s", id="an effort that is no number"),
        pytest.param({"effort_s": np.array([-1.0])}, "effort_s", id="an effort below 0"),
    ],
)
def test_bad_columns_are_refused_by_name(change: dict[str, np.ndarray], named: str) -> None:
    with pytest.raises(SpecError, match=named):
        colocate(candidates((1, CPU, 1.0))._replace(**change), a_sharing(), 1)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(ColocateRules(preference=-1.0), id="a preference for the long"),
        pytest.param(ColocateRules(grace_s=0.0), id="no grace"),
        pytest.param(ColocateRules(prices=0), id="no price tried"),
    ],
)
def test_bad_rules_are_refused(rules: ColocateRules) -> None:
    with pytest.raises(SpecError, match="rules"):
        colocate(candidates((1, CPU, 1.0)), a_sharing(), 1, rules)


def every_grouping(jobs: int, most: int) -> list[Groups]:
    """All ways to put jobs into at most `most` groups of four, or to let them wait."""
    found = []
    for where in itertools.product(range(-1, most), repeat=jobs):
        parts = [[job for job in range(jobs) if where[job] == group] for group in range(most)]
        if all(len(part) <= 4 for part in parts):
            filled = [part + [-1] * (4 - len(part)) for part in parts if part]
            members = np.array(filled, np.int64).reshape(-1, 4)
            found.append(Groups(members, np.zeros(len(members), np.int64)))
    return found
