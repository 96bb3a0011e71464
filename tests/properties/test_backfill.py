"""Backfill over random days on a small site: against a plain twin, and what it promises to those who wait."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aliquot.core.room.backfill import Decision, Running, Waiting, decide
from aliquot.core.room.disciplines import EASY, FIFO
from aliquot.core.settings import Backfill

CARDS, PARTS = 4, 3
MANY = Backfill(by_size=False, overdue_ms=0, overdue_wide_ms=0, reservations=4, doubt_milli=1000)
DEFAULT = Backfill(overdue_ms=30, overdue_wide_ms=30)
DAY = st.lists(
    st.tuples(st.integers(0, 15), st.integers(1, 10), st.integers(1, 60), st.integers(1, 4)),
    min_size=1,
    max_size=25,
)
"""(gap to the one before, cards, run time, the estimate is run time times this)"""


class Day:
    """A site of `nodes` x 4 cards lived through event by event."""

    def __init__(self, day: list[tuple[int, int, int, int]], nodes: int, *, exact: bool) -> None:
        self.submitted = np.cumsum([gap for gap, *_ in day])
        self.cards = np.array([cards for _, cards, *_ in day], np.int64)
        self.run = np.array([run for *_, run, _ in day], np.int64)
        self.estimate = self.run if exact else np.array([run * wrong for *_, run, wrong in day], np.int64)
        self.size = np.full(nodes, CARDS, np.int64)
        self.free = self.size.copy()
        self.start = np.full(len(day), -1, np.int64)
        self.rows, self.parts = np.zeros((2, len(day), PARTS), np.int64)
        self.waiting: list[int] = []
        self.running: list[int] = []

    def live(self, rules: Backfill) -> list[tuple[int, list[int], Decision]]:
        """Every pass as (time, who waited, decision)."""
        passes, coming = [], list(range(len(self.run)))
        while coming or self.running:
            ends = [int(self.start[job] + self.run[job]) for job in self.running]
            now = min([*ends, *(int(self.submitted[job]) for job in coming[:1])])
            for job in [job for job, end in zip(self.running, ends, strict=True) if end <= now]:
                self.running.remove(job)
                np.add.at(self.free, self.rows[job], self.parts[job])
            while coming and self.submitted[coming[0]] <= now:
                self.waiting.append(coming.pop(0))
            if self.waiting:
                passes.append((now, self.waiting.copy(), self.step(now, rules)))
        return passes

    def step(self, now: int, rules: Backfill) -> Decision:
        found = decide(now, self.size, self.free, self.held(), self.asked(), rules)
        for at in np.flatnonzero(found.started):
            job = self.waiting[at]
            self.start[job], self.rows[job], self.parts[job] = now, found.rows[at], found.cards[at]
            np.subtract.at(self.free, self.rows[job], self.parts[job])
            self.running.append(job)
        assert self.free.min() >= 0
        self.waiting = [job for job in self.waiting if self.start[job] < 0]
        return found

    def held(self) -> Running:
        runs = np.array(self.running, np.int64)
        return Running(self.start[runs] + self.estimate[runs], self.rows[runs], self.parts[runs])

    def asked(self) -> Waiting:
        queue = np.array(self.waiting, np.int64)
        return Waiting(self.submitted[queue], self.cards[queue], self.estimate[queue])


@given(DAY, st.integers(1, 3), st.sampled_from([EASY, MANY, DEFAULT, FIFO]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_everything_that_can_run_runs_and_gets_exactly_its_cards(
    day: list[tuple[int, int, int, int]], nodes: int, rules: Backfill, exact: bool
) -> None:
    life = Day(day, nodes, exact=exact)
    life.live(rules)
    possible = life.cards <= min(nodes, PARTS) * CARDS
    if rules is FIFO and not possible.all():
        possible[np.flatnonzero(~possible)[0] :] = False
    assert ((life.start >= 0) == possible).all()
    assert (life.parts.sum(axis=1)[possible] == life.cards[possible]).all()
    assert (life.free == life.size).all()


@given(DAY, st.integers(1, 3), st.sampled_from([EASY, MANY, DEFAULT]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_who_is_first_in_line_never_starts_later_than_it_was_told(
    day: list[tuple[int, int, int, int]], nodes: int, rules: Backfill, exact: bool
) -> None:
    """Estimates here are upper bounds. Told 200 once, it is told 200 or sooner ever after, and starts."""
    life, told = Day(day, nodes, exact=exact), dict[int, int]()
    for now, waited, found in life.live(rules):
        overdue = [job for job in waited if now - life.submitted[job] >= rules.overdue_ms and fits(life, job)]
        if not overdue:
            continue
        first = overdue[0]
        at = int(found.at[waited.index(first)])
        if at >= 0:
            assert at <= told.get(first, at)
            told[first] = at
    assert all(0 <= life.start[job] <= at for job, at in told.items())


def fits(life: Day, job: int) -> bool:
    return int(life.cards[job]) <= min(len(life.size), PARTS) * CARDS


@given(DAY, st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_easy_is_what_its_definition_says(day: list[tuple[int, int, int, int]], nodes: int) -> None:
    life = Day(day, nodes, exact=False)
    passes, coming = 0, list(range(len(day)))
    while coming and passes < 20:
        passes += 1
        now = int(life.submitted[coming[0]])
        life.waiting.append(coming.pop(0))
        expected = plain_easy(life, now)
        found = life.step(now, EASY)
        assert np.flatnonzero(found.started).tolist() == expected


def plain_easy(life: Day, now: int) -> list[int]:
    """Who starts, as places in the queue: behind the first that does not fit only what leaves it alone."""
    free, started, reserved, shadow = life.free.tolist(), list[int](), list[int](), 0
    ends = [(int(life.start[job] + life.estimate[job]), spots(life, job)) for job in life.running]
    for at, job in enumerate(life.waiting):
        cards, over = int(life.cards[job]), now + int(life.estimate[job])
        room = free
        if reserved and over > shadow:
            later = after(free, ends, shadow)
            room = [min(have, then - kept) for have, then, kept in zip(free, later, reserved, strict=True)]
        where = plain_fit(room, cards)
        if where:
            started.append(at)
            ends.append((over, where))
            for row, count in where.items():
                free[row] -= count
        elif not reserved:
            for end in sorted({end for end, _ in ends}):
                where = plain_fit(after(free, ends, end), cards)
                if where:
                    shadow, reserved = end, [0] * len(free)
                    for row, count in where.items():
                        reserved[row] = count if len(where) == 1 else CARDS
                    break
    return started


def plain_fit(room: list[int], cards: int) -> dict[int, int]:
    best = min(
        (row for row, have in enumerate(room) if have >= cards), key=lambda row: room[row], default=None
    )
    if best is not None:
        return {best: cards}
    whole = [row for row, have in enumerate(room) if have == CARDS][: -(-cards // CARDS)]
    if cards <= CARDS or len(whole) * CARDS < cards or len(whole) > PARTS:
        return {}
    return {row: min(CARDS, cards - CARDS * at) for at, row in enumerate(whole)}


def after(free: list[int], ends: list[tuple[int, dict[int, int]]], when: int) -> list[int]:
    return [
        have + sum(where.get(row, 0) for end, where in ends if end <= when) for row, have in enumerate(free)
    ]


def spots(life: Day, job: int) -> dict[int, int]:
    pairs = zip(life.rows[job].tolist(), life.parts[job].tolist(), strict=True)
    return {row: count for row, count in pairs if count}
