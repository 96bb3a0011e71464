"""Elastic shares: who grows, who shrinks, who is left alone; and no better share one step away."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.errors import SpecError
from aliquot.core.room.elastic import ElasticJob, share_cards, slowness
from aliquot.core.settings import ElasticRules

FREE_TO_CHANGE = ElasticRules(change_milli=0, dwell_ms=0, evenness_milli=1000)
RESTED = 3_600_000


def amdahl(most: int, serial: float, **facts: object) -> ElasticJob:
    """A job of 1 to `most` cards whose speed rises ever more slowly."""
    sizes = tuple(range(1, most + 1))
    speeds = tuple(size / (1 + serial * (size - 1)) for size in sizes)
    return ElasticJob(sizes, speeds, rested_ms=RESTED, **facts)  # type: ignore[arg-type] - by name


@st.composite
def concave_jobs(draw: st.DrawFn) -> ElasticJob:
    """Unit steps with falling gains; waiting or running."""
    count = draw(st.integers(1, 5))
    gains = sorted((draw(st.integers(1, 1000)) for _ in range(count)), reverse=True)
    first = draw(st.integers(1, 2))
    sizes = tuple(range(first, first + count))
    # The first size gets at least `first` times the first gain, which keeps the curve concave from 0 on.
    start = first * gains[0]
    speeds = tuple(float(start + sum(gains[1 : at + 1])) for at in range(count))
    held = draw(st.sampled_from((0, *sizes)))
    return ElasticJob(sizes, speeds, held, draw(st.integers(0, 300_000)), draw(st.floats(0.1, 10)))


def objective(jobs: list[ElasticJob], cards: tuple[int, ...], rules: ElasticRules) -> float:
    return sum(slowness(job, count, rules) for job, count in zip(jobs, cards, strict=True))


def neighbours(jobs: list[ElasticJob], cards: tuple[int, ...], capacity: int) -> list[tuple[int, ...]]:
    """Every share that differs by one step given, or by one step moved from one job to another."""
    found = []
    for giver, taker in itertools.product((None, *range(len(jobs))), range(len(jobs))):
        if giver == taker:
            continue
        moved = list(cards)
        if giver is not None:
            level = jobs[giver].sizes.index(moved[giver]) if moved[giver] else -1
            if level < 1:
                continue
            moved[giver] = jobs[giver].sizes[level - 1]
        level = jobs[taker].sizes.index(moved[taker]) if moved[taker] else -1
        if level + 1 == len(jobs[taker].sizes):
            continue
        moved[taker] = jobs[taker].sizes[level + 1]
        if sum(moved) <= capacity:
            found.append(tuple(moved))
    return found


@pytest.mark.parametrize(
    ("jobs", "capacity", "expected"),
    [
        pytest.param([amdahl(4, 0.0), amdahl(4, 0.0)], 8, (4, 4), id="room for all: everyone at his most"),
        pytest.param(
            [amdahl(8, 0.0), amdahl(8, 0.5)], 8, (5, 3), id="evenness 1: time saved decides, not speed"
        ),
        pytest.param(
            [amdahl(4, 0.0, held=4), amdahl(4, 0.0)], 4, (2, 2), id="spare cards go to one who waits"
        ),
        pytest.param([amdahl(4, 0.0)] * 3, 2, (1, 1, 0), id="too few for all: the first ones run"),
        pytest.param(
            [amdahl(2, 0.0, weight=1.0), amdahl(2, 0.0, weight=3.0)], 1, (0, 1), id="weight goes first"
        ),
        pytest.param([], 4, (), id="nobody there"),
    ],
)
def test_cards_go_where_they_save_most(
    jobs: list[ElasticJob], capacity: int, expected: tuple[int, ...]
) -> None:
    assert share_cards(jobs, capacity, FREE_TO_CHANGE) == expected


@pytest.mark.parametrize(
    ("job", "rules", "expected"),
    [
        pytest.param(
            ElasticJob((1, 2), (1.0, 1.04), 1, RESTED), ElasticRules(), 1, id="4 % is not worth a stop"
        ),
        pytest.param(ElasticJob((1, 2), (1.0, 1.9), 1, RESTED), ElasticRules(), 2, id="90 % is worth a stop"),
        pytest.param(
            ElasticJob((1, 2), (1.0, 1.9), 1, 60_000),
            ElasticRules(),
            1,
            id="changed a minute ago: left alone",
        ),
        pytest.param(ElasticJob((1, 2), (1.0, 1.04)), ElasticRules(), 1, id="a waiting job starts small"),
        pytest.param(
            ElasticJob((1, 4), (1.0, 1.3)), ElasticRules(), 4, id="a start is a stop anyway: any gain counts"
        ),
    ],
)
def test_a_change_must_pay_for_its_stop(job: ElasticJob, rules: ElasticRules, expected: int) -> None:
    held = share_cards([job], 4, rules)
    assert held == (expected,) or (job.held == 0 and held[0] >= expected)


def test_a_job_that_rests_gives_its_spare_cards_only_to_one_who_waits() -> None:
    resting = ElasticJob((1, 2, 3, 4), (1.0, 1.1, 1.2, 1.3), 4, 1000)
    hungry = amdahl(8, 0.0, held=1)
    assert share_cards([resting, hungry], 5) == (4, 1)
    assert share_cards([resting, amdahl(8, 0.0)], 4)[1] >= 1


def test_a_set_that_outgrows_its_node_is_jumped_over() -> None:
    across = ElasticJob((1, 2, 3, 4, 5, 8), (1.0, 1.9, 2.8, 3.6, 2.0, 5.0), 4, RESTED)
    assert share_cards([across], 8, FREE_TO_CHANGE) == (8,)


@given(st.lists(concave_jobs(), max_size=5), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_no_one_step_transfer_improves_on_concave_speeds(jobs: list[ElasticJob], spare: int) -> None:
    capacity = sum(job.held for job in jobs) + spare
    cards = share_cards(jobs, capacity, FREE_TO_CHANGE)
    reached = objective(jobs, cards, FREE_TO_CHANGE)
    for other in neighbours(jobs, cards, capacity):
        assert objective(jobs, other, FREE_TO_CHANGE) >= reached - 1e-6


@given(st.lists(concave_jobs(), max_size=6), st.integers(0, 12), st.integers(0, 300), st.integers(0, 200_000))
@settings(max_examples=200, deadline=None)
def test_sizes_and_sums_keep_their_bounds(
    jobs: list[ElasticJob], spare: int, change: int, dwell: int
) -> None:
    rules = ElasticRules(change_milli=change, dwell_ms=dwell)
    capacity = sum(job.held for job in jobs) + spare
    cards = share_cards(jobs, capacity, rules)
    assert sum(cards) <= capacity
    assert all(count in (0, *job.sizes) for job, count in zip(jobs, cards, strict=True))
    assert all(count >= job.sizes[0] for job, count in zip(jobs, cards, strict=True) if job.held)
    started = any(count and not job.held for job, count in zip(jobs, cards, strict=True))
    resting = [at for at, job in enumerate(jobs) if job.held and job.rested_ms < dwell]
    assert started or all(cards[at] == jobs[at].held for at in resting)
    assert cards == share_cards(jobs, capacity, rules)


@given(st.lists(concave_jobs(), min_size=1, max_size=5), st.integers(0, 8))
@settings(max_examples=100, deadline=None)
def test_nobody_waits_while_the_others_together_could_spare_his_cards(
    jobs: list[ElasticJob], spare: int
) -> None:
    jobs = [job._replace(weight=1.0) for job in jobs]
    capacity = sum(job.held for job in jobs) + spare
    cards = share_cards(jobs, capacity)
    given_up = sum(count - job.sizes[0] for job, count in zip(jobs, cards, strict=True) if count)
    could_spare = capacity - sum(cards) + given_up
    assert all(job.sizes[0] > could_spare for job, count in zip(jobs, cards, strict=True) if count == 0)


@given(st.lists(concave_jobs(), min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_changes_of_a_job_are_bounded_by_its_rests_and_by_starts(
    jobs: list[ElasticJob], waits_min: list[int]
) -> None:
    """Over rounds a job changes at most once per rest, and once more for every job that starts."""
    jobs = [job._replace(held=0, rested_ms=0) for job in jobs]
    rules, capacity = ElasticRules(), 8
    changes, starts, elapsed = [0] * len(jobs), 0, 0
    for wait in waits_min:
        cards = share_cards(jobs, capacity, rules)
        for at, (job, count) in enumerate(zip(jobs, cards, strict=True)):
            starts += job.held == 0 < count
            changes[at] += job.held not in {0, count}
        elapsed += wait * 60_000
        jobs = [
            job._replace(held=count, rested_ms=(job.rested_ms if count == job.held else 0) + wait * 60_000)
            for job, count in zip(jobs, cards, strict=True)
        ]
    assert all(count <= elapsed // rules.dwell_ms + starts for count in changes)


@pytest.mark.parametrize(
    ("job", "named"),
    [
        pytest.param(ElasticJob((2, 1), (1.0, 2.0)), "sizes", id="sizes that fall"),
        pytest.param(ElasticJob((), ()), "sizes", id="no size at all"),
        pytest.param(ElasticJob((0, 1), (1.0, 2.0)), "sizes", id="a size of no cards"),
        pytest.param(ElasticJob((1, 2), (1.0,)), "speeds", id="a speed missing"),
        pytest.param(ElasticJob((1,), (0.0,)), "speeds", id="a speed of 0"),
        pytest.param(ElasticJob((1, 2), (1.0, 2.0), held=3), "held", id="held is none of the sizes"),
        pytest.param(ElasticJob((1,), (1.0,), weight=0.0), "weight", id="a weight of 0"),
        pytest.param(ElasticJob((8,), (1.0,), held=8), "capacity", id="more held than there is"),
    ],
)
def test_bad_offers_are_refused_by_name(job: ElasticJob, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        share_cards([job], 4)


def test_bad_rules_are_refused() -> None:
    with pytest.raises(SpecError, match="rules"):
        share_cards([], 4, ElasticRules(evenness_milli=0))
