"""The tournament against a plain one, its memory against none, and what order promises to those who wait."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.decay import Account, change_rate, half_power, level_at, per_weight
from aliquot.core.ids import JobId
from aliquot.core.queueing.lineup import Lineup
from aliquot.core.queueing.order import Aging, Tier, Waiting, aged_priority, place_in_queue, tier_of
from aliquot.core.queueing.quota import Book, fits
from aliquot.core.queueing.share import share_after
from aliquot.core.queueing.tree import ROOT, grow_tree
from aliquot.core.queues import CARDS, Queue, Quota
from tests.support.build import leaves_of

TREE = grow_tree(
    [
        Queue("a", quotas=(Quota(CARDS, 4),)),
        Queue("a/x", quotas=(Quota(CARDS, 2),), weight=2000),
        Queue("a/y"),
        Queue("b", quotas=(Quota(CARDS, 3, lending=1),)),
        Queue("c/z", weight=0),
    ],
    {CARDS: 12},
)
AGING = Aging(10, 3)
STRICT = leaves_of(TREE)[0]
LEVELS = st.lists(st.integers(0, 3), min_size=len(TREE.names), max_size=len(TREE.names))
JOBS = st.builds(
    Waiting,
    id=st.integers(0, 30).map(lambda number: JobId(f"j{number}")),
    leaf=st.sampled_from(leaves_of(TREE)),
    charge=st.integers(1, 4).map(lambda cards: ((0, cards),)),
    submitted_ms=st.integers(0, 40),
    seq=st.integers(0, 3),
    priority=st.integers(0, 5),
    tier=st.sampled_from([Tier.OWN, Tier.OWN, Tier.OWN, Tier.SYSTEM, Tier.SPOT]),
    size=st.integers(0, 2),
    overdue=st.booleans(),
    group=st.integers(0, 1),
    in_turn=st.just(False),
).map(lambda job: job._replace(in_turn=job.leaf == STRICT))


def plain_first(
    jobs: list[Waiting], book: Book, now: int, levels: list[int], node: int = ROOT
) -> Waiting | None:
    """Who goes next, from the definition: the best of the children, each sending its own best."""
    if not TREE.children[node]:
        mine = [job for job in jobs if job.leaf == node]
        return min(mine, key=lambda job: place_in_queue(job, now, AGING), default=None)
    sent = [(child, plain_first(jobs, book, now, levels, child)) for child in TREE.children[node]]
    keyed = [
        (
            tier_of(book, job),
            -aged_priority(job.priority, job.submitted_ms, now, AGING),
            share_after(book, child, job.charge),
            per_weight(levels[child], TREE.weight[child]),
            (job.size, job.submitted_ms, job.seq, job.id),
            job,
        )
        for child, job in sent
        if job is not None
    ]
    return min(keyed)[-1] if keyed else None


@given(
    st.lists(st.tuples(st.lists(JOBS, max_size=6), LEVELS, st.integers(0, 25), st.integers(0, 4)), max_size=6)
)
@settings(max_examples=120, deadline=None)
def test_a_lineup_gives_what_a_plain_tournament_gives_whatever_it_went_through(
    passes: list[tuple[list[Waiting], list[int], int, int]],
) -> None:
    warm, now, book = Lineup(TREE, AGING), 0, Book(TREE)
    running: list[Waiting] = []
    for entering, levels, later, ending in passes:
        now += later
        for job in entering:
            warm.enter(job)
        for job in running[:ending]:
            book.remove(job.leaf, job.charge)
        running = running[ending:]
        waiting = list(warm.jobs.values())
        warm.begin(book, now, tuple(levels))
        while (job := warm.first()) is not None:
            assert job == plain_first(waiting, book, now, levels)
            waiting.remove(job)
            if fits(book, job.leaf, job.charge):
                warm.admit(job)
                running.append(job)
            else:
                warm.pass_over(job)
        assert waiting == []
        for job in running:
            warm.leave(job.id)


@given(st.lists(JOBS, max_size=20, unique_by=lambda job: job.id), st.integers(0, 99))
def test_inside_a_queue_the_order_is_total_and_no_job_jumps_its_equals(jobs: list[Waiting], now: int) -> None:
    places = {place_in_queue(job, now, AGING) for job in jobs}
    assert len(places) == len(jobs)
    for one in jobs:
        for other in jobs:
            same = one[5:9] == other[5:9] and one.leaf == other.leaf  # priority, tier, size and overdue
            if same and (one.submitted_ms, one.seq) < (other.submitted_ms, other.seq):
                assert place_in_queue(one, now, AGING) < place_in_queue(other, now, AGING)


@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 200), st.integers(0, 200))
def test_nobody_up_to_the_ceiling_passes_a_job_that_is_old_enough(
    low: int, high: int, later: int, now: int
) -> None:
    """A job submitted (high - low) steps earlier is never behind, so few enough come in time to pass it."""
    old = Waiting(JobId("old"), ROOT, (), 0, 0, min(low, high))
    new = Waiting(JobId("new"), ROOT, (), later, 1, max(low, high))
    if later >= abs(high - low) * AGING.step_ms and now >= later:
        assert place_in_queue(old, now, AGING) < place_in_queue(new, now, AGING)


@given(
    st.lists(st.tuples(st.integers(1, 10**8), st.integers(0, 50)), min_size=1, max_size=8),
    st.lists(st.integers(0, 10**9), max_size=8),
)
def test_usage_does_not_depend_on_how_often_it_is_looked_at(
    changes: list[tuple[int, int]], looks: list[int]
) -> None:
    """Writing the account anew without a change of rate moves it by less than one part in 2**32 each time."""
    plain, looked, now = Account(), Account(), 0
    for gap, rate in changes:
        for look in sorted(at for at in looks if now < at < now + gap):
            looked = change_rate(looked, look, 0)
        now += gap
        plain = change_rate(plain, now, rate - plain.rate)
        looked = change_rate(looked, now, rate - looked.rate)
    end = now + 12_345_678
    assert abs(level_at(plain, end) - level_at(looked, end)) <= (1 + len(looks)) * len(changes)


@given(st.integers(0, 10**10), st.integers(1, 10**10))
def test_powers_of_one_half_are_right_to_eleven_digits(elapsed: int, half_life: int) -> None:
    exponent = Fraction(elapsed, half_life)
    if exponent < 60:
        exact = 0.5 ** float(exponent)
        assert abs(half_power(elapsed, half_life) / 2**96 - exact) <= 1e-11 * exact + 1e-28
    assert half_power(elapsed + half_life, half_life) == half_power(elapsed, half_life) // 2
