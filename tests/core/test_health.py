"""Who is over, what is taken beyond the grants, which cards are broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.core.health import (
    LOST,
    STEP_MIB,
    Fault,
    Held,
    Over,
    Process,
    Reading,
    Taken,
    close_exclusive,
    find_faults,
    find_over,
    find_taken,
    still_over,
)
from aliquot.core.ids import CardId, JobId

CARD, OTHER = CardId("GPU-0"), CardId("GPU-1")
A, B = JobId("a"), JobId("b")
FULL_MIB = {CARD: 40_000, OTHER: 40_000}


def held(job: JobId, memory: int, *, whole: bool = False, card: CardId = CARD) -> Held:
    return Held(job, card, memory, 500, whole)


def reading(*processes: Process, used: int | None = None, card: CardId = CARD) -> Reading:
    return Reading(card, used, None, processes)


def process(memory: int | None, job: JobId | None = None, sm: int | None = None, pid: int = 1) -> Process:
    return Process(pid, memory, sm, job)


def test_only_the_one_above_his_grant_is_over() -> None:
    seen = [reading(process(12_000, A), process(9_000, B, pid=2))]
    assert find_over(seen, [held(A, 10_000), held(B, 10_000)]) == [Over(A, CARD, 12_000, 10_000)]


@pytest.mark.parametrize(
    ("processes", "grants", "over"),
    [
        pytest.param([process(10_000, A)], [held(A, 10_000)], [], id="exactly his grant"),
        pytest.param([process(99_000, A)], [held(A, 10_000, whole=True)], [], id="a whole card is his"),
        pytest.param([process(None, A)], [held(A, 10_000)], [], id="unknown is not over"),
        pytest.param([process(99_000)], [held(A, 10_000)], [], id="a foreigner is not a job"),
        pytest.param([process(15_000, A)], [held(A, 10_000), held(A, 10_000)], [], id="two members, one sum"),
        pytest.param(
            [process(6_000, A), process(6_000, A, pid=2)],
            [held(A, 10_000)],
            [Over(A, CARD, 12_000, 10_000)],
            id="two processes, one sum",
        ),
        pytest.param([process(12_000, A)], [held(A, 10_000, card=OTHER)], [], id="where he holds nothing"),
    ],
)
def test_over_is_a_matter_of_sums(processes: list[Process], grants: list[Held], over: list[Over]) -> None:
    assert find_over([reading(*processes)], grants) == over


def test_a_short_excess_is_tolerated_and_a_return_begins_anew() -> None:
    one = [Over(A, CARD, 12_000, 10_000)]
    since, due = still_over({}, one, 0, 5_000)
    since, due = still_over(since, one, 5_000, 5_000)
    assert due == []
    since, due = still_over(since, one, 5_001, 5_000)
    assert due == one
    since, due = still_over(since, [], 6_000, 5_000)
    since, due = still_over(since, one, 7_000, 5_000)
    assert (since, due) == ({(A, CARD): 7_000}, [])


def test_a_foreign_process_takes_what_it_uses_rounded_up() -> None:
    assert find_taken([reading(process(1_000, sm=12))], [], FULL_MIB) == [Taken(CARD, 150, 1_024)]


def test_a_job_that_uses_less_than_it_holds_takes_nothing_more() -> None:
    assert find_taken([reading(process(2_000, A), used=2_000)], [held(A, 10_000)], FULL_MIB) == []


def test_what_a_job_uses_above_its_grant_is_not_offered_twice() -> None:
    assert find_taken([reading(process(11_000, A))], [held(A, 10_000)], FULL_MIB) == [Taken(CARD, 0, 1_024)]


def test_memory_of_nobodys_process_counts_as_foreign_where_no_job_is() -> None:
    assert find_taken([reading(used=3_000)], [], FULL_MIB) == [Taken(CARD, 0, 3_072)]


def test_of_what_is_unknown_nothing_follows() -> None:
    assert find_taken([Reading(CARD, 9_000, 50, None), Reading(OTHER, lost=True)], [], FULL_MIB) == []


def test_a_foreigner_whose_memory_is_unknown_is_counted_by_the_cards_total() -> None:
    seen = reading(process(None), process(2_000, A, pid=2), used=7_000)
    assert find_taken([seen], [held(A, 4_000)], FULL_MIB) == [Taken(CARD, 50, 5_120)]


@given(
    st.lists(st.tuples(st.integers(0, 50_000), st.sampled_from([A, B, None])), max_size=5),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
)
def test_what_is_offered_never_overlaps_what_is_used(
    uses: list[tuple[int, JobId | None]], first: int, second: int
) -> None:
    seen = reading(*(process(memory, job, pid=at) for at, (memory, job) in enumerate(uses)))
    grants = [held(A, first), held(B, second)]
    taken = sum(one.memory_mib for one in find_taken([seen], grants, {CARD: 1 << 30}))
    by_job = {job: sum(memory for memory, whose in uses if whose == job) for job in (A, B, None)}
    due = max(first, by_job[A]) + max(second, by_job[B]) + by_job[None]
    assert first + second + taken > due - STEP_MIB
    assert first + second + taken <= due + STEP_MIB


@pytest.mark.parametrize(
    ("xids", "broken"),
    [
        pytest.param({CARD: frozenset({79})}, (CARD,), id="fallen off the bus"),
        pytest.param({CARD: frozenset({13, 31, 43})}, (), id="a program's own faults"),
        pytest.param({CARD: frozenset({63, 94})}, (), id="contained"),
        pytest.param({CARD: frozenset({13}), OTHER: frozenset({95})}, (OTHER,), id="uncontained"),
    ],
)
def test_errors_that_need_a_reset_take_a_card_out(
    xids: dict[CardId, frozenset[int]], broken: tuple[CardId, ...]
) -> None:
    assert tuple(find_faults([Reading(CARD), Reading(OTHER)], xids, {})) == broken


def test_lost_and_forbidden_cards_are_broken_too() -> None:
    shut = Fault("mig", "MIG is on")
    assert find_faults([Reading(CARD, lost=True)], {}, {OTHER: shut}) == {CARD: LOST, OTHER: shut}


def test_of_several_faults_of_a_card_the_gravest_is_told() -> None:
    shut, xids = {CARD: Fault("mig", "MIG is on")}, {CARD: frozenset({13, 79, 95})}
    both = Fault("xid 79", "it had Xid 79, 95 and was not reset since", 79)
    assert find_faults([Reading(CARD)], xids, shut) == {CARD: both}
    assert find_faults([Reading(CARD, lost=True)], xids, shut) == {CARD: LOST}


def test_of_an_exclusive_card_in_use_nothing_is_left() -> None:
    shut = close_exclusive([], [CARD, OTHER], [reading()], [held(A, 10_000)], FULL_MIB)
    assert shut == [Taken(CARD, 1000, 40_000)]
    assert close_exclusive([], [OTHER], [reading(process(1), card=OTHER)], [], FULL_MIB) == [
        Taken(OTHER, 1000, 40_000)
    ]
